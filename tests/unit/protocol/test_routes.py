"""Which queues can be read after which broker and topic events."""

import pytest

from rebalance_core.model.events import Event
from rebalance_core.protocol.routes import Routes


def config(queues: int | None, broker: str = "a", perm: int | None = None) -> Event:
    return Event(
        0, 0, "TOPIC_CONFIG", topic="T", broker_name=broker, read_queue_nums=queues, perm=perm
    )


def broker(event_type: str, name: str = "a") -> Event:
    return Event(0, 0, event_type, broker_name=name)


def deleted(name: str | None) -> Event:
    return Event(0, 0, "TOPIC_DELETED", topic="T", broker_name=name)


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([], ""),
        ([config(2)], "a0 a1"),
        ([config(1, "b"), config(2)], "a0 a1 b0"),  # broker order, not order of creation
        ([config(2), config(1)], "a0"),  # scaled in
        ([config(0)], ""),
        ([config(None)], ""),
        ([config(1, perm=4)], "a0"),
        ([config(1, perm=6)], "a0"),
        ([config(1, perm=2)], ""),  # write only
        ([config(1, perm=0)], ""),
        ([config(1, perm=2), config(1)], "a0"),  # null is 6 again
        ([config(1), config(1, "b"), broker("BROKER_DOWN")], "b0"),
        ([config(1), broker("BROKER_DOWN"), broker("BROKER_UP")], "a0"),
        ([broker("BROKER_DOWN"), config(1)], ""),  # a topic event raises no broker
        ([broker("BROKER_UP", "b"), config(1)], "a0"),  # never heard of: up
        ([config(1), config(1, "b"), deleted("a")], "b0"),
        ([config(1), config(1, "b"), deleted(None)], ""),
        ([deleted("a"), deleted(None)], ""),
        ([config(1), deleted(None), config(2)], "a0 a1"),
        ([config(1), Event(0, 0, "CONSUMER_JOIN", "x")], "a0"),
    ],
)
def test_readable_queues(events: list[Event], expected: str) -> None:
    routes = Routes()
    for event in events:
        routes.readable_queues("T")  # an answer holds until the next event
        routes.apply(event)
    found = " ".join(f"{q.broker_name}{q.queue_id}" for q in routes.readable_queues("T"))
    assert found == expected


def test_queue_ids_are_in_numeric_order() -> None:
    routes = Routes()
    routes.apply(config(12))
    assert [q.queue_id for q in routes.readable_queues("T")] == list(range(12))


def test_brokers_of_a_topic_count_down_or_unreadable() -> None:
    routes = Routes()
    for event in (config(0), config(1, "b", perm=0), broker("BROKER_DOWN")):
        routes.apply(event)
    assert routes.brokers_of("T") == {"a", "b"}
    assert routes.brokers_of("U") == set()
