"""The HorizontalPodAutoscaler (autoscaling/v2) for external metrics with an AverageValue.

Ported from kube-controller-manager, package ``pkg/controller/podautoscaler``, in public copies;
individual releases of Kubernetes were not compared. `proposals` is
``ReplicaCalculator.GetExternalPerPodMetricReplicas``, `wanted` is ``computeReplicasForMetrics``,
`HorizontalPodAutoscaler.decide` is ``reconcileAutoscaler`` with
``stabilizeRecommendationWithBehaviors``, ``convertDesiredReplicasWithBehaviorRate`` and, without a
``behavior``, ``normalizeDesiredReplicas``. HPAs with the same sync period decide together, in all
futures: each array has one value per lane, a pair of policy and future.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.planning.autoscale.policy import (
    DISABLED,
    MAX,
    MIN,
    PODS,
    Direction,
    Policy,
    StepLimit,
)

Floats = NDArray[np.float64]
MILLI = 1_000
"""The scale of metrics, which are compared in thousandths (``resource.Quantity.MilliValue``, which
rounds up).
"""
_SMALL = 1e-9
"""Smaller differences are rounding errors; the controller's values are exact in thousandths."""
_NONE = -1
"""Stands for no recommendation, because metrics were missing."""
SCALE_UP_FACTOR, SCALE_UP_LEAST = 2, 4
"""``scaleUpLimitFactor`` and ``scaleUpLimitMinimum`` of an HPA without a ``behavior``."""


@dataclass(frozen=True, slots=True)
class Reading:
    """A metric as HPAs read it.

    Attributes:
        value: one value per lane, as a total; None: every query failed.
        target: the AverageValue, for all lanes or for each.
        used: (lanes,) whether the policy has the metric; None: all do.
        failed: (lanes,) whether the query failed; None: none did.
    """

    value: Floats | None
    target: float | Floats
    used: Bools | None = None
    failed: Bools | None = None


