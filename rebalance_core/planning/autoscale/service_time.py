"""Service times that vary: what a member has read of a queue and cannot commit yet.

A member commits the offset before the oldest message in its handlers, so a slow message holds back
the commits of those that came after it: they count as lag, and the next owner reads them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from statistics import NormalDist

import numpy as np

from rebalance_core.planning.autoscale.hpa import Floats

P99 = NormalDist().inv_cdf(0.99)
MOST_P99 = 14.9
"""A log-normal time has a 99th percentile of at most exp(P99² / 2) = 14.97 times its mean."""
MAX_SPAN = 2_000
"""DefaultMQPushConsumer.consumeConcurrentlyMaxSpan: a member pulls no more of a queue whose newest
cached message is so far behind the oldest.
"""
_LOADS = np.geomspace(1e-3, 1e5, 161)
_TIMES = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 2_000)])
"""In mean service times."""


def sigma_of(p99: float) -> float:
    """Return the standard deviation of the logarithm, by the 99th percentile in means.

    >>> sigma_of(1.0), round(sigma_of(5.0), 3)
    (0.0, 0.845)
    """
    return P99 - sqrt(P99**2 - 2 * log(p99))


@dataclass(frozen=True, eq=False)
class Uncommitted:
    """Messages of a queue from the oldest in handlers on, in the mean.

    Messages come by chance (Poisson) and each takes a log-normal time, independently, as handlers
    run in many threads. Then the oldest is older than ``t`` unless none of those before has more to
    do: the probability is ``1 - exp(-load x E[(time - t)+])``.

    Attributes:
        sigma: the standard deviation of the logarithm of the service time; 0: every message takes
            the mean.
    """

    sigma: float
    _share: Floats = field(init=False, repr=False)
    """(loads,) messages, over the load."""

    def __post_init__(self) -> None:
        share = np.ones(len(_LOADS))
        if self.sigma > 0:
            left = _excess(self.sigma)
            for place, load in enumerate(_LOADS.tolist()):
                older = -np.expm1(-load * left)
                age = np.sum((older[1:] + older[:-1]) / 2 * np.diff(_TIMES))
                share[place] = -np.expm1(-load) / load + age
        object.__setattr__(self, "_share", share)

    def messages(self, load: Floats) -> Floats:
        """Return the messages, by messages that come in a mean service time.

        >>> Uncommitted(0.0).messages(np.array([0.5, 30.0])).tolist()
        [0.5, 30.0]
        """
        if self.sigma == 0:
            return load
        share = np.interp(np.log(np.maximum(load, _LOADS[0])), np.log(_LOADS), self._share)
        return np.asarray(np.minimum(load * share, np.maximum(load, MAX_SPAN)))


def _excess(sigma: float) -> Floats:
    """Return (times,) the mean of what a log-normal time of mean 1 exceeds each time by."""
    normal = np.vectorize(NormalDist().cdf, otypes=[np.float64])
    above = -np.log(np.maximum(_TIMES, 1e-300))
    excess = normal((above + sigma**2 / 2) / sigma) - _TIMES * normal(
        (above - sigma**2 / 2) / sigma
    )
    return np.asarray(np.maximum(excess, 0.0))
