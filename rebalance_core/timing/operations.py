"""Operations on a broker's member list, to which the draws of notices belong."""

from enum import StrEnum
from functools import lru_cache

from rebalance_core.timing.draws import entity_of

_BITS = (1 << 62) - 1


class Operation(StrEnum):
    """Why a broker notifies the group of a change."""

    JOINS = "joins"
    """A process registers while joining."""
    AGAIN = "again"
    """A process registers with a new or returned broker, once per broker lifetime."""
    GOES = "goes"
    """A process unregisters, or its connection closes."""
    SUBSCRIBES = "subscribes"
    """A heartbeat with changed topics, sent at once; numbered by the state of the process."""
    TICKS = "ticks"
    """A heartbeat with changed topics, sent by the timer; numbered by the tick."""
    CHANGES = "changes"
    """A heartbeat with changed topics, sent after a pass; numbered by the pass."""


@lru_cache(maxsize=1 << 17)
def operation_id(
    entity: int, broker_name: str, broker_lifetime: int, operation: Operation, number: int = 0
) -> int:
    """Return the tick of an operation's draws ``NOTICE`` and ``NOTICE_LOST``, below 2 ** 63.

    Args:
        entity: the entity of the process that registers, departs or sends the heartbeat.
        broker_name: the broker.
        broker_lifetime: the number of the broker's lifetime in the timeline.
        operation: the kind of operation.
        number: distinguishes operations of the same kind; see `Operation`.
    """
    base = entity_of("op", str(entity), broker_name, str(broker_lifetime), operation)
    return (base & _BITS) + number
