"""The queues that consumers share (``topicRouteData2TopicSubscribeInfo``)."""

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.routes.static_queues import static_queues
from rebalance_core.producers.routes.topic_route import PERM_READ, TopicRoute


def subscribe_set(topic: str, route: TopicRoute) -> frozenset[MessageQueue]:
    """The subscribe set: READ bit, ids below readQueueNums; masters are not asked for.

    A static topic gives its logical queues; an order configuration is ignored. rocketmq.md §6.3.
    """
    if route.mappings:
        return frozenset(static_queues(topic, route.mappings))
    return frozenset(
        MessageQueue(topic, data.broker_name, queue_id)
        for data in route.queue_datas
        if data.perm & PERM_READ
        for queue_id in range(data.read_queue_nums)
    )
