"""Members that let a broker divide the queues: QueryAssignment (rocketmq.md §2.8)."""

from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_REBALANCE,
    PUSH,
)
from rebalance_core.model.versions import parse_version

QUERY_ASSIGNMENT = (5, 0, 0)
"""The first client version that supports the request."""


def asks_broker(
    rebalance_mode: str, consumer_type: str, message_model: str, ordered: bool, client_version: str
) -> bool:
    """Return True if a member queries a broker for its share; all others divide on the client.

    Upstream: ``RebalancePushImpl.clientRebalance``. Pull and lite pull consumers have no such
    setting.

    Args:
        rebalance_mode: the group's rebalance mode, as in consumer_groups.
        consumer_type: the group's consumer type.
        message_model: the member's own.
        ordered: whether the group's listener is orderly.
        client_version: the member's own; invalid text raises `model.errors.UsageError`.

    >>> asks_broker("BROKER", "PUSH", "CLUSTERING", ordered=False, client_version="5.0.0")
    True
    >>> asks_broker("BROKER", "PUSH", "CLUSTERING", ordered=False, client_version="4.9")
    False
    """
    return (
        rebalance_mode == BROKER_REBALANCE
        and consumer_type == PUSH
        and message_model != BROADCASTING
        and not ordered
        and parse_version(client_version) >= QUERY_ASSIGNMENT
    )
