"""The HorizontalPodAutoscaler (autoscaling/v2) for external metrics with an AverageValue.

Ported from kube-controller-manager, package ``pkg/controller/podautoscaler``, in public copies;
individual releases of Kubernetes were not compared. `proposals` is
``ReplicaCalculator.GetExternalPerPodMetricReplicas``, `wanted` is ``computeReplicasForMetrics``,
`HorizontalPodAutoscaler.decide` is ``reconcileAutoscaler`` with
``stabilizeRecommendationWithBehaviors``, ``convertDesiredReplicasWithBehaviorRate`` and, without a
``behavior``, ``normalizeDesiredReplicas``. Many futures of a policy are decided at once: each array
has a value per future.
"""

from __future__ import annotations

from bisect import bisect, bisect_left
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.planning.autoscale.policy import (
    DISABLED,
    MIN,
    PODS,
    Direction,
    Policy,
    StepLimit,
)

Floats = NDArray[np.float64]
MILLI = 1_000
"""Metrics are compared in thousandths (``resource.Quantity.MilliValue``, which rounds up)."""
_SMALL = 1e-9
"""Smaller differences are rounding errors; the controller's values are exact in thousandths."""
_NONE = -1
"""Stands for no recommendation, because metrics were missing."""
SCALE_UP_FACTOR, SCALE_UP_LEAST = 2, 4
"""``scaleUpLimitFactor`` and ``scaleUpLimitMinimum`` of an HPA without a ``behavior``."""


@dataclass(frozen=True, slots=True)
class Reading:
    """The value of a metric that the HPA reads.

    Attributes:
        value: the total in each future; None if the query failed.
        target: the AverageValue.
    """

    value: Floats | None
    target: float


def proposals(reading: Reading, current: Ints, tolerance: float) -> Ints:
    """Return the replicas that a metric requests, which are the current ones within the tolerance.

    >>> proposals(Reading(np.array([300.0, 105.0]), 100.0), np.array([1, 1]), 0.1).tolist()
    [3, 1]
    """
    assert reading.value is not None
    value = np.ceil(reading.value * MILLI - _SMALL)
    target = np.ceil(reading.target * MILLI - _SMALL)
    ratio = value / (target * np.maximum(current, 1))
    asked = np.ceil(value / target - _SMALL).astype(np.int64)
    near = np.abs(1.0 - ratio) <= tolerance + _SMALL
    return np.where(near & (current > 0), current, asked)


def wanted(readings: Sequence[Reading], current: Ints, tolerance: float) -> tuple[Ints, Bools]:
    """Return the largest proposal of all metrics, and where there is a proposal.

    There is none if every metric fails, or if one fails and the others would scale down.
    """
    known = [proposals(each, current, tolerance) for each in readings if each.value is not None]
    if not known:
        return current, np.zeros(len(current), np.bool_)
    most = known[0] if len(known) == 1 else np.max(known, axis=0)
    all_known = np.full(len(current), len(known) == len(readings))
    return most, all_known | (most >= current)


