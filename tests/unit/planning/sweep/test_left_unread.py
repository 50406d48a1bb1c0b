"""Messages that stay in queues which a scenario takes away."""

from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.planning.sweep.left_unread import WaitingMessages, lost_queues

Row = dict[str, Any]
MINUTE = 60_000
END = 10 * MINUTE
"""Of the recorded history."""
AT = 20 * MINUTE
"""The first edit."""


def table(name: str, rows: list[Row]) -> pa.Table:
    cluster = [{"cluster": "c"} | row for row in rows]
    return pa.Table.from_pylist(cluster, INPUT_TABLES[name].arrow_schema())


def events(*rows: Row) -> pa.Table:
    numbered = [
        {"sequence": number, "event_ms": row.get("event_ms", 0)} | row
        for number, row in enumerate(rows)
    ]
    return table("cluster_events", numbered)


def config(broker: str, read: int, write: int, at_ms: int = 0, **more: Any) -> Row:
    return {
        "event_type": "TOPIC_CONFIG",
        "topic": "T",
        "broker_name": broker,
        "read_queue_nums": read,
        "write_queue_nums": write,
        "event_ms": at_ms,
    } | more


def turn(event_type: str, broker: str, at_ms: int = AT, detail: str | None = None) -> Row:
    return {
        "event_type": event_type,
        "broker_name": broker,
        "event_ms": at_ms,
        "detail": detail,
    }


JOIN = {
    "event_type": "CONSUMER_JOIN",
    "consumer_group": "g",
    "client_id": "c1",
    "subscriptions": ["T"],
}
RECORDED = (config("a", 2, 2), config("b", 2, 2), JOIN)


def offsets(ends: list[int], begin: list[int] | None = None, min_offset: int = 0) -> pa.Table:
    """Ends of the two queues of broker b at the begin and the end of the history."""
    looks = zip((0, END), (begin or [0] * len(ends), ends), strict=True)
    return table(
        "queue_offsets",
        [
            {
                "topic": "T",
                "broker_name": "b",
                "queue_id": number,
                "observed_ms": ms,
                "min_offset": min_offset,
                "max_offset": end,
            }
            for ms, looked in looks
            for number, end in enumerate(looked)
        ],
    )


def commits(ends: list[int], seen_ms: int = END) -> pa.Table:
    return table(
        "committed_offsets",
        [
            {
                "consumer_group": "g",
                "topic": "T",
                "broker_name": "b",
                "queue_id": number,
                "observed_ms": ms,
                "committed_offset": offset,
            }
            for number, end in enumerate(ends)
            for ms, offset in ((0, 0), (seen_ms, end))
        ],
    )


def left(*edits: Row, first_ms: int | None = AT, **tables: pa.Table) -> int | None:
    """What the group leaves unread; 0 also where it loses no queue."""
    recorded = {"cluster_events": events(*RECORDED)} | tables
    edited = events(*RECORDED, *edits)
    lost = lost_queues(edited, {} if first_ms is None else {"c": first_ms})
    rows = WaitingMessages(recorded).left_unread(lost).to_pylist()
    assert len(rows) <= 1
    found: int | None = rows[0]["left_unread"] if rows else 0
    return found


BEHIND = {
    "queue_offsets": offsets([1_000, 2_000]),
    "committed_offsets": commits([400, 500]),
}


@pytest.mark.parametrize(
    ("edits", "messages"),
    [
        ([turn("BROKER_DOWN", "b")], 600 + 1_500),
        ([turn("BROKER_DOWN", "b"), turn("BROKER_UP", "b", AT + MINUTE)], 0),
        ([turn("BROKER_DOWN", "a")], None),  # no look at its queues
        ([config("b", 1, 1, AT)], 1_500),
        ([config("b", 2, 2, AT, perm=2)], 2_100),
        ([config("b", 2, 2, AT, perm=4)], 0),
        ([{"event_type": "TOPIC_DELETED", "topic": "T", "event_ms": AT}], None),
        ([turn("MASTER_DOWN", "b", detail="REFUSED")], 2_100),
        ([turn("MASTER_DOWN", "b", detail="SLAVE_READ")], 0),
        ([turn("MASTER_DOWN", "b", detail="REFUSED"), turn("MASTER_UP", "b", AT + 1)], 0),
        ([], 0),
    ],
)
def test_what_waits_in_lost_queues_is_left(edits: list[Row], messages: int | None) -> None:
    assert left(*edits, **BEHIND) == messages


