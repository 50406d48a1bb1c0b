"""Replicas that a group had, as a policy beside those that it could have had."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import median
from typing import TYPE_CHECKING

from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.planning.autoscale.arrivals import Rates
from rebalance_core.planning.autoscale.policy import FIXED, RECORDED, Policy

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RecordedScalingRow

NAME = "recorded"
"""Of the policy, in every group."""
GAP = 2
"""Rows further apart than so many times the usual distance leave the time between them unknown."""

Samples = Mapping[int, int | None]
"""Replicas by epoch ms; None: unknown."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """What was recorded of a group during a replay.

    Attributes:
        changes: (seconds after the start, replicas), ascending; the first are those of the start.
        reason: why it cannot be replayed; None: it can.
    """

    changes: tuple[tuple[int, int], ...] = ()
    reason: str | None = None

    def policy(self, like: Policy) -> Policy:
        """Return the policy; its pods start and stop as those of another."""
        counts = {replicas for _, replicas in self.changes}
        policy = Policy(NAME, RECORDED, changes=self.changes, start=like.start, stop=like.stop)
        if len(counts) == 1:
            # futures of a fixed number need no replay each
            return replace(policy, kind=FIXED, replicas=counts.pop(), changes=())
        return policy


def samples_by_group(
    rows: Iterable[RecordedScalingRow],
) -> dict[tuple[str | None, str], dict[int, int | None]]:
    """Return the replicas of ``recorded_scaling`` by cluster and group, in order of time."""
    groups: dict[tuple[str | None, str], dict[int, int | None]] = {}
    for row in rows:
        of = groups.setdefault((row["cluster"], row["consumer_group"]), {})
        of[row["at_ms"]] = row["replicas"]
    return {name: dict(sorted(of.items())) for name, of in groups.items()}


def recorded_during(samples: Samples | None, rates: Rates) -> Recorded:
    """Return what was recorded while messages came.

    A row holds until the next one. The time is unknown before the first row, after a row without
    replicas, and between rows that are further apart than usual; a change within it is unknown too.

    Args:
        samples: of the group, in order of time; None: there are none.
        rates: the time that is replayed.
    """
    if not samples or all(replicas is None for replicas in samples.values()):
        return Recorded(reason="recorded_scaling has no replicas of it")
    begin_ms, end_ms = rates.begin_ms, rates.begin_ms + rates.seconds * SECOND_MS
    moments = list(samples)
    usual_ms = int(median([b - a for a, b in pairwise(moments)] or [end_ms - moments[0]]))
    first = bisect_right(moments, begin_ms) - 1
    if first < 0:
        return _unknown(begin_ms, min(moments[0], end_ms))
    changes = list[tuple[int, int]]()
    for at_ms, next_ms in pairwise([*moments[first:], moments[-1] + usual_ms]):
        if at_ms >= end_ms:
            break
        replicas = samples[at_ms]
        if replicas is None or next_ms - at_ms > GAP * usual_ms:
            return _unknown(max(at_ms, begin_ms), min(next_ms, end_ms))
        if not changes or changes[-1][1] != replicas:
            changes.append((max(0, -((begin_ms - at_ms) // SECOND_MS)), replicas))
    last_ms = moments[-1] + usual_ms
    if last_ms < end_ms:
        return _unknown(max(last_ms, begin_ms), end_ms)
    return Recorded(tuple(changes))


def _unknown(from_ms: int, to_ms: int) -> Recorded:
    return Recorded(
        reason=f"recorded_scaling does not show its replicas from {utc(from_ms)} to {utc(to_ms)}"
    )