@dataclass
class HorizontalPodAutoscaler:
    """The state of an HPA in several futures, with decisions at the same times.

    Attributes:
        policy: its configuration.
        futures: the number of futures.
    """

    policy: Policy
    futures: int
    _asked_s: list[int] = field(default_factory=list)
    """When each recommendation was made, in order."""
    _asked: list[Ints] = field(default_factory=list)
    """Each recommendation; `_NONE` in futures without one."""
    _added: list[tuple[int, Ints]] = field(default_factory=list)
    _removed: list[tuple[int, Ints]] = field(default_factory=list)
    _still_since_s: int | None = None
    """The time since when all recommendations have equalled the number of replicas in all
    futures.
    """

    @property
    def least(self) -> int:
        """The fewest replicas, which are never zero in the HPA that KEDA creates."""
        return max(self.policy.least, 1)

    @property
    def window_s(self) -> int:
        """For how long a recommendation or a change counts."""
        limits = [limit.period_s for each in self._directions for limit in each.limits]
        return max([self._window_s(up=True), self._window_s(up=False), *limits])

    @property
    def _directions(self) -> tuple[Direction, ...]:
        return tuple(each for each in (self.policy.up, self.policy.down) if each is not None)

    def _window_s(self, *, up: bool) -> int:
        direction = self.policy.up if up else self.policy.down
        stated = None if direction is None else direction.stabilization_s
        return (0 if up else self.policy.down_window_s) if stated is None else stated

    def decide(self, at_s: int, current: Ints, readings: Sequence[Reading]) -> Ints:
        """Return the new number of replicas in each future.

        Args:
            at_s: the time, in seconds; later than at the last decision.
            current: replicas now.
            readings: every metric of the policy.
        """
        if not self._asked_s:
            # recordInitialRecommendation
            self._asked_s, self._asked = [at_s], [current]
        asked, known = wanted(readings, current, self.policy.tolerance)
        most = self.policy.most
        if self._is_still(at_s, current, asked, known):
            return current
        bounded = self._bounded(current)
        enabled = current > 0
        free = enabled & (bounded == current) & known
        stable = self._stabilized(at_s, current, asked, free)
        limited = np.where(
            stable > current,
            np.minimum(stable, np.minimum(most, self._up_limit(at_s, current))),
            np.where(
                stable < current,
                np.maximum(stable, np.maximum(self.least, self._down_limit(at_s, current))),
                stable,
            ),
        )
        if self.policy.up is None:
            limited = self._bounded(limited)
        decided = np.where(free, limited, np.where(enabled, bounded, current))
        self._remember(at_s, decided - current)
        return decided

    def _bounded(self, replicas: Ints) -> Ints:
        """Return the replicas within the fewest and the most."""
        return np.minimum(np.maximum(replicas, self.least), self.policy.most)

    def _is_still(self, at_s: int, current: Ints, asked: Ints, known: Bools) -> bool:
        """Return whether nothing can change because all recommendations in the window equal the
        current replicas.
        """
        inside = bool(known.all()) and np.array_equal(self._bounded(asked), current)
        if not inside:
            self._still_since_s = None
            return False
        if self._still_since_s is None:
            self._still_since_s = at_s
        if at_s - self._still_since_s <= self.window_s:
            return False
        # a single recommendation stands for all equal ones in the window
        self._asked_s, self._asked = [at_s], [asked]
        return True

    def _stabilized(self, at_s: int, current: Ints, asked: Ints, free: Bools) -> Ints:
        """Return the recommendation clamped to the lowest and the highest of the windows."""
        legacy = self.policy.up is None
        up_s, down_s = at_s - self._window_s(up=True), at_s - self._window_s(up=False)
        # stabilizeRecommendation drops older entries, the other function also those of equal age
        first = bisect_left(self._asked_s, down_s) if legacy else bisect(self._asked_s, down_s)
        highest = np.max([*self._asked[first:], asked], axis=0)
        first_up = bisect(self._asked_s, up_s)
        kept = bisect_left(self._asked_s, min(up_s, down_s))
        self._asked_s = [*self._asked_s[kept:], at_s]
        earlier = self._asked[first_up:]
        self._asked = [*self._asked[kept:], np.where(free, asked, _NONE)]
        if legacy:
            return np.asarray(highest)
        lowest = asked
        if earlier:
            values = np.array(earlier)
            lowest = np.minimum(asked, np.where(values == _NONE, asked, values).min(axis=0))
        return np.asarray(np.minimum(np.maximum(current, lowest), highest))

    def _up_limit(self, at_s: int, current: Ints) -> Ints:
        """Return the most replicas after a scale-up."""
        up = self.policy.up
        if up is None:
            return np.maximum(SCALE_UP_FACTOR * current, SCALE_UP_LEAST)
        if up.select == DISABLED:
            return current
        limits = [self._at_most(at_s, current, limit) for limit in up.limits]
        chosen = np.min(limits, axis=0) if up.select == MIN else np.max(limits, axis=0)
        return np.asarray(np.maximum(chosen, current))

    def _down_limit(self, at_s: int, current: Ints) -> Ints:
        """Return the fewest replicas after a scale-down."""
        down = self.policy.down
        if down is None:
            return np.zeros_like(current)
        if down.select == DISABLED:
            return current
        limits = [self._at_least(at_s, current, limit) for limit in down.limits]
        chosen = np.max(limits, axis=0) if down.select == MIN else np.min(limits, axis=0)
        return np.asarray(np.minimum(chosen, current))

    def _begun_with(self, at_s: int, current: Ints, limit: StepLimit) -> Ints:
        """Return the replicas at the start of the limit's period."""
        since_s = at_s - limit.period_s
        added = sum((n for then_s, n in self._added if then_s > since_s), np.zeros_like(current))
        gone = sum((n for then_s, n in self._removed if then_s > since_s), np.zeros_like(current))
        return np.asarray(current - added + gone)

    def _at_most(self, at_s: int, current: Ints, limit: StepLimit) -> Ints:
        begun = self._begun_with(at_s, current, limit)
        if limit.type == PODS:
            return begun + limit.value
        most = np.ceil(begun * (100 + limit.value) / 100 - _SMALL)
        return np.asarray(most, np.int64)

    def _at_least(self, at_s: int, current: Ints, limit: StepLimit) -> Ints:
        begun = self._begun_with(at_s, current, limit)
        if limit.type == PODS:
            return begun - limit.value
        least = np.trunc(begun * (100 - limit.value) / 100 + _SMALL)
        return np.asarray(least, np.int64)

    def _remember(self, at_s: int, change: Ints) -> None:
        """Record a change for as long as a limit needs it."""
        if change.any():
            self._added.append((at_s, np.maximum(change, 0)))
            self._removed.append((at_s, np.maximum(-change, 0)))
        longest_s = max((li.period_s for d in self._directions for li in d.limits), default=0)
        self._added = [each for each in self._added if each[0] > at_s - longest_s]
        self._removed = [each for each in self._removed if each[0] > at_s - longest_s]
