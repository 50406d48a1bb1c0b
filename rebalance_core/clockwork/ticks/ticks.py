"""All times of one script that no pass can change."""

from __future__ import annotations

from rebalance_core.clockwork.ticks.list_times import ListTimes
from rebalance_core.clockwork.ticks.route_times import RouteTimes


class Ticks(ListTimes, RouteTimes):
    """Times of one script in some futures.

    Attributes:
        script: what happens.
        seeds: (S,) of the futures.
        options: what was asked for.
    """
