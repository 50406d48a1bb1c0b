"""Starts of queues that change hands in small histories."""

from typing import Any

from rebalance_core.model.events import Event
from rebalance_core.replay.history import CommittedOffset
from tests.unit.replay.histories import (
    Row,
    history,
    join,
    ledger,
    seen,
    topic,
)

JOINED_MS = 100_000
FIRST, TIMESTAMP = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
# A young queue (min 0, head in memory) is BROKER_ZERO whatever the mode, so tests of the client's
# own rule speak of a queue whose first messages are gone.
OLD = [seen("a0", 90_000, 10, 50), seen("a0", 200_000, 20, 90)]


def starts(*events: Event, retry: bool = False, **settings: Any) -> list[Row]:
    return ledger(history(*events, **settings), retry=retry)["pull_starts"]


def first_start(**settings: Any) -> tuple[Any, ...]:
    """x takes the only queue of a group that never committed: rule, start, low, high, status."""
    settings = {"offsets": OLD, "commits": []} | settings
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), **settings)
    return short(row)


def short(row: Row) -> tuple[Any, ...]:
    return (
        row["rule"],
        row["start_offset"],
        row["start_offset_low"],
        row["start_offset_high"],
        row["status"],
    )


def handover(commits: list[CommittedOffset]) -> Row:
    """Let y join at 100 s and take a1 from x; return the row of y."""
    rows = starts(
        topic(0, 2),
        join(1_000, "x"),
        join(JOINED_MS, "y"),
        commits=commits,
        offsets=[seen("a1", 500, 5, 10), seen("a1", 103_000, 5, 80)],
    )
    return next(row for row in rows if row["client_id"] == "y")
