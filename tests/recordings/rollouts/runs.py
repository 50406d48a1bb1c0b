"""The recorded rollouts as histories: as they were, and as their plan alone has them."""

from __future__ import annotations

import csv
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import StrEnum
from pathlib import Path
from random import Random

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.planning.scenario.pods import Pace
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.delays import START_UP, START_UP_ALIKE
from rebalance_core.timing.options import ClockOptions
from tests.recordings.tables import histories, rows

RUNS = Path(__file__).parent / "runs"
OVERLOADED = "r1-P3-2"
"""Its host was: its producer was up to 16 s late, and it never settled."""
NAMES = sorted(path.name for path in RUNS.glob("r1-*") if path.name != OVERLOADED)
POD_NAMES = sorted(path.name for path in RUNS.iterdir() if not path.name.startswith("r1-"))
"""Of groups of twelve members, replaced as a Deployment does; its host had a load of 20 to 47."""

DOWN_MS, START_UP_MS = 2_000, 100
"""Nominal: a new member is started 2 s after the stop of the old one; what a search takes for the
time that ``start()`` needs.
"""
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
PACES = {
    "d25": Pace(surge=3, unavailable=3, down_ms=4_000),
    "u50": Pace(surge=0, unavailable=6, down_ms=4_000),
    "s100j": Pace(surge=12, unavailable=0, down_ms=4_000),
}
LATE_MS = {"s100j": 15_000}
"""Each pod is late by up to so long."""
LEAD_MS = 150
"""``start()`` is called so long before the join that the pace states."""
KILLED, BACK_MS = "k9", 20_000
"""One process with several members of both groups is killed; they are back after so long."""
DRAWS = 25
"""Histories that a plan may lead to: how long each ``start()`` takes, which the plan leaves open,
and how late pods are.
"""

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


def draws_of(given: Given) -> int:
    """Return how many histories what is given may lead to."""
    return DRAWS if given is Given.PLAN else 1


def recorded(name: str, given: Given = Given.TABLES, draw: int = 0) -> Iterator[Run]:
    """Both groups of a run; ``draw`` is of what its plan leaves open."""
    folder = RUNS / name
    tables = {path.stem: rows(path) for path in folder.glob("*.jsonl")} | {"committed_offsets": []}
    with (folder / "truth.csv").open() as file:
        truth = {row["group"]: row for row in csv.DictReader(file)}
    for history in histories(tables):
        its = truth[history.consumer_group]
        clock = ClockOptions(exact_times=True, handler_ms=int(its["handler_ms"]))
        first_ms = int(its["first_action_ms"])
        if given is Given.PLAN:
            history = _planned(history, its["plan"], first_ms, draw)
        seen = {figure: float(its[column]) for figure, column in FIGURES.items()}
        yield Run(name, history, first_ms, seen, clock)


def _planned(history: GroupHistory, plan: str, first_ms: int, draw: int) -> GroupHistory:
    """The group until the first action, and from then on the plan at its nominal times.

    Members are called as they were: who gets which queues hangs on the order of their names.
    """
    before = [event for event in history.events if event.event_ms < first_ms]
    ends = [
        event
        for event in history.events
        if event.event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
    ]
    joins = {
        _slot(e): e
        for e in history.events
        if e.event_type == events.CONSUMER_JOIN and e.event_ms >= first_ms
    }
    planned: list[Event] = []
    for end, (end_ms, join_ms) in zip(ends, _times_ms(plan, len(ends), draw), strict=True):
        planned += [
            replace(end, event_ms=first_ms + end_ms),
            replace(joins[_slot(end)], event_ms=first_ms + join_ms),
        ]
    both = sorted([*before, *planned], key=lambda event: event.event_ms)
    made = tuple(replace(event, sequence=number) for number, event in enumerate(both))
    return replace(history, events=made)


def _times_ms(plan: str, members: int, draw: int) -> Iterator[tuple[int, int]]:
    """Yield the end and the join of each member that is replaced, after the begin.

    ``start()`` is called at the nominal time and takes as long as in other recordings; in half of
    the draws equally long for all that are started together.
    """
    random = Random(f"{plan} {draw}")
    alike = random.random() < START_UP_ALIKE
    common = random.getrandbits(32)

    def start_up_ms() -> int:
        return START_UP.delay_of(common if alike else random.getrandbits(32)) // 1_000

    if plan == KILLED:
        yield from [(0, BACK_MS + start_up_ms()) for _ in range(members)]
    elif plan in PACES:
        for turn in PACES[plan].turns(members):
            late_ms = random.randint(0, LATE_MS.get(plan, 0))
            called_ms = turn.join_ms - LEAD_MS + late_ms
            end_ms = turn.stop_ms + (late_ms if turn.joins_first else 0)
            joined_ms = called_ms + start_up_ms()
            # its predecessor is stopped once start() has returned
            yield max(end_ms, joined_ms) if turn.joins_first else end_ms, joined_ms
    else:
        for at_ms in _AT_MS[plan]:
            surge = plan == "P5"
            end_ms = at_ms + SURGE_MS if surge else at_ms
            yield end_ms, at_ms + (0 if surge else DOWN_MS) + start_up_ms()


def start_ups_ms(name: str) -> list[int]:
    """Return how long each ``start()`` of a run took, by its nominal call; empty where the plan
    does not state when it was called.
    """
    taken: list[int] = []
    for run in recorded(name):
        joins = sorted(
            event.event_ms - run.from_ms
            for event in run.history.events
            if event.event_type == events.CONSUMER_JOIN and event.event_ms >= run.from_ms
        )
        if run.plan in _AT_MS:
            called = [at + (0 if run.plan == "P5" else DOWN_MS) for at in _AT_MS[run.plan]]
        elif run.plan in PACES and run.plan not in LATE_MS:
            called = sorted(turn.join_ms - LEAD_MS for turn in PACES[run.plan].turns(len(joins)))
        else:
            continue
        taken += [join - call for join, call in zip(joins, called, strict=True)]
    return taken


def _slot(event: Event) -> str:
    """Whose place a process has; the recorder names channels ``slot.number``."""
    assert event.channel_id is not None
    return event.channel_id.partition(".")[0]
