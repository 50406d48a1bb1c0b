"""The queues from which a producer may choose, in its order
(``topicRouteData2TopicPublishInfo``).
"""

import re

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.producers.static_topics import static_queues
from rebalance_core.producers.topic_route import PERM_WRITE, TopicRoute

_JAVA_INT = re.compile(r"[+-]?\d+")


class RouteError(AllocationError):
    """The route cannot be turned into a publish list; the class and message are Java's."""


def publish_list(topic: str, route: TopicRoute) -> list[MessageQueue]:
    """Return the publish list, in round-robin order. rocketmq.md §6.3, §9.3.

    An order configuration is used as written, and a static topic has its logical queues; otherwise,
    the list contains the brokers with the WRITE bit and a master, in UTF-16 order, with ascending
    queue ids.

    Raises:
        RouteError: The order configuration is malformed.
    """
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    if route.order_topic_conf is None and route.mappings:
        return sorted(static_queues(topic, route.mappings), key=lambda queue: queue.queue_id)
    masters: dict[str, bool] = {}
    for broker in route.broker_datas:
        masters.setdefault(broker.broker_name, broker.has_master)  # the first of a name counts
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: java_string_key(data.broker_name))
        if data.perm & PERM_WRITE and masters.get(data.broker_name, False)
        for queue_id in range(data.write_queue_nums)
    ]


def is_order_topic(route: TopicRoute) -> bool:
    """Return True if an order configuration applies; "" counts as none."""
    return bool(route.order_topic_conf)


def _ordered_queues(topic: str, conf: str) -> list[MessageQueue]:
    """Parse ``broker:number;broker:number`` as ``String.split`` and ``Integer.parseInt`` do."""
    queues = []
    for entry in _java_split(conf, ";"):
        items = _java_split(entry, ":")
        if len(items) < 2:
            message = f"Index 1 out of bounds for length {len(items)}"
            raise RouteError("ArrayIndexOutOfBoundsException", message)
        queues += [MessageQueue(topic, items[0], i) for i in range(_java_int(items[1]))]
    return queues


def _java_split(text: str, separator: str) -> list[str]:
    """Return ``String.split``, which drops trailing empty strings but returns "" for an empty
    string.
    """
    parts = text.split(separator)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _java_int(text: str) -> int:
    number = int(text) if _JAVA_INT.fullmatch(text) else None
    if number is None or not -(2**31) <= number < 2**31:
        raise RouteError("NumberFormatException", f'For input string: "{text}"')
    return number
