"""What KEDA adds to the HPA that it creates: scaling to and from zero, and a fallback for failed
queries.

`KedaScaler.decide` is ``scaleExecutor.RequestScale`` (KEDA 2.x, ``pkg/scaling/executor``): it
checks every ``pollingInterval``, starts the minimum number of replicas (one if that is zero) when a
trigger is active, and stops all replicas once no trigger has been active for ``cooldownPeriod``.
With at least one replica, the HPA alone decides, and never goes below one; a failed query gets
``target x fallback.replicas`` (``fallback.GetMetricsWithFallback``).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.planning.autoscale.hpa import HorizontalPodAutoscaler, Reading
from rebalance_core.planning.autoscale.policy import Keda, Policy

_NEVER = -(2**40)


@dataclass
class KedaScaler:
    """A ScaledObject, in several futures.

    Attributes:
        policy: its configuration, with ``keda``.
        futures: the number of futures.
    """

    policy: Policy
    futures: int
    _hpa: HorizontalPodAutoscaler = field(init=False)
    _active_s: Ints = field(init=False)
    _failures: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._hpa = HorizontalPodAutoscaler([self.policy], self.futures)
        self._active_s = np.full(self.futures, _NEVER, np.int64)

    @property
    def _keda(self) -> Keda:
        assert self.policy.keda is not None
        return self.policy.keda

    def decide(self, at_s: int, current: Ints, readings: Sequence[Reading]) -> Ints:
        """Return the new number of replicas in each future; the arguments are those of the HPA."""
        replicas = current
        if at_s % self._keda.polling_s == 0:
            replicas = self._woken_or_rested(at_s, current, readings)
        if at_s % self.policy.sync_s:
            return replicas
        return self._hpa.decide(at_s, replicas, self._with_fallback(readings, replicas))

    def _woken_or_rested(self, at_s: int, current: Ints, readings: Sequence[Reading]) -> Ints:
        values = [each.value for each in readings if each.value is not None]
        active: Bools = np.zeros(self.futures, np.bool_)
        for value in values:
            active |= value > self._keda.activation
        self._active_s = np.where(active, at_s, self._active_s)
        woken = np.where(active & (current == 0), max(self.policy.least, 1), current)
        if not values and self._keda.fallback is not None and self._falls_back():
            return woken  # a failing trigger with a fallback does not scale to zero
        if self.policy.least:
            return np.where(~active, np.maximum(woken, self.policy.least), woken)
        cooled = self._active_s + self._keda.cooldown_s < at_s
        return np.where(~active & cooled, 0, woken)

    def _falls_back(self) -> bool:
        return any(count > self._keda.failure_threshold for count in self._failures)

    def _with_fallback(self, readings: Sequence[Reading], current: Ints) -> list[Reading]:
        """Return the readings; a query that has failed too often gets the fallback's value."""
        if len(self._failures) != len(readings):
            self._failures = [0] * len(readings)
        answered = []
        for number, each in enumerate(readings):
            self._failures[number] = 0 if each.value is not None else self._failures[number] + 1
            fails = self._failures[number] > self._keda.failure_threshold
            if each.value is None and fails and self._keda.fallback is not None:
                value = np.full(len(current), each.target * self._keda.fallback)
                each = Reading(value, each.target)
            answered.append(each)
        return answered