def test_a_queue_that_was_lost_before_the_first_edit_does_not_count() -> None:
    down = turn("BROKER_DOWN", "b", END)
    assert left(down, **BEHIND) == 0
    assert left(down, first_ms=None, **BEHIND) == 2_100  # without an edit all count


def test_a_group_that_keeps_up_goes_on_reading_once_writes_are_off() -> None:
    keeps_up = {
        "queue_offsets": offsets([6_000, 6_000]),
        "committed_offsets": commits([5_950, 5_950]),
    }
    down = turn("BROKER_DOWN", "b", AT + 2_000)
    assert left(turn("BROKER_DOWN", "b"), **keeps_up) == 100
    assert left(config("b", 2, 0, AT), down, **keeps_up) == 2 * 30  # 10 a second, for 2 s
    long_off = config("b", 2, 0, AT - MINUTE)
    assert left(long_off, turn("BROKER_DOWN", "b"), first_ms=AT - MINUTE, **keeps_up) == 0
    assert left(long_off, turn("BROKER_DOWN", "b"), first_ms=AT - MINUTE, **BEHIND) == 2_100


def test_what_is_not_known_is_not_guessed() -> None:
    down = turn("BROKER_DOWN", "b")
    assert left(down) is None
    assert left(down, queue_offsets=offsets([9, 9])) is None
    late = {"committed_offsets": commits([5, 5], seen_ms=END - 2 * MINUTE)}
    assert left(down, queue_offsets=offsets([9, 9]), **late) is None
    one = {"committed_offsets": commits([5])}
    assert left(down, queue_offsets=offsets([9, 9]), **one) is None
    settings = table("consumer_groups", [{"consumer_group": "g", "message_model": "BROADCASTING"}])
    assert left(down, consumer_groups=settings, **BEHIND) is None


def test_deleted_messages_cannot_be_read_any_more() -> None:
    deleted = {"queue_offsets": offsets([1_000, 2_000], min_offset=900)}
    assert left(turn("BROKER_DOWN", "b"), **BEHIND | deleted) == 100 + 1_100


def test_topics_are_those_of_the_last_members() -> None:
    down = turn("BROKER_DOWN", "b")
    away = JOIN | {"client_id": "c1", "event_type": "CONSUMER_LEAVE"}
    other = JOIN | {"client_id": "c2", "subscriptions": ["U"]}
    assert left(down, cluster_events=events(*RECORDED, other, away), **BEHIND) == 0
    assert left(down, cluster_events=events(*RECORDED, away), **BEHIND) == 2_100
    quits = {
        "event_type": "UNSUBSCRIBE",
        "consumer_group": "g",
        "client_id": "c1",
        "topic": "T",
    }
    takes = {
        "event_type": "SUBSCRIBE",
        "consumer_group": "g",
        "client_id": "c2",
        "topic": "T",
    }
    stays = events(*RECORDED, other, quits)
    assert left(down, cluster_events=stays, **BEHIND) == 0
    assert left(down, cluster_events=events(*RECORDED, other, quits, takes), **BEHIND) == 2_100
    by_group = {k: v for k, v in JOIN.items() if k != "subscriptions"}
    settings = table("consumer_groups", [{"consumer_group": "g", "subscriptions": ["T"]}])
    recorded = events(config("b", 2, 2), by_group)
    assert left(down, cluster_events=recorded, consumer_groups=settings, **BEHIND) == 2_100
