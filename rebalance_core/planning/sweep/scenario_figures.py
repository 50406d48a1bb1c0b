"""A row of the summary that a plan prints: a scenario under a strategy, all groups and seeds.

``left_out`` counts the groups (per seed) that ``minimum_moves``, ``amplification`` and the peak
ratios leave out; the latter also leave out groups with queues that nobody owns.
"""

from __future__ import annotations

from typing import Any

from rebalance_core.planning.sweep.transitions import SLOWEST
from rebalance_core.planning.sweep.transitions import SUMS as TIMED_SUMS
from rebalance_core.planning.variants import is_popped

VARIANT = ("scenario", "strategy")
SUMS = (
    "rebalances",
    "moved",
    "idle_before",
    "idle_after",
    "orphaned_before",
    "orphaned_after",
    "replayed_messages",
    "skipped_messages",
    "pop_queues_after",
    "unreached",
    *TIMED_SUMS,
)
"""Columns of ``plan_summary`` that are added up."""
EXTREMES = {
    "min_clients_per_queue": "min",
    "max_clients_per_queue": "max",
    "min_redelivery_s": "min",
    "max_redelivery_s": "max",
    SLOWEST: "max",
}
"""Columns of ``plan_summary`` of which the least or the largest is told."""
OF_OWNED = ("moved", "minimum_moves", "amplification", "mean_peak_ratio_before", "mean_peak_ratio",
            "worst_peak_ratio", "replayed_messages", "skipped_messages",
            "peak_messages_per_second", *TIMED_SUMS, SLOWEST)  # fmt: skip
"""Figures that say nothing of a strategy under which groups pop: they are of groups that cannot."""


def with_ratio(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its amplification, without ``moved_sound``, which that is the ratio of.

    ``shared``: the strategy is one under which groups pop; `OF_OWNED` are None then.
    """
    minimum, moved = row["minimum_moves"], row["moved_sound"]
    rest = {name: value for name, value in row.items() if name != "moved_sound"}
    shared = is_popped(row["strategy"])
    figures = rest | {
        "amplification": moved / minimum if minimum else None,
        "idle": row["idle_after"],
        "orphaned": row["orphaned_after"],
        "shared": shared,
    }
    return figures | dict.fromkeys(OF_OWNED) if shared else figures
