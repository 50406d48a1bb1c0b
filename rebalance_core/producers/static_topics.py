"""Logical queues of a static topic (``topicRouteData2EndpointsForStaticTopic``, 5.x)."""

from collections.abc import Mapping

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.concurrent_map import ConcurrentMapOrder, java_hash
from rebalance_core.producers.topic_route import QueueMapping

MOCK_BROKER_PREFIX = "__syslo__"  # MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX
GLOBAL_SCOPE = "__global__"  # MixAll.METADATA_SCOPE_GLOBAL
_DEFAULT_CAPACITY = 16  # new ConcurrentHashMap<>()


def static_queues(topic: str, mappings: Mapping[str, QueueMapping]) -> list[MessageQueue]:
    """Return the logical queues, in the order of upstream's map. rocketmq.md §9.3.

    A scope has the maximum number that any of its brokers states; mappings without a scope are
    ignored.
    """
    totals: dict[str, int] = {}
    for mapping in mappings.values():
        if mapping.scope is not None:
            total = mapping.total_queues if mapping.epoch >= -1 else 0
            totals[mapping.scope] = max(totals.get(mapping.scope, 0), total)
    order = ConcurrentMapOrder(_queue_hash, _DEFAULT_CAPACITY)
    for scope, total in totals.items():
        for queue_id in range(total):
            order.add(MessageQueue(topic, mock_broker_name(scope), queue_id))
    return list(order)


def mock_broker_name(scope: str) -> str:
    """Return ``TopicQueueMappingUtils.getMockBrokerName``: the broker name of a scope's queues."""
    return MOCK_BROKER_PREFIX + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def _queue_hash(queue: MessageQueue) -> int:
    """Return ``MessageQueue.hashCode``."""
    code = 31 + java_hash(queue.broker_name)
    code = 31 * code + queue.queue_id
    return (31 * code + java_hash(queue.topic)) & 0xFFFFFFFF
