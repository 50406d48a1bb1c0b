"""Names of operations on a broker's member list, to which the draws of its notices belong."""

from enum import StrEnum
from functools import lru_cache

from rebalance_core.timing.draws import entity_of

_BITS = (1 << 62) - 1


class Operation(StrEnum):
    """Why a broker notifies the group of a change."""

    JOINS = "joins"
    """A process registers as it joins."""
    AGAIN = "again"
    """It registers with a new or returned broker; once in each lifetime of the broker."""
    GOES = "goes"
    """It unregisters, or its connection ends."""
    SUBSCRIBES = "subscribes"
    """A heartbeat with other topics, sent at once; numbered by the state of the process."""
    TICKS = "ticks"
    """A heartbeat with other topics, sent by the timer; numbered by the tick."""
    CHANGES = "changes"
    """A heartbeat with other topics, after a pass that changed something; numbered by the pass."""


@lru_cache(maxsize=1 << 17)
def operation_id(
    entity: int, broker_name: str, broker_lifetime: int, operation: Operation, number: int = 0
) -> int:
    """Return the tick of an operation's draws ``NOTICE`` and ``NOTICE_LOST``, below 2 ** 63.

    Args:
        entity: the entity of the process that registers, departs or sends the heartbeat.
        broker_name: where.
        broker_lifetime: number of the broker's lifetime in the timeline.
        operation: what for.
        number: distinguishes operations of a kind; see `Operation`.
    """
    base = entity_of("op", str(entity), broker_name, str(broker_lifetime), operation)
    return (base & _BITS) + number
