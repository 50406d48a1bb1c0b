"""Members that add a queue only with its order lock (rocketmq.md §7)."""

from rebalance_core.model import times
from rebalance_core.model.group_settings import (
    BROADCASTING,
    PUSH,
)
from rebalance_core.model.versions import Version

BROADCASTING_WITHOUT_LOCKS = (5, 3, 2)
"""From this version on, ConsumeOrderly of a BROADCASTING consumer takes no broker locks."""


def locks_on_addition(
    consumer_type: str, message_model: str, ordered: bool, client_version: Version
) -> bool:
    """Return True if a queue is added only once the master has granted its lock (``needLockMq``).

    >>> locks_on_addition("PUSH", "CLUSTERING", ordered=True, client_version=(5, 3, 3))
    True
    >>> locks_on_addition("PUSH", "BROADCASTING", ordered=True, client_version=(5, 3, 3))
    False
    """
    if not (consumer_type == PUSH and ordered):
        return False
    return message_model != BROADCASTING or client_version < BROADCASTING_WITHOUT_LOCKS


LOCK_EXPIRY_MARGIN_MS = 1_000
ORDER_LOCK_MS = times.BROKER_LOCK_LIFE_MS + LOCK_EXPIRY_MARGIN_MS  # the lock of a client that died
