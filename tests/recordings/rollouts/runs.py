"""The recorded rollouts as histories: as they were, and as their plan alone has them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.options import ClockOptions
from tests.recordings.tables import histories, rows

RUNS = Path(__file__).parent / "runs"
OVERLOADED = "r1-P3-2"
"""Its host was: its producer was up to 16 s late, and it never settled."""
NAMES = sorted(path.name for path in RUNS.iterdir() if path.name != OVERLOADED)

DOWN_MS, START_UP_MS = 2_000, 100
"""Nominal: a new member is started 2 s after the stop of the old one, and joins 0.1 s later."""
SURGE_MS = 5_000
"""Nominal: in P5 the old one leaves so long after the new one was started."""
_AT_MS = {
    "P1": [15_000 * n for n in range(6)],
    "P2": [5_000 * n for n in range(6)],
    "P3": [20_000 * (n // 3) for n in range(6)],
    "P4": [0] * 6,
    "P5": [10_000 * n for n in range(6)],
    "P6": [15_000 * n for n in range(6)],
}
"""When the restart of each member begins, by plan."""

FIGURES = {
    "orphan_queue_seconds": "reader_orphan_queue_s",
    "double_queue_seconds": "reader_double_queue_s",
    "finish_ms": "finish_ms",
    "read_again": "copies",
    "late_queue_seconds": "late_queue_s",
}
"""Figures of ``propagation_totals``, and what the recorder calls them; in these units."""


class Given(StrEnum):
    """What is simulated."""

    TABLES = "tables"
    PLAN = "plan"


@dataclass(frozen=True)
class Run:
    """One group in one run.

    Attributes:
        name: of the run.
        history: of the group.
        from_ms: the first action.
        seen: by figure.
        clock: what is assumed.
    """

    name: str
    history: GroupHistory
    from_ms: int
    seen: dict[str, float]
    clock: ClockOptions

    @property
    def plan(self) -> str:
        """P1 to P6."""
        return self.name.split("-")[1]


def recorded(name: str, given: Given = Given.TABLES) -> Iterator[Run]:
    """Both groups of a run."""
    folder = RUNS / name
    tables = {path.stem: rows(path) for path in folder.glob("*.jsonl")} | {"committed_offsets": []}
    with (folder / "truth.csv").open() as file:
        truth = {row["group"]: row for row in csv.DictReader(file)}
    for history in histories(tables):
        its = truth[history.consumer_group]
        clock = ClockOptions(exact_times=True, handler_ms=int(its["handler_ms"]))
        first_ms = int(its["first_action_ms"])
        if given is Given.PLAN:
            history = _planned(history, its["plan"], first_ms)
        seen = {figure: float(its[column]) for figure, column in FIGURES.items()}
        yield Run(name, history, first_ms, seen, clock)


def _planned(history: GroupHistory, plan: str, first_ms: int) -> GroupHistory:
    """The group until the first action, and from then on the plan at its nominal times.

    Members are called as they were: who gets which queues hangs on the order of their names.
    """
    before = [event for event in history.events if event.event_ms < first_ms]
    ends = [
        event
        for event in history.events
        if event.event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
    ]
    joins = {_slot(e): e for e in history.events
             if e.event_type == events.CONSUMER_JOIN and e.event_ms >= first_ms}  # fmt: skip
    planned: list[Event] = []
    for end, after_ms in zip(ends, _AT_MS[plan], strict=True):
        at_ms = first_ms + after_ms
        end_ms, join_ms = at_ms, at_ms + DOWN_MS + START_UP_MS
        if plan == "P5":
            end_ms, join_ms = at_ms + SURGE_MS, at_ms + START_UP_MS
        planned += [
            replace(end, event_ms=end_ms),
            replace(joins[_slot(end)], event_ms=join_ms),
        ]
    both = sorted([*before, *planned], key=lambda event: event.event_ms)
    made = tuple(replace(event, sequence=number) for number, event in enumerate(both))
    return replace(history, events=made)


def _slot(event: Event) -> str:
    """Whose place a process has; the recorder names channels ``slot.number``."""
    assert event.channel_id is not None
    return event.channel_id.partition(".")[0]
