"""Distributions of send latency, as far as they matter, which is from `SLOW_SEND_MS` on."""

import math
from dataclasses import dataclass
from statistics import NormalDist

from rebalance_core.model.times import SLOW_SEND_MS

_NORMAL = NormalDist()
_P99 = _NORMAL.inv_cdf(0.99)


@dataclass(frozen=True, slots=True)
class FixedLatency:
    """A constant latency for every answer."""

    ms: float

    @property
    def slow_share(self) -> float:
        """The share of slow answers: 0 or 1."""
        return float(self.ms >= SLOW_SEND_MS)

    def slow_ms(self, u: float) -> int:
        """Return the same latency for every ``u``."""
        return round(self.ms)


@dataclass(frozen=True, slots=True)
class UniformLatency:
    """A latency distributed uniformly from ``low_ms`` to ``high_ms``."""

    low_ms: float
    high_ms: float

    @property
    def slow_share(self) -> float:
        """The part of the range that is slow."""
        slow = self.high_ms - max(self.low_ms, SLOW_SEND_MS)
        return min(max(slow / (self.high_ms - self.low_ms), 0.0), 1.0)

    def slow_ms(self, u: float) -> int:
        """Return a latency drawn uniformly from the slow part."""
        low = max(self.low_ms, SLOW_SEND_MS)
        return math.floor(low + u * (self.high_ms - low))


@dataclass(frozen=True, slots=True)
class LognormalLatency:
    """A lognormal distribution, given by its median and 99th percentile, which dashboards show."""

    median_ms: float
    p99_ms: float

    @property
    def slow_share(self) -> float:
        """The upper tail."""
        return _NORMAL.cdf(-self._slow_deviation)

    def slow_ms(self, u: float) -> int:
        """Return the inverse of the tail, which remains exact far out."""
        deviation = -_NORMAL.inv_cdf(max(u * self.slow_share, 1e-300))
        slow = self.median_ms * math.exp(self._sigma * deviation)
        return max(math.floor(slow), SLOW_SEND_MS)

    @property
    def _sigma(self) -> float:
        return math.log(self.p99_ms / self.median_ms) / _P99

    @property
    def _slow_deviation(self) -> float:
        return math.log(SLOW_SEND_MS / self.median_ms) / self._sigma


Latency = FixedLatency | UniformLatency | LognormalLatency
"""The latency of a broker's answers: ``slow_share`` of them take `SLOW_SEND_MS` or longer;
``slow_ms`` of a number is the latency at that quantile of the slow ones.
"""
