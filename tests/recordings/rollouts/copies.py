"""Queues that were handed over and the messages that the taker read again, out of the tables.

``python -m tests.recordings.rollouts.copies`` prints what the shares of `timing.messages` rest
on: ``owners.csv`` (each process queue table, every 20 ms), ``copies.csv`` (each message read again)
and the times at which members ended. What was in work, and what both read while both had the queue,
is left out: the simulation counts these by themselves.
"""

from __future__ import annotations

import csv
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from rebalance_core.model.events import CONSUMER_LEAVE, CONSUMER_LOST
from tests.recordings.tables import rows

RUNS = Path(__file__).parent / "runs"
NAMES = ("r1-P1-1", "r1-P2-2", "r1-P3-1", "r1-P5-1", "r1-P6-2")
"""Where handlers take 5 ms, so that little is in work; but P4, after which everybody is behind."""
QUEUES = 16
SAMPLED_MS = 20
STAYS, LEAVES, IS_KILLED = "stays", "leaves", "is killed"
OVERLAP, LONG, GAPS_MS = "overlap", "overlap > 250 ms", (50, 300, 1_000)
LONG_MS = 250


@dataclass(frozen=True)
class HandOver:
    """One queue that passed from one member to another.

    Attributes:
        run: in which.
        group: whose.
        giver: `STAYS`, `LEAVES` or `IS_KILLED`.
        gap_ms: from the giver's last reading to the take; below 0: both had it.
        copies: messages that the taker read again.
        rate: messages per ms.
        handler_ms: of one message.
    """

    run: str
    group: str
    giver: str
    gap_ms: int
    copies: int
    rate: float
    handler_ms: int

    @property
    def kind(self) -> str:
        """The giver; of one that stays also how soon after the drop the queue was taken."""
        if self.giver != STAYS:
            return self.giver
        if self.gap_ms < 0:
            return f"{STAYS}, {OVERLAP if self.gap_ms >= -LONG_MS else LONG}"
        found = [f"{STAYS}, < {limit} ms" for limit in GAPS_MS if self.gap_ms < limit]
        return found[0] if found else f"{STAYS}, later"

    @property
    def beyond(self) -> float:
        """Copies less what was in work and what both read."""
        return self.copies - self.rate * (self.handler_ms + max(-self.gap_ms, 0))


@cache
def handed_over(run: str) -> tuple[HandOver, ...]:
    """Every hand-over of a run after its first action."""
    return tuple(_handed_over(run))


def _handed_over(run: str) -> Iterator[HandOver]:
    ends = {
        (event["consumer_group"], event["client_id"]): event
        for event in rows(RUNS / run / "cluster_events.jsonl")
        if event["event_type"] in (CONSUMER_LEAVE, CONSUMER_LOST)
    }
    truth = {row["group"]: row for row in _csv(run, "truth")}
    copies = defaultdict(list)
    for row in _csv(run, "copies"):
        copies[_queue(row), row["client_id"]].append(row)
    held = defaultdict(list)
    for row in _csv(run, "owners"):
        end = ends.get((row["group"], row["client_id"]))
        until_ms, giver = int(row["to_ms"]), STAYS
        if end is not None and until_ms >= end["event_ms"] - SAMPLED_MS:
            until_ms = min(until_ms, end["event_ms"])
            giver = LEAVES if end["event_type"] == CONSUMER_LEAVE else IS_KILLED
        held[_queue(row)].append((int(row["from_ms"]), until_ms, giver, row))
    for queue, stretches in held.items():
        its = truth[queue[0]]
        begin_ms, end_ms = int(its["first_action_ms"]), int(its["end_ms"])
        stretches.sort(key=lambda one: one[0])
        for place, (from_ms, _, _, taken) in enumerate(stretches):
            if not place or from_ms < begin_ms:
                continue
            _, until_ms, giver, before = max(stretches[:place], key=lambda one: one[1])
            if before["client_id"] == taken["client_id"]:
                continue
            gap_ms = from_ms - min(until_ms, int(taken["to_ms"]))
            again = [
                row
                for row in copies[queue, taken["client_id"]]
                if from_ms - SAMPLED_MS <= int(row["read_again_ms"]) <= int(taken["to_ms"])
            ]
            rate = int(its["messages"]) / (end_ms - begin_ms) / QUEUES
            yield HandOver(run, queue[0], giver, gap_ms, len(again), rate, int(its["handler_ms"]))


def _csv(run: str, name: str) -> Iterator[dict[str, str]]:
    with (RUNS / run / f"{name}.csv").open() as file:
        yield from csv.DictReader(file)


def _queue(row: dict[str, str]) -> tuple[str, str, str]:
    return row["group"], row["broker_name"], row["queue_id"]


def of_kinds(group: str) -> dict[str, list[HandOver]]:
    """All hand-overs of a group by kind."""
    found = defaultdict(list)
    for run in NAMES:
        for one in handed_over(run):
            if one.group == group:
                found[one.kind].append(one)
    return dict(sorted(found.items()))


if __name__ == "__main__":
    for group in ("orders-fast", "orders-ordered"):
        for kind, members in of_kinds(group).items():
            share = sum(one.beyond for one in members) / len(members)
            again = sum(one.copies > 0 for one in members)
            print(f"{group}: {kind}: {len(members)}, {again} with copies, {share:.3f} beyond")
