"""What a search over the recorded plans chooses, and what was measured of it and of the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache

import numpy as np

from rebalance_core.planning.rollout.choice import Searched, search_plans
from rebalance_core.planning.rollout.futures import (
    DeployedGroup,
    Figures,
    Rollouts,
    Slice,
    deployed_group,
)
from rebalance_core.planning.rollout.search import Budgets, RolloutPlan, Search
from rebalance_core.planning.sweep.transitions import CLOCK
from tests.recordings.rollouts.runs import DOWN_MS, NAMES, START_UP_MS, SURGE_MS, recorded

JOINED_MS = DOWN_MS + START_UP_MS
PLANS = {
    "P1": RolloutPlan(0, 1, 15_000 - JOINED_MS, down_ms=JOINED_MS, spread_ms=0),
    "P2": RolloutPlan(0, 1, 5_000 - JOINED_MS, down_ms=JOINED_MS, spread_ms=0),
    "P3": RolloutPlan(0, 3, 20_000 - JOINED_MS, down_ms=JOINED_MS, spread_ms=0),
    "P4": RolloutPlan(0, 6, down_ms=JOINED_MS, spread_ms=0),
    "P5": RolloutPlan(
        1, 0, SURGE_MS, down_ms=START_UP_MS, ready=SURGE_MS - START_UP_MS, spread_ms=0
    ),
    "P6": RolloutPlan(0, 1, 15_000 - JOINED_MS, down_ms=JOINED_MS, graceful=False, spread_ms=0),
}
BUDGETS = {
    "none": Budgets(),
    "finish_within = 30 s": Budgets(finish_within=30_000),
    "max_no_owner_s = 60": Budgets(max_no_owner_s=60.0),
    "min_members = 3": Budgets(min_members=3),
    "min_members = 5": Budgets(min_members=5),
}
FEWEST_MEMBERS = {"P1": 5, "P2": 5, "P3": 3, "P4": 0, "P5": 6, "P6": 5}
QUEUE_RATE = 100 / 16
"""Messages per second of a queue."""
HANDLER_MS = 5
"""Of the runs that are compared: those of another handler are another group."""


@dataclass(frozen=True)
class Chosen:
    """One search.

    Attributes:
        group: deployed alone.
        budget: its name.
        plan: that is chosen; None: none keeps the budget.
        measured: messages that came late or were read again under it, the mean of its runs.
        best: the fewest of the plans that kept the budget as measured.
    """

    group: str
    budget: str
    plan: str | None
    measured: float
    best: float


def all_chosen() -> Iterator[Chosen]:
    """Of both groups and all budgets. Cost: some seconds a group."""
    for group in _groups():
        played: dict[Slice, Figures] = {}
        for name, budgets in BUDGETS.items():
            searched = _searched(group, budgets, played)
            plan = list(PLANS)[searched.chosen]
            seen = measured()[group.name[1]]
            kept = [each["disturbed"] for each in seen.values() if _keeps(each, budgets)]
            yield Chosen(
                group.name[1],
                name,
                plan if searched.kept else None,
                seen[plan]["disturbed"],
                min(kept),
            )


@cache
def measured() -> dict[str, dict[str, dict[str, float]]]:
    """By group and plan what was measured, means over its runs."""
    found: dict[str, dict[str, list[dict[str, float]]]] = defaultdict(lambda: defaultdict(list))
    for name in NAMES:
        for run in recorded(name):
            if run.clock.handler_ms == HANDLER_MS:
                found[run.history.consumer_group][run.plan].append(run.seen)
    return {
        group: {
            plan: {
                "disturbed": float(np.mean(list(map(_disturbed, runs)))),
                "no_owner_s": float(np.mean([run["orphan_queue_seconds"] for run in runs])),
                "finish_ms": float(np.mean([run["finish_ms"] for run in runs])),
                "members": FEWEST_MEMBERS[plan],
            }
            for plan, runs in plans.items()
        }
        for group, plans in found.items()
    }


def _disturbed(seen: dict[str, float]) -> float:
    return seen["read_again"] + QUEUE_RATE * seen["orphan_queue_seconds"]


def _keeps(seen: dict[str, float], budgets: Budgets) -> bool:
    return (
        seen["finish_ms"] <= (budgets.finish_within or np.inf)
        and seen["no_owner_s"] <= (budgets.max_no_owner_s or np.inf)
        and seen["members"] >= (budgets.min_members or 0)
    )


def _groups() -> Iterator[DeployedGroup]:
    """Both groups as they were before a recorded rollout."""
    for run in recorded("r1-P1-1"):
        before = tuple(event for event in run.history.events if event.event_ms < run.from_ms)
        yield deployed_group(replace(run.history, events=before))


def _searched(group: DeployedGroup, budgets: Budgets, played: dict[Slice, Figures]) -> Searched:
    """The search; ``played`` are the futures of the group so far, and gets those of this one."""
    clock = replace(CLOCK, handler_ms=HANDLER_MS)
    search = Search("restart", group.name[1], budgets)
    rollouts = Rollouts(search, tuple(PLANS.values()), (group,), clock)

    def play(pieces: Sequence[Slice]) -> Iterator[Figures]:
        new = [piece for piece in pieces if piece not in played]
        played.update(zip(new, map(rollouts.play, new), strict=True))
        return (played[piece] for piece in pieces)

    return search_plans(rollouts, play)
