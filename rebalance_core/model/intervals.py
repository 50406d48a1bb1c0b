"""Intervals of a client's timers."""

from dataclasses import dataclass
from typing import Literal, get_args

from rebalance_core.model import times


@dataclass(frozen=True, slots=True)
class Intervals:
    """Intervals of a client's timers in ms, named like the columns (rocketmq.md §6.1).

    Attributes:
        wait_interval_ms: ``rocketmq.client.rebalance.waitInterval``, between periodic passes.
        min_interval_ms: ``rocketmq.client.rebalance.minInterval`` (5.2+), between any two passes.
        poll_name_server_interval_ms: ``ClientConfig.pollNameServerInterval``.
        heartbeat_broker_interval_ms: ``ClientConfig.heartbeatBrokerInterval``.
        persist_consumer_offset_interval_ms: ``ClientConfig.persistConsumerOffsetInterval``.
    """

    wait_interval_ms: int = times.REBALANCE_WAIT_MS
    min_interval_ms: int = times.REBALANCE_MIN_INTERVAL_MS
    poll_name_server_interval_ms: int = times.ROUTE_POLL_MS
    heartbeat_broker_interval_ms: int = times.HEARTBEAT_MS
    persist_consumer_offset_interval_ms: int = times.OFFSET_PERSIST_MS


DEFAULT_INTERVALS = Intervals()
IntervalName = Literal[
    "wait_interval_ms",
    "min_interval_ms",
    "poll_name_server_interval_ms",
    "heartbeat_broker_interval_ms",
    "persist_consumer_offset_interval_ms",
]
INTERVALS: tuple[IntervalName, ...] = get_args(IntervalName)
"""The columns of consumer_groups and of a CONSUMER_JOIN."""
SHORTEST_INTERVAL_MS = 100
"""The lower limit of a timer in ms; smaller values such as 20 or 30 are probably seconds."""
LONGEST_INTERVAL_MS = 3_600_000
"""The upper limit of a timer in ms; larger values are probably microseconds."""


def is_interval(value: int) -> bool:
    """Return True for an interval in ms that a client's timer accepts."""
    return SHORTEST_INTERVAL_MS <= value <= LONGEST_INTERVAL_MS
