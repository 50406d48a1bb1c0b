"""The number of messages that a queue has received by an instant, an integer that never decreases.

Messages arrive at the topic's rate, more by day than by night, while the broker is up.
"""

from collections.abc import Sequence
from itertools import accumulate

import numpy as np
import numpy.typing as npt

from rebalance_core.model.times import DAY_MS, HOUR_MS
from rebalance_core.synthetic.clusters import Cluster, Downtime

Longs = npt.NDArray[np.int64]

HOUR_WEIGHTS = (
    4,
    3,
    2,
    2,
    2,
    3,
    4,
    7,
    10,
    14,
    16,
    15,
    14,
    13,
    15,
    16,
    15,
    14,
    13,
    15,
    16,
    13,
    9,
    5,
)
"""Tenths of the mean rate, by local hour; they sum to 240."""

TENTHS = 10
KILOSECOND_MS = 1_000_000

_WEIGHTS = np.array(HOUR_WEIGHTS, np.int64)
_BEFORE = np.array([0, *accumulate(HOUR_WEIGHTS)], np.int64)


def weighted_ms(cluster: Cluster, at_ms: Longs) -> Longs:
    """Return the milliseconds since 1970, each weighted by its hour at the cluster's location."""
    day, rest = np.divmod(at_ms + cluster.utc_offset_hours * HOUR_MS, DAY_MS)
    hour, ms = np.divmod(rest, HOUR_MS)
    weighted: Longs = (day * _BEFORE[-1] + _BEFORE[hour]) * HOUR_MS + _WEIGHTS[hour] * ms
    return weighted


def away_ms(cluster: Cluster, outages: Sequence[Downtime], at_ms: Longs) -> Longs:
    """Return the part of `weighted_ms` during which a broker with these outages was down."""
    away = np.zeros_like(at_ms)
    for outage in outages:
        ends = np.clip(at_ms, outage.from_ms, outage.to_ms)
        begin = np.array([outage.from_ms], np.int64)
        away += weighted_ms(cluster, ends) - weighted_ms(cluster, begin)
    return away


def messages(per_kilosecond: Longs, flow_ms: Longs) -> Longs:
    """Return the number of messages in an amount of flow, below 2^63; 0 for a negative flow.

    Args:
        per_kilosecond: messages per 1,000 s in an average hour.
        flow_ms: weighted milliseconds without outages.
    """
    count: Longs = per_kilosecond * np.maximum(flow_ms, 0) // (TENTHS * KILOSECOND_MS)
    return count
