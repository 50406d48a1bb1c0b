"""``plan_league``: every strategy over everything that was planned."""

from __future__ import annotations

from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.planning import PLAN_LEAGUE
from rebalance_core.planning.sweep.caveats import BETWEEN_CAVEATS, LEFT_OUT
from rebalance_core.process.plan.totals import Row, totals

_MEANS = {
    "moved_per_rebalance": "moved",
    "stickiness": "stickiness",
    "mean_peak_ratio": "peak_ratio",
}
_SUMS = ("rebalances", "moved", "idle_after", "orphaned_after")


class SoundSteps:
    """Figures of the sound steps of each strategy, added up while steps go by.

    A sound step is counted and says something about its strategy. Without a proven minimum there
    was nothing to divide: members broadcast, so each holds every queue and looks as busy as
    possible and perfectly sticky; or a topic is frozen, members subscribe differently, or the group
    is empty. Queues without an owner make the busiest member look less busy.
    """

    def __init__(self) -> None:
        self._parts: list[pa.Table] = []

    def add(self, steps: pa.Table) -> None:
        """Count some rows of ``plan_steps``."""
        proven = pc.and_(steps["counted"], pc.is_valid(steps["minimum_moves"]))
        sound = steps.filter(pc.and_(proven, pc.equal(steps["orphaned"], 0)))
        how = [(name, each) for name in _MEANS.values() for each in ("sum", "count")]
        how += [("peak_ratio", "max"), ([], "count_all")]
        self._parts.append(sound.group_by("strategy", use_threads=False).aggregate(how))

    def by_strategy(self) -> dict[str, Row]:
        """The means, ``worst_peak_ratio`` and the number of ``steps``; no row: no step is sound."""
        parts = pa.concat_tables(self._parts)
        names = [name for name in parts.column_names if name.endswith(("_sum", "_count", "_all"))]
        how = [*((name, "sum") for name in names), ("peak_ratio_max", "max")]
        found = parts.group_by("strategy", use_threads=False).aggregate(how)
        return {row["strategy"]: _means(row) for row in found.to_pylist()}


def _means(row: Row) -> Row:
    means: dict[str, Any] = {}
    for name, column in _MEANS.items():
        count = row[f"{column}_count_sum"]
        means[name] = row[f"{column}_sum_sum"] / count if count else None
    return means | {
        "worst_peak_ratio": row["peak_ratio_max_max"],
        "steps": row["count_all_sum"],
    }


def plan_league(summary: pa.Table, sound: SoundSteps) -> pa.Table:
    """A row for each strategy, over all groups, scenarios and seeds.

    Sums are of all groups; amplification and the means leave out steps that say nothing about a
    strategy.

    Args:
        summary: ``plan_summary``.
        sound: Of the same steps.
    """
    means = sound.by_strategy()
    rows = [
        row | means.get(row["strategy"], {}) | {"caveat": _caveat(row, means)} | _figures(row)
        for row in totals(summary, ("strategy", "of_rocketmq"), _SUMS)
    ]
    return pa.Table.from_pylist(rows, PLAN_LEAGUE.arrow_schema())


def _figures(row: Row) -> Row:
    minimum, moved = row["minimum_moves"], row["moved_sound"]
    return {
        "amplification": moved / minimum if minimum else None,
        "idle_members": row["idle_after"],
        "orphaned": row["orphaned_after"],
    }


def _caveat(row: Row, means: dict[str, Row]) -> str | None:
    if not row["left_out"]:
        return None
    steps = row["rebalances"] - means.get(row["strategy"], {"steps": 0})["steps"]
    caveats = BETWEEN_CAVEATS.join(row["caveats"])
    return LEFT_OUT % (row["left_out"], row["rows"], steps, row["rebalances"], caveats)
