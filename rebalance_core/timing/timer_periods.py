"""Arrays of times, and the periods of a client's timers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.times import LOCK_RENEWAL_MS, ROUTE_POLL_MS
from rebalance_core.model.versions import parse_version
from rebalance_core.timing.group_timeline import ProcessLifetime
from rebalance_core.timing.options import MS_US, SECOND_US

Times = NDArray[np.int64]

NEVER = np.iinfo(np.int64).max // 2
"""A time after all others."""
BEFORE_ALL = -NEVER
"""A time before the log begins."""

POLL_US = ROUTE_POLL_MS * MS_US
"""The brokers' period; clients may have other intervals, as in `TimerPeriods`."""
LOCK_RENEWAL_US = LOCK_RENEWAL_MS * MS_US
MIN_INTERVAL = (5, 2, 0)  # ISSUE #7644
"""The first version whose clients repeat an unbalanced pass after a second (rocketmq.md §3.1)."""
FIRST_POLL_US = 10 * MS_US
"""MQClientInstance.startScheduledTask: initial delay of the route poll."""
FIRST_HEARTBEAT_US = 1 * SECOND_US
"""MQClientInstance.startScheduledTask: initial delay of the heartbeat."""
FIRST_COMMIT_US = 10 * SECOND_US
"""MQClientInstance.startScheduledTask: initial delay of persistAllConsumerOffset."""
FIRST_LOCK_RENEWAL_US = 1 * SECOND_US
"""ConsumeMessageOrderlyService.start: initial delay of lockMQPeriodically."""


@dataclass(frozen=True, eq=False)
class TimerPeriods:
    """The periods of each client's timers: (lifetimes, 1) arrays, in microseconds.

    Attributes:
        poll: between route polls.
        beat: between heartbeats.
        wait: between passes of a client that is not woken by a notice.
        least: the minimum between two passes (5.2+).
    """

    poll: Times
    beat: Times
    wait: Times
    least: Times

    @classmethod
    def from_lifetimes(cls, lifetimes: Sequence[ProcessLifetime]) -> TimerPeriods:
        """Return the periods for the lifetimes' intervals; a wait is at least the minimum
        interval.
        """
        rows = []
        for lifetime in lifetimes:
            intervals, version = (
                lifetime.intervals,
                parse_version(lifetime.states[0][1].rules_version),
            )
            least = intervals.min_interval_ms if version >= MIN_INTERVAL else 0
            wait = max(intervals.wait_interval_ms, least)
            rows.append(
                (
                    intervals.poll_name_server_interval_ms,
                    intervals.heartbeat_broker_interval_ms,
                    wait,
                    least,
                )
            )
        columns = np.array(rows, np.int64).reshape(-1, 4) * MS_US
        return cls(*(columns[:, place : place + 1] for place in range(4)))
