"""What clients logged of the queues of a group, as its changes and moves."""

from typing import Any

from rebalance_core.contracts.rows import QueueMovesRow
from rebalance_core.model.events import OBSERVED
from rebalance_core.timing.logged_changes import client_logs, logged_changes
from rebalance_core.timing.moves import BEFORE_ALL_MS
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from tests.unit.replay.histories import history
from tests.unit.timing.futures import happens, joins, two_brokers

EVENTS = [
    *two_brokers(2),
    joins(1, "c1", detail=OBSERVED),
    joins(600_123, "c2"),
    joins(600_323, "c3"),
    happens(900_123, "CONSUMER_LEAVE", "c3"),
]
TIMELINE = build_timeline(history(*EVENTS), ClockOptions())
A0, A1 = ("T", "a", 0), ("T", "a", 1)


def row(at_ms: int, client: str | None, queue_id: int, action: Any) -> QueueMovesRow:
    return {
        "cluster": "c",
        "consumer_group": "g",
        "topic": "T",
        "broker_name": "a",
        "queue_id": queue_id,
        "client_id": client,
        "at_ms": at_ms,
        "action": action,
        "source": "",
    }


def moves(*rows: QueueMovesRow) -> list[tuple[float, str, object, bool]]:
    """Those of queue ids of broker a; who has them at first is left out."""
    logs = client_logs(TIMELINE, rows)
    return [
        (move.at_ms, move.client, move.queue, move.added)
        for move in logs.moves
        if move.queue in (A0, A1) and move.at_ms > BEFORE_ALL_MS
    ]


def test_two_joins_at_once_are_one_change() -> None:
    join, leave = logged_changes(TIMELINE)
    assert (join.kind, join.event_ms) == ("CONSUMER_JOIN", 600_323)
    assert (join.clients, join.ends_processes) == (frozenset({"c2", "c3"}), False)
    assert join.begin_ms < 600_123 < join.until_ms <= leave.begin_ms
    assert (leave.kind, leave.clients, leave.ends_processes) == (
        "CONSUMER_LEAVE",
        frozenset({"c3"}),
        True,
    )


def test_a_process_that_ends_gives_up_what_it_holds() -> None:
    rows = [row(601_000, "c3", 1, "ADD"), row(600_900, "c1", 1, "DROP")]
    assert moves(*rows) == [
        (600_900, "c1", A1, False),
        (601_000, "c3", A1, True),
        (900_123, "c3", A1, False),
    ]


def test_a_queue_taken_twice_is_taken_once() -> None:
    rows = [row(601_000, "c2", 0, "ADD"), row(650_000, "c2", 0, "ADD")]
    assert moves(*rows) == [(601_000, "c2", A0, True)]


def test_a_queue_given_up_was_held_before_the_log_began() -> None:
    logs = client_logs(TIMELINE, [row(700_000, "c2", 0, "DROP")])
    its = [(move.at_ms, move.added) for move in logs.moves if move.client == "c2"]
    assert its == [(BEFORE_ALL_MS, True), (700_000, False)]


def test_logs_are_whole_if_each_member_has_one_by_then() -> None:
    changes = logged_changes(TIMELINE)
    rows = [row(600_900, "c1", 1, "DROP"), row(601_000, "c3", 1, "ADD"), row(1, None, 0, "ADD")]
    assert client_logs(TIMELINE, rows).are_whole(TIMELINE, changes) == [False, False]
    whole = [*rows, row(601_000, "c2", 0, "ADD")]
    assert client_logs(TIMELINE, whole).are_whole(TIMELINE, changes) == [True, True]
    late = [*rows, row(950_000, "c2", 0, "ADD")]
    assert client_logs(TIMELINE, late).are_whole(TIMELINE, changes) == [False, True]


def test_what_a_process_gives_up_after_its_end_counts_once() -> None:
    """Its last pass may end after brokers logged that it left."""
    rows = [row(601_000, "c3", 1, "ADD"), row(900_200, "c3", 1, "DROP")]
    assert moves(*rows) == [(601_000, "c3", A1, True), (900_123, "c3", A1, False)]
    logs = client_logs(TIMELINE, [row(900_200, "c3", 1, "DROP")])
    assert [move for move in logs.moves if move.client == "c3"] == []
