"""Publish vectors: the publish list and the subscribe set of a route."""

from collections.abc import Iterator

from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.producers.routes import RouteError, is_order_topic, publish_list
from rebalance_core.producers.static_topics import static_queues
from rebalance_core.producers.topic_route import (
    PERM_READ,
    BrokerData,
    QueueData,
    QueueMapping,
    TopicRoute,
)
from tests.conformance.replay_world import Json

TOPIC = "T"


def read_route(value: Json) -> TopicRoute:
    """The route of a vector."""
    return TopicRoute(
        tuple(QueueData(*data) for data in value["queue_datas"]),
        tuple(BrokerData(name, frozenset(ids)) for name, ids in value["broker_datas"]),
        value["order_topic_conf"],
        {
            broker: QueueMapping(m["scope"], m["total_queues"], m["epoch"])
            for broker, m in value.get("mapping", {}).items()
        },
    )


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


def pairs(queues: list[MessageQueue]) -> list[list[str | int]]:
    """Queues as vectors write them."""
    return [[queue.broker_name, queue.queue_id] for queue in queues]


def route_facts(scenario: Json) -> Iterator[str]:
    """One text for the publish list, one for the subscribe set: what differs, or nothing."""
    route = read_route(scenario)
    try:
        published: object = pairs(publish_list(TOPIC, route))
        order: bool | None = is_order_topic(route)
    except RouteError as error:
        published, order = f"!{error.java_class}", None
    expected = (scenario["publish"], scenario["order_topic"])
    yield "" if (published, order) == expected else f"expected {expected}, got {published, order}"
    subscribed = pairs(sort_queues(subscribe_set(TOPIC, route)))
    wanted = scenario["subscribe"]
    yield "" if subscribed == wanted else f"subscribe: expected {wanted}, got {subscribed}"
