"""``plan_league``: every strategy over everything that was planned."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import PLAN_LEAGUE
from rebalance_core.planning.sweep.plan_options import (
    BETWEEN_CAVEATS,
    BETWEEN_COUNTS,
    LEFT_OUT,
    STAY,
    STAY_COUNT,
)
from rebalance_core.planning.variants import is_popped
from rebalance_core.process.plan.totals import Row, totals

_MEANS = {
    "moved_per_rebalance": "moved",
    "stickiness": "stickiness",
    "mean_peak_ratio": "peak_ratio",
}
_SUMS = ("rebalances", "moved", "idle_after", "orphaned_after", "pop_queues_after", "unreached")


class SoundSteps:
    """Figures of the sound steps of each strategy, added up while steps go by.

    A sound step is counted and says something about its strategy. Without a proven minimum there
    was nothing to divide: members broadcast, so each holds every queue and looks as busy as
    possible and perfectly sticky; or a topic is frozen, members subscribe differently, or the group
    is empty. Queues without an owner make the busiest member look less busy.
    """

    def __init__(self) -> None:
        self._found: dict[str, Row] = {}

    def add(self, steps: pa.Table) -> None:
        """Count some rows of ``plan_steps``."""
        proven = pc.and_(steps["counted"], pc.is_valid(steps["minimum_moves"]))
        sound = steps.filter(pc.and_(proven, pc.equal(steps["orphaned"], 0)))
        how: list[tuple[Any, str]]
        how = [(name, each) for name in _MEANS.values() for each in ("sum", "count")]
        how += [("peak_ratio", "max"), ([], "count_all")]
        for row in sound.group_by("strategy", use_threads=False).aggregate(how).to_pylist():
            self._count(row.pop("strategy"), row)

    def merge(self, other: SoundSteps) -> None:
        """Add what was counted of other steps."""
        for strategy, row in other._found.items():
            self._count(strategy, row)

    def means(self, strategy: str) -> Row:
        """The means, ``worst_peak_ratio`` and the number of ``steps``; null where no step is."""
        found = self._found.get(strategy, {})
        means: Row = {}
        for name, column in _MEANS.items():
            count = found.get(f"{column}_count")
            means[name] = found[f"{column}_sum"] / count if count else None
        worst, steps = found.get("peak_ratio_max"), found.get("count_all", 0)
        return means | {"worst_peak_ratio": worst, "steps": steps}

    def _count(self, strategy: str, row: Row) -> None:
        before = self._found.get(strategy)
        self._found[strategy] = row if before is None else _together(before, row)


def _together(one: Row, other: Row) -> Row:
    """Sums, counts and maxima of both; None is of no value."""
    both = {name: [v for v in (one[name], other[name]) if v is not None] for name in one}
    return {
        name: (max if name.endswith("_max") else sum)(values) if values else None
        for name, values in both.items()
    }


def plan_league(summary: pa.Table, sound: SoundSteps) -> pa.Table:
    """A row for each strategy, over all groups, scenarios and seeds.

    Sums are of all groups; amplification and the means leave out steps that say nothing about a
    strategy.

    Args:
        summary: ``plan_summary``.
        sound: Of the same steps.
    """
    stay = _stay(summary)
    rows = [
        row | _figures(row, sound.means(row["strategy"]), stay.get(row["strategy"], []))
        for row in totals(summary, ("strategy", "of_rocketmq"), _SUMS)
    ]
    return pa.Table.from_pylist(rows, PLAN_LEAGUE.arrow_schema())


def _stay(summary: pa.Table) -> dict[str, list[str]]:
    """By strategy: how many groups cannot pop, by reason."""
    told = summary.filter(pc.is_valid(summary["cannot_pop"]))
    keys = ["strategy", "cannot_pop"]
    counts = told.group_by(keys, use_threads=False).aggregate([([], "count_all")])
    found: dict[str, list[str]] = {}
    for row in counts.sort_by("cannot_pop").to_pylist():
        text = STAY_COUNT % (row["count_all"], row["cannot_pop"])
        found.setdefault(row["strategy"], []).append(text)
    return found


def _figures(row: Row, means: Row, stay: list[str]) -> Row:
    minimum, moved = row["minimum_moves"], row["moved_sound"]
    common = {
        "idle_members": row["idle_after"],
        "orphaned": row["orphaned_after"],
        "pop_queues": row["pop_queues_after"],
    }
    if is_popped(row["strategy"]):  # what is owned is of groups that cannot pop
        counts = (row["cannot_pop"], row["rows"], BETWEEN_COUNTS.join(stay))
        nothing = dict.fromkeys((*_MEANS, "worst_peak_ratio", "moved", "minimum_moves"))
        return common | nothing | {"caveat": STAY % counts if stay else None}
    return (
        means
        | common
        | {
            "amplification": moved / minimum if minimum else None,
            "caveat": _caveat(row, row["rebalances"] - means["steps"]),
        }
    )


def _caveat(row: Row, steps_left_out: int) -> str | None:
    if not row["left_out"]:
        return None
    caveats = BETWEEN_CAVEATS.join(row["caveats"])
    numbers = (row["left_out"], row["rows"], steps_left_out, row["rebalances"])
    return LEFT_OUT % (*numbers, caveats)
