"""Groups that share queues, as the page shows them."""

from typing import Any

import pytest

from rebalance_core.report.audit_report import (
    SEVERAL,
    GroupCounts,
    OwnerSpan,
    group_balances,
    group_timelines,
)
from rebalance_core.report.page import headline, render_page
from tests.unit.report.audit_reports import busy_report, report

NAME = ("c", "g")


def row(**fields: Any) -> Any:
    return {"cluster": "c", "consumer_group": "g", **fields}


def reach(client: str, from_ms: int, to_ms: int | None, queue_id: int = -1) -> Any:
    return row(
        topic="T",
        broker_name="a",
        queue_id=queue_id,
        client_id=client,
        from_ms=from_ms,
        to_ms=to_ms,
    )


def stretches(*rows: Any) -> list[tuple[int, tuple[OwnerSpan, ...]]]:
    (timeline,) = group_timelines([NAME], {"pop_reach": rows})
    return [(queue.queue_id, queue.stretches) for queue in timeline.queues]


def test_a_shared_queue_is_held_by_several_members() -> None:
    assert stretches(reach("x", 0, 50), reach("y", 20, None), reach("z", 30, 40, 1)) == [
        (-1, (OwnerSpan(0, None, SEVERAL),)),
        (1, (OwnerSpan(30, 40, "z"),)),
    ]


def test_stretches_with_no_owner_between_them() -> None:
    assert stretches(reach("x", 0, 10), reach("x", 10, 20), reach("y", 30, None)) == [
        (-1, (OwnerSpan(0, 20, "x"), OwnerSpan(30, None, "y")))
    ]


def test_shared_queues_count_in_the_load_of_a_member() -> None:
    loads = [
        row(client_id="x", queues=1, shared_queues=8, to_ms=None),
        row(client_id="y", queues=0, shared_queues=None, to_ms=None),
    ]
    (balance,) = group_balances([NAME], {"consumer_load": loads, "group_metrics": []}, {})
    assert dict(zip(balance.client_ids, balance.queues, strict=True)) == {"x": 9, "y": 0}


def test_only_the_night_s_moves_count() -> None:
    epochs = [row(epoch=number, from_ms=10 * number) for number in range(4)]
    metrics = [
        row(epoch=number, topic=None, moved=number + 1, peak_ratio=1.0, idle_members=0)
        for number in range(4)
    ]
    tables: Any = {"consumer_load": [], "group_metrics": metrics, "epochs": epochs}
    for nights, moved in (({}, (2, 3, 4)), ({NAME[0]: 10}, (3, 4))):
        (balance,) = group_balances([NAME], tables, nights)
        assert balance.moved == moved


def test_groups_that_share_queues_agree() -> None:
    shown = report(groups=GroupCounts(total=3, equal=1, shared=2))
    assert "In all 3 online groups (2 with shared queues) the live owners are" in headline(shown)
    assert "could not be compared" not in headline(shown)


@pytest.mark.parametrize(
    ("groups", "expected"),
    [
        (GroupCounts(total=1, equal=1), "In the online group the live owners are the predicted"),
        (GroupCounts(total=1, unstable=1), "The online group could not be compared."),
        (
            GroupCounts(total=3, unknown=2, offline=1),
            "None of the 2 online groups could be compare",
        ),
        (GroupCounts(total=3, equal=2, unknown=1), "In 2 of 3 online groups the live owners"),
        (GroupCounts(total=3, equal=2, unknown=1), "the other could not be compared."),
        (GroupCounts(total=1, offline=1), "No group is online: 1 without a member."),
        (GroupCounts(total=2, equal=1, offline=1), " 1 more without a member."),
    ],
)
def test_the_headline_agrees_with_the_number_of_groups(groups: GroupCounts, expected: str) -> None:
    assert expected in headline(report(groups=groups))


def test_files_to_look_at_stand_open_and_the_others_are_folded() -> None:
    page = render_page(busy_report())
    section = page[page.index('<section id="files">') :]
    opened, _, folded = section.partition("<details>")
    assert "a.log.gz" in opened
    assert "is no gzip" in opened
    assert "namesrv/namesrv.log" not in opened
    assert "namesrv/namesrv.log" in folded
    assert "and 1,202 more files" in folded
    assert '<section id="files">' not in render_page(report())
