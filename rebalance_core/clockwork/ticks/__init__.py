"""Times that no pass can change, of many futures at once: joins, endings, registrations, ticks.

Arrays have the seeds as their last axis and hold microseconds since the epoch. Begin with `Ticks`.
"""

from rebalance_core.clockwork.ticks.event_times import (
    BEFORE_ALL,
    FIRST_HEARTBEAT_US,
    FIRST_LOCK_RENEWAL_US,
    FIRST_POLL_US,
    HEARTBEAT_US,
    LOCK_RENEWAL_US,
    NEVER,
    POLL_US,
    Times,
)
from rebalance_core.clockwork.ticks.ticks import Ticks

__all__ = [
    "BEFORE_ALL",
    "FIRST_HEARTBEAT_US",
    "FIRST_LOCK_RENEWAL_US",
    "FIRST_POLL_US",
    "HEARTBEAT_US",
    "LOCK_RENEWAL_US",
    "NEVER",
    "POLL_US",
    "Ticks",
    "Times",
]
