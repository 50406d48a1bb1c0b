"""Which strategy is best, and why: first that all is read, then balance, then moves."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

EVEN_ENOUGH = 0.05  # a mean peak ratio that much above the lowest is as good; our choice

Figures = Mapping[str, Any]
"""``strategy``, ``of_rocketmq``, ``moved`` (None: members share all queues), ``orphaned``, ``idle``
and ``frozen`` (groups); ``mean_peak_ratio`` (None: no member or no queue); ``shared``: groups pop.
"""


_LEAST = (
    ("frozen", "{:,} groups frozen"),
    ("orphaned", "{:,} queues without an owner"),
    ("idle", "{:,} members without a queue"),
)
"""What a strategy should have least of, the worst first."""


@dataclass(frozen=True, slots=True)
class Best:
    """The best of RocketMQ's strategies, and why."""

    strategy: str
    reason: str


def best_of(rows: Sequence[Figures]) -> Best | None:
    """The best of RocketMQ's strategies, and in brackets the runner-up; None if there is none.

    In this order: the fewest groups frozen, the fewest queues without an owner, the fewest members
    without a queue, a mean peak ratio no more than `EVEN_ENOUGH` above the lowest of those left,
    the fewest moves; then the first in the order of the rows. Hypothetical
    strategies cannot be configured, so they only show what would be possible. Where members share
    queues nothing moves, at another price: such rows are no better and no worse.

    >>> rows = [dict(strategy=s, of_rocketmq=True, moved=m, orphaned=0, idle=0, frozen=0,
    ...              mean_peak_ratio=p) for s, m, p in (("AVG", 9, 1.0), ("CONSISTENT_HASH", 2, 2))]
    >>> best_of(rows)
    Best(strategy='AVG', reason='as even as any, mean peak ratio 1.00 (CONSISTENT_HASH: 2.00)')
    """
    left = [row for row in rows if row["of_rocketmq"] and _divides(row)]
    if not left:
        return None
    reasons: list[str] = []

    def keep(good: list[Figures], name: str, words: str, form: str = "{:,}") -> None:
        nonlocal left
        worse = [row for row in left if row not in good]
        left = good
        if worse:
            nearest = min(worse, key=lambda row: row[name])
            value = form.format(nearest[name])
            reasons.append(f"{words} ({nearest['strategy']}: {value})")

    for name, words in _LEAST:
        least = min(row[name] for row in left)
        keep([row for row in left if row[name] == least], name, words.format(least))
    peaks = [row["mean_peak_ratio"] for row in left if row["mean_peak_ratio"] is not None]
    if peaks:
        limit = min(peaks) + EVEN_ENOUGH
        even = [row for row in left if (row["mean_peak_ratio"] or 0) <= limit]
        words = f"as even as any, mean peak ratio {even[0]['mean_peak_ratio'] or 0:.2f}"
        keep(even, "mean_peak_ratio", words, "{:.2f}")
    least = min(row["moved"] for row in left)
    fewest = [row for row in left if row["moved"] == least]
    keep(fewest, "moved", f"of those it moves least, {least:,} queues")
    if not reasons:
        reasons.append("no other does better or worse")
    return Best(left[0]["strategy"], "; ".join(reasons))


def _divides(row: Figures) -> bool:
    return row["moved"] is not None and not row.get("shared")


def possible(rows: Sequence[Figures], best: Best) -> str | None:
    """What a hypothetical strategy would save against the best; None if nothing.

    Only one that leaves no more queues without an owner and is no less even counts.
    """
    chosen = next(row for row in rows if row["strategy"] == best.strategy)
    peak = (chosen["mean_peak_ratio"] or 0) + EVEN_ENOUGH
    better = [
        row
        for row in rows
        if not row["of_rocketmq"]
        and _divides(row)
        and row["moved"] < chosen["moved"]
        and row["orphaned"] <= chosen["orphaned"]
        and (row["mean_peak_ratio"] or 0) <= peak
    ]
    if not better:
        return None
    least = min(better, key=lambda row: row["moved"])
    spared = chosen["moved"] - least["moved"]
    return (
        f"{least['strategy']}, which RocketMQ lacks, would move {least['moved']:,}: "
        f"{spared:,} fewer"
    )
