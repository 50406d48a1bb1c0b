"""Models varying service times: how many messages a member has read but cannot commit yet.

A member commits the offset before the oldest message in its handlers, so a slow message holds back
the commits of later ones. These count as lag, and the next owner reads them again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from math import log, sqrt
from statistics import NormalDist

import numpy as np

from rebalance_core.planning.autoscale.hpa import Floats

P99 = NormalDist().inv_cdf(0.99)
MOST_P99 = 14.9
"""The maximum ratio of p99 to the mean, below that of a log-normal time, exp(P99² / 2) = 14.97."""
MAX_SPAN = 2_000
"""DefaultMQPushConsumer.consumeConcurrentlyMaxSpan: a member stops pulling from a queue whose
newest cached message is this far from the oldest.
"""
_LOADS = np.geomspace(1e-3, 1e5, 161)
_TIMES = np.concatenate([[0.0], np.geomspace(1e-4, 1e5, 2_000)])
"""The time grid, in units of the mean service time."""


def sigma_of(p99: float) -> float:
    """Return the standard deviation of the logarithm, given p99 as a multiple of the mean.

    >>> sigma_of(1.0), round(sigma_of(5.0), 3)
    (0.0, 0.845)
    """
    return P99 - sqrt(P99**2 - 2 * log(p99))


@dataclass(frozen=True, eq=False)
class Uncommitted:
    """The mean number of messages in a queue from the oldest one in a handler on.

    Messages arrive as a Poisson process, and each takes an independent log-normal time, since
    handlers run in many threads. The oldest message is then older than ``t`` unless all earlier
    ones are finished, with probability ``1 - exp(-load x E[(time - t)+])``.

    Attributes:
        sigma: the standard deviation of the logarithm of the service time; 0 if every message takes
            the mean.
    """

    sigma: float
    _share: Floats = field(init=False, repr=False)
    """(loads,) the number of messages as a function of the load."""

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
        """Return the number of messages for the given arrivals per mean service time.

        >>> Uncommitted(0.0).messages(np.array([0.5, 30.0])).tolist()
        [0.5, 30.0]
        """
        if self.sigma == 0:
            return load
        share = np.interp(np.log(np.maximum(load, _LOADS[0])), np.log(_LOADS), self._share)
        return np.asarray(np.minimum(load * share, np.maximum(load, MAX_SPAN)))


def _excess(sigma: float) -> Floats:
    """Return (times,) the mean excess of a log-normal time with mean 1 over each time."""
    normal = np.vectorize(NormalDist().cdf, otypes=[np.float64])
    above = -np.log(np.maximum(_TIMES, 1e-300))
    excess = normal((above + sigma**2 / 2) / sigma) - _TIMES * normal(
        (above - sigma**2 / 2) / sigma
    )
    return np.asarray(np.maximum(excess, 0.0))
