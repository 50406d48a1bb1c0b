"""A row of the summary that a plan prints: a scenario under a strategy, all groups and seeds.

``left_out`` counts the groups (per seed) that ``minimum_moves``, ``amplification`` and the peak
ratios leave out; the latter also leave out groups with queues that nobody owns.
"""

from __future__ import annotations

from typing import Any

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
)
"""Columns of ``plan_summary`` that are added up."""


def with_ratio(row: dict[str, Any]) -> dict[str, Any]:
    """The row with its amplification, without ``moved_sound``, which that is the ratio of."""
    minimum, moved = row["minimum_moves"], row["moved_sound"]
    rest = {name: value for name, value in row.items() if name != "moved_sound"}
    return rest | {
        "amplification": moved / minimum if minimum else None,
        "idle": row["idle_after"],
        "orphaned": row["orphaned_after"],
    }
