"""Rows of a timeline: a queue each while they are few, folded when many, the telling ones kept."""

from collections.abc import Iterable

from rebalance_core.report.audit_report import QueueHistory
from rebalance_core.report.segments import segments
from rebalance_core.report.timeline_rows import TimelineRows, ranges, rows_of
from tests.unit.report.audit_reports import FROM, TO, queue


def rows(
    queues: Iterable[QueueHistory],
    named: frozenset[tuple[str, str, int]] = frozenset(),
    most: int = 60,
) -> TimelineRows:
    return rows_of(((q, segments(q.stretches, FROM, TO)) for q in queues), named, most)


def test_few_queues_have_a_row_each_even_if_equal() -> None:
    found = rows([queue(at, "c1") for at in range(60)])
    assert [row.label for row in found.shown] == [str(at) for at in range(60)]
    assert not found.folded


def test_neighbours_with_the_same_history_share_a_row() -> None:
    found = rows([queue(at, f"c{at // 64}") for at in range(128)])
    assert [row.label for row in found.shown] == ["0-63 (64 queues)", "64-127 (64 queues)"]
    assert found.folded
    assert not found.left_out


def test_a_fold_ends_at_a_broker_and_at_a_topic() -> None:
    queues = [
        queue(at, "c1", broker=broker, topic=topic)
        for topic in ("orders", "refunds")
        for broker in ("broker-a", "broker-b")
        for at in range(40)
    ]
    found = rows(queues)
    assert [(row.topic, row.broker_name, row.label) for row in found.shown] == [
        (topic, broker, "0-39 (40 queues)")
        for topic in ("orders", "refunds")
        for broker in ("broker-a", "broker-b")
    ]


def test_a_run_that_comes_back_is_a_row_of_its_own_if_there_is_room() -> None:
    found = rows([queue(at, "c2" if at == 50 else "c1") for at in range(100)])
    assert [row.label for row in found.shown] == ["0-49 (50 queues)", "50", "51-99 (49 queues)"]


def test_queues_dealt_round_fold_by_history() -> None:
    found = rows([queue(at, f"c{at % 3}") for at in range(5000)])
    labels = [row.label for row in found.shown]
    assert labels[0] == "0, 3, 6 … 4998 (1,667 queues)"
    assert len(labels) == 3


def test_rows_without_an_event_are_left_out_first() -> None:
    queues = [queue(at, f"c{at}") for at in range(100)]
    queues[70] = queue(70, "c70", "x")
    queues[80] = queue(80, "c80", None)
    queues[90] = queue(90, "c90")
    found = rows(queues, frozenset({("orders", "broker-a", 90)}), most=4)
    assert [row.label for row in found.shown] == ["0", "70", "80", "90"]
    assert len(found.left_out) == 96
    assert sum(len(row.queue_ids) for row in found.shown + found.left_out) == 100


def test_ranges_name_unordered_and_repeated_ids_once() -> None:
    assert ranges([5, 3, 4, 4]) == "3-5"
    assert ranges([9]) == "9"
    assert ranges([0, 2, 4, 6]) == "0, 2, 4, 6"
