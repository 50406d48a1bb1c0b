"""Numbers of history for Prometheus, and which groups are named."""

from typing import Any

from rebalance_core.audit.outcome import OTHER_GROUPS
from rebalance_core.history.metrics import render_metrics
from rebalance_core.report.history_page import history_facts

OF_ROCKETMQ = ("CID_RMQ_SYS_TRANS", "TOOLS_CONSUMER", "CID_ONSAPI_OWNER", "__MONITOR_CONSUMER")
END_MS = 1_795_233_102_840


def night(**changes: Any) -> Any:
    row = {
        "cluster": "c",
        "end_ms": END_MS,
        "start_ms": END_MS - 1,
        "complete": True,
        "errors": 0,
        "warnings": 0,
    }
    return row | changes


def group(name: str, **changes: Any) -> Any:
    row = {
        "cluster": "c",
        "consumer_group": name,
        "end_ms": END_MS,
        "verdict": "EQUAL",
        "epochs": 1_234_567,
        "moved": 0,
        "minimum_moves": 0,
        "orphan_ms": 0,
        "shared_ms": 0,
        "behind": 0,
    }
    return row | changes


def samples(text: str) -> dict[str, str]:
    lines = (line for line in text.splitlines() if not line.startswith("#"))
    return {
        name.removeprefix("rebalance_history_"): value
        for name, value in (line.rsplit(" ", 1) for line in lines)
    }


def test_numbers_are_printed_whole() -> None:
    orders = group(
        "orders",
        behind=9_876_543,
        moved=12_345_678,
        orphan_ms=1_234_567_891,
        shared_ms=7_654_321_000,
    )
    found = samples(render_metrics([night()], [orders], [], left_out=1_000_001))
    assert found == {
        'complete{cluster="c"}': "1",
        'night_end_seconds{cluster="c"}': "1795233102",
        "left_out": "1000001",
        'unread_messages{cluster="c",group="orders"}': "9876543",
        'epochs{cluster="c",group="orders"}': "1234567",
        'moved_queues{cluster="c",group="orders"}': "12345678",
        'orphan_queue_seconds{cluster="c",group="orders"}': "1234567.891",
        'shared_queue_seconds{cluster="c",group="orders"}': "7654321",
    }


def test_of_many_groups_those_with_the_most_unread_are_named() -> None:
    rows = [group(f"g{number:02}", behind=number) for number in range(60)]
    found = samples(render_metrics([night()], rows, []))
    assert found['unread_messages{cluster="c",group="g59"}'] == "59"
    assert found[f'unread_messages{{cluster="c",group="{OTHER_GROUPS}"}}'] == str(sum(range(10)))
    unknown = samples(render_metrics([night()], [group("g", behind=None)], []))
    assert not any(name.startswith("unread") for name in unknown)


def test_groups_of_rocketmq_are_no_worst_groups() -> None:
    worst = [group(name, moved=9, orphan_ms=10**9, verdict="DIFFERS") for name in OF_ROCKETMQ]
    rows = [*worst, group("orders", moved=5, verdict="DIFFERS")]
    text = render_metrics([night()], rows, [])
    assert 'group="orders"' in text
    assert not any(name in text for name in (*OF_ROCKETMQ, OTHER_GROUPS))
    tables: Any = {"nights": [night()], "group_nights": rows, "open_findings": [], "flaps": []}
    facts = history_facts(tables, with_owners=False, left_out=[])
    assert [one["consumer_group"] for one in facts["moving"]] == ["orders"]
    ((_, picture, shown, whole),) = facts["calendars"]
    assert (shown, whole) == (1, 1)
    assert "orders" in picture
    assert not any(name in picture for name in OF_ROCKETMQ)