def proposals(reading: Reading, current: Ints, tolerance: float | Floats) -> Ints:
    """Return the replicas that a metric asks for; within the tolerance, the current ones.

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


def wanted(
    readings: Sequence[Reading], current: Ints, tolerance: float | Floats
) -> tuple[Ints, Bools]:
    """Return the largest proposal over all metrics, and where there is one.

    There is none if every metric fails, or if one fails and the others would scale down.
    """
    most = np.full(len(current), _NONE)
    all_known = np.ones(len(current), np.bool_)
    for each in readings:
        used = np.True_ if each.used is None else each.used
        failed = np.bool_(each.value is None) if each.failed is None else each.failed
        all_known &= ~(used & failed)
        if each.value is None:
            continue
        asked = proposals(each, current, tolerance)
        if each.used is not None or each.failed is not None:
            asked = np.where(used & ~failed, asked, _NONE)
        most = np.maximum(most, asked)
    known = most != _NONE
    return np.where(known, most, current), known & (all_known | (most >= current))


@dataclass(frozen=True, eq=False)
class _Limits:
    """How far each lane may scale at once in one direction.

    Attributes:
        absent: (lanes,) whether the policy does not configure the direction.
        disabled: (lanes,) whether the lane never scales in that direction.
        least: (lanes,) whether the smallest of several limits applies.
        pods: (limits, lanes) whether the limit is a number of pods rather than a percentage; a
            policy with fewer limits than another repeats its first.
        value: the limit, in the same shape.
        period_s: the period, in the same shape.
    """

    absent: Bools
    disabled: Bools
    least: Bools
    pods: Bools
    value: Ints
    period_s: Ints

    @classmethod
    def of(cls, directions: Sequence[Direction | None], futures: int) -> _Limits:
        """Return the limits of the policies, each in all futures."""
        limits = [() if each is None else each.limits for each in directions]
        most = max(len(each) for each in limits)
        usual = StepLimit(PODS, 0, 0)
        filled = [(*each, *(each[:1] or (usual,)) * (most - len(each))) for each in limits]
        selects = [MAX if each is None else each.select for each in directions]
        shape = len(directions), most

        def by_limit(values: list[list[int]]) -> Ints:
            lanes = np.repeat(np.array(values, np.int64).reshape(shape).T, futures, axis=1)
            return np.asarray(lanes)

        return cls(
            absent=np.repeat([each is None for each in directions], futures),
            disabled=np.repeat([select == DISABLED for select in selects], futures),
            least=np.repeat([select == MIN for select in selects], futures),
            pods=by_limit([[each.type == PODS for each in of] for of in filled]) > 0,
            value=by_limit([[each.value for each in of] for of in filled]),
            period_s=by_limit([[each.period_s for each in of] for of in filled]),
        )

    def chosen(self, of_limits: Ints) -> Ints:
        """Return (lanes,) the binding limit out of (limits, lanes)."""
        largest = of_limits.max(axis=0)
        if not self.least.any():
            return np.asarray(largest)
        return np.asarray(np.where(self.least, of_limits.min(axis=0), largest))


class HorizontalPodAutoscaler:
    """The state of HPAs that decide at the same times, in several futures each.

    Attributes:
        policies: the policies.
        futures: the number for each policy; the lanes of a policy follow those of the previous one.
    """

    def __init__(self, policies: Sequence[Policy], futures: int) -> None:
        self.policies, self.futures = tuple(policies), futures
        self._tolerance = self._lanes([each.tolerance for each in policies])
        # the HPA that KEDA makes never has zero
        self._least = self._lanes([max(each.least, 1) for each in policies])
        self._most = self._lanes([each.most for each in policies])
        self._legacy = self._lanes([each.up is None for each in policies])
        self._up = _Limits.of([each.up for each in policies], futures)
        self._down = _Limits.of([each.down for each in policies], futures)
        up_s = [_window_s(each.up, 0) for each in policies]
        down_s = [_window_s(each.down, each.down_window_s) for each in policies]
        self._up_window_s, self._down_window_s = self._lanes(up_s), self._lanes(down_s)
        periods = [*self._up.period_s.flat, *self._down.period_s.flat]
        self._longest_period_s = max(periods, default=0)
        self._kept_s = max(*up_s, *down_s)
        """The time for which a recommendation counts."""
        self._asked_s: list[int] = []
        """When each recommendation was made, in ascending order."""
        self._asked: list[Ints] = []
        """The recommendations; `_NONE` in lanes without one."""
        self._added: list[tuple[int, Ints]] = []
        self._removed: list[tuple[int, Ints]] = []
        self._still_since_s: int | None = None
        """The time since which every recommendation has equalled the number of replicas, in all
        lanes.
        """
        self._last: tuple[Sequence[Reading], Ints, Ints, Bools] | None = None
        """The last readings and replicas, and the resulting recommendations."""

    def _lanes(self, values: Sequence[Any]) -> NDArray[Any]:
        return np.repeat(np.array(values), self.futures)

    def decide(self, at_s: int, current: Ints, readings: Sequence[Reading]) -> Ints:
        """Return the replicas in each lane from now on, or ``current`` itself if none changes.

        Args:
            at_s: the time in seconds; later than the last decision.
            current: the current replicas.
            readings: all metrics of the policies; the same object as before if they are unchanged.
        """
        if not self._asked_s:
            # recordInitialRecommendation
            self._asked_s, self._asked = [at_s], [current]
        asked, known = self._wanted(current, readings)
        if self._is_still(at_s, current, asked, known):
            return current
        bounded = self._bounded(current)
        enabled = current > 0
        free = enabled & (bounded == current) & known
        stable = self._stabilized(at_s, current, asked, free)
        limited, rises, falls = stable, stable > current, stable < current
        if rises.any():
            most = np.minimum(self._most, self._up_limit(at_s, current))
            limited = np.where(rises, np.minimum(stable, most), limited)
        if falls.any():
            least = np.maximum(self._least, self._down_limit(at_s, current))
            limited = np.where(falls, np.maximum(stable, least), limited)
        if self._legacy.any():
            limited = np.where(self._legacy, self._bounded(limited), limited)
        decided = np.where(free, limited, np.where(enabled, bounded, current))
        self._remember(at_s, decided - current)
        return decided

    def _wanted(self, current: Ints, readings: Sequence[Reading]) -> tuple[Ints, Bools]:
        last = self._last
        if last is not None and last[0] is readings and np.array_equal(last[1], current):
            return last[2:]
        asked, known = wanted(readings, current, self._tolerance)
        self._last = readings, current, asked, known
        return asked, known

    def _bounded(self, replicas: Ints) -> Ints:
        """Return the replicas, clipped to the minimum and maximum."""
        return np.asarray(np.minimum(np.maximum(replicas, self._least), self._most))

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
        if at_s - self._still_since_s <= max(self._kept_s, self._longest_period_s):
            return False
        # a single recommendation stands for all equal ones in the window
        self._asked_s, self._asked = [at_s], [asked]
        return True

    def _stabilized(self, at_s: int, current: Ints, asked: Ints, free: Bools) -> Ints:
        """Return the recommendation, limited to the minimum and maximum over the windows."""
        kept = bisect_left(self._asked_s, at_s - self._kept_s)
        self._asked_s, self._asked = self._asked_s[kept:], self._asked[kept:]
        highest = lowest = asked
        if self._asked:
            made_s, values = np.array(self._asked_s)[:, None], np.array(self._asked)
            # stabilizeRecommendation drops older ones; the other also drops those exactly as old
            from_s = at_s - self._down_window_s + ~self._legacy
            highest = np.maximum(asked, np.where(made_s >= from_s, values, _NONE).max(axis=0))
            if self._up_window_s.any():
                counts = (made_s > at_s - self._up_window_s) & (values != _NONE)
                lowest = np.minimum(asked, np.where(counts, values, asked).min(axis=0))
                lowest = np.where(self._legacy, asked, lowest)
        self._asked_s.append(at_s)
        self._asked.append(np.where(free, asked, _NONE))
        stable = np.minimum(np.maximum(current, lowest), highest)
        return np.asarray(np.where(self._legacy, highest, stable))

    def _up_limit(self, at_s: int, current: Ints) -> Ints:
        """Return the maximum number of replicas after a scale-up."""
        up, legacy = self._up, np.maximum(SCALE_UP_FACTOR * current, SCALE_UP_LEAST)
        if up.absent.all():
            return legacy
        begun = self._begun_with(at_s, current, up)
        more = np.ceil(begun * (100 + up.value) / 100 - _SMALL).astype(np.int64)
        most = np.maximum(up.chosen(np.where(up.pods, begun + up.value, more)), current)
        return np.where(up.absent, legacy, np.where(up.disabled, current, most))

    def _down_limit(self, at_s: int, current: Ints) -> Ints:
        """Return the minimum number of replicas after a scale-down."""
        down = self._down
        if down.absent.all():
            return np.zeros_like(current)
        begun = self._begun_with(at_s, current, down)
        fewer = np.trunc(begun * (100 - down.value) / 100 + _SMALL).astype(np.int64)
        of_limits = np.where(down.pods, begun - down.value, fewer)
        # MIN selects the smallest change, and so the largest number
        least = np.minimum(-down.chosen(-of_limits), current)
        return np.where(down.absent, 0, np.where(down.disabled, current, least))

    def _begun_with(self, at_s: int, current: Ints, limits: _Limits) -> Ints:
        """Return (limits, lanes) the replicas at the start of each limit's period."""
        since_s = at_s - limits.period_s
        begun = np.broadcast_to(current, since_s.shape)
        for then_s, added in self._added:
            begun = begun - np.where(then_s > since_s, added, 0)
        for then_s, removed in self._removed:
            begun = begun + np.where(then_s > since_s, removed, 0)
        return begun

    def _remember(self, at_s: int, change: Ints) -> None:
        """Record a change for as long as a limit needs it."""
        if change.any():
            self._added.append((at_s, np.maximum(change, 0)))
            self._removed.append((at_s, np.maximum(-change, 0)))
        since_s = at_s - self._longest_period_s
        if self._added and self._added[0][0] <= since_s:
            self._added = [each for each in self._added if each[0] > since_s]
            self._removed = [each for each in self._removed if each[0] > since_s]


def _window_s(direction: Direction | None, usual: int) -> int:
    stated = None if direction is None else direction.stabilization_s
    return usual if stated is None else stated
