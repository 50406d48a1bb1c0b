"""Replicas that a group had, as a policy to compare with the simulated ones."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median_low
from typing import TYPE_CHECKING

from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.planning.autoscale.arrivals import Rates
from rebalance_core.planning.autoscale.policy import FIXED, RECORDED, Policy

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RecordedScalingRow

GAP = 2
"""The distance between two rows, in multiples of the usual distance, at which a row between them is
missing.
"""

Samples = Mapping[int, int | None]
"""Replicas by epoch ms; None: unknown."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """The replicas that were recorded for a group during a replay.

    Attributes:
        changes: (seconds after the start, replicas), ascending; the first entry is for the start.
        reason: why it cannot be replayed, or None if it can.
    """

    changes: tuple[tuple[int, int], ...] = ()
    reason: str | None = None

    def policy(self, like: Policy) -> Policy:
        """Return the policy; its pods start and stop like those of another policy."""
        counts = {replicas for _, replicas in self.changes}
        policy = Policy(RECORDED, RECORDED, changes=self.changes, start=like.start, stop=like.stop)
        if len(counts) == 1:
            # futures with a fixed number need no separate replays
            return replace(policy, kind=FIXED, replicas=counts.pop(), changes=())
        return policy


def samples_by_group(
    rows: Iterable[RecordedScalingRow],
) -> dict[tuple[str | None, str], dict[int, int | None]]:
    """Return the replicas from ``recorded_scaling`` by cluster and group, in chronological
    order.
    """
    groups: dict[tuple[str | None, str], dict[int, int | None]] = {}
    for row in rows:
        of = groups.setdefault((row["cluster"], row["consumer_group"]), {})
        of[row["at_ms"]] = row["replicas"]
    return {name: dict(sorted(of.items())) for name, of in groups.items()}


def recorded_during(samples: Samples | None, rates: Rates) -> Recorded:
    """Return the replicas that were recorded while messages arrived.

    Only rows with replicas count; lag may be sampled at other times. A row is valid until the next
    one. The last row, and any row before a gap, is valid for the usual distance (the median); a
    single row has none and is valid for no time. All other time is unknown, and so is a change
    within it.

    Args:
        samples: the group's samples, in chronological order; None: there are none.
        rates: the rates, which determine the period that is replayed.
    """
    known = {at_ms: count for at_ms, count in (samples or {}).items() if count is not None}
    if not known:
        return Recorded(reason="recorded_scaling has no replicas of it")
    begin_ms, end_ms = rates.begin_ms, rates.begin_ms + rates.seconds * SECOND_MS
    moments = list(known)
    usual_ms = median_low([b - a for a, b in pairwise(moments)] or [0])
    first = bisect_right(moments, begin_ms) - 1
    if first < 0:
        return _unknown(begin_ms, min(moments[0], end_ms))
    changes = list[tuple[int, int]]()
    after_all_ms = max(end_ms, moments[-1] + GAP * usual_ms)
    for at_ms, next_ms in pairwise([*moments[first:], after_all_ms]):
        if at_ms >= end_ms:
            break
        until_ms = next_ms if next_ms - at_ms < GAP * usual_ms else at_ms + usual_ms
        if until_ms < min(next_ms, end_ms):
            return _unknown(max(until_ms, begin_ms), min(next_ms, end_ms))
        if not changes or changes[-1][1] != known[at_ms]:
            changes.append((max(0, -((begin_ms - at_ms) // SECOND_MS)), known[at_ms]))
    return Recorded(tuple(changes))


def _unknown(from_ms: int, to_ms: int) -> Recorded:
    return Recorded(
        reason=f"recorded_scaling does not show its replicas from {utc(from_ms)} to {utc(to_ms)}"
    )
