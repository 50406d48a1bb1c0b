"""What members that leave together did between their ``shutdown()`` and its end.

``python -m tests.recordings.rollouts.intervals`` prints what the constants of `timing.draws`
for such leaves rest on: of the orderly group, from ``owners.csv`` (each process queue table, every
20 ms) and the times at which ``shutdown()`` was called.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from rebalance_core.model.events import CONSUMER_LEAVE
from tests.recordings.tables import rows

RUNS = Path(__file__).parent / "runs"
TOGETHER = {"r1-P3-1": 2, "r1-P4-1": 5, "r1-P4-2": 5, "r1-P4-s1": 5}
"""How many others leave with a member, by run."""
GROUP = "orders-ordered"


@dataclass(frozen=True)
class Stop:
    """One member that left; milliseconds after its ``shutdown()`` was called.

    Attributes:
        run: in which.
        unlocked_ms: when the last queue that it held was unlocked; None: it held none.
        locked_ms: when it locked queues after that.
        free_ms: how long those had been free by then.
    """

    run: str
    unlocked_ms: int | None
    locked_ms: tuple[int, ...]
    free_ms: tuple[int, ...]


def stops(run: str) -> Iterator[Stop]:
    """The members of a run that left."""
    with (RUNS / run / "owners.csv").open() as file:
        held = [row for row in csv.DictReader(file) if row["group"] == GROUP]
    ends = {
        event["client_id"]: event["event_ms"]
        for event in rows(RUNS / run / "cluster_events.jsonl")
        if event.get("consumer_group") == GROUP and event["event_type"] == CONSUMER_LEAVE
    }
    for client, end_ms in ends.items():
        own = [row for row in held if row["client_id"] == client and row["to_ms"]]
        before = [int(row["to_ms"]) - end_ms for row in own if int(row["from_ms"]) <= end_ms]
        after = [row for row in own if int(row["from_ms"]) > end_ms]
        yield Stop(
            run,
            max((ms for ms in before if ms >= 0), default=None),
            tuple(int(row["from_ms"]) - end_ms for row in after),
            tuple(int(row["from_ms"]) - _freed_ms(row, held) for row in after),
        )


def _freed_ms(taken: dict[str, str], held: list[dict[str, str]]) -> int:
    """When whoever had the queue before let it go."""
    queue = taken["broker_name"], taken["queue_id"]
    return max(
        int(row["to_ms"])
        for row in held
        if (row["broker_name"], row["queue_id"]) == queue
        and row["to_ms"]
        and int(row["from_ms"]) < int(taken["from_ms"])
    )


if __name__ == "__main__":
    for name in TOGETHER:
        for stop in stops(name):
            print(stop)
