"""Rules on small inputs; the vectors of the released classes are in tests/conformance."""

from itertools import pairwise

import pytest

from rebalance_core.model.versions import parse_version
from rebalance_core.producers.concurrent_map import ConcurrentMapOrder, java_hash
from rebalance_core.producers.counter import Counter
from rebalance_core.producers.fault_table import FaultTable
from rebalance_core.producers.profile import ProducerProfile, isolation_ms, profile_of
from rebalance_core.producers.publish_info import PublishInfo
from rebalance_core.producers.routes import RouteError, publish_list
from rebalance_core.producers.send_failures import Reply
from rebalance_core.producers.send_record import Producer, ProducerSettings
from rebalance_core.producers.sending import send
from rebalance_core.producers.static_topics import static_queues
from rebalance_core.producers.strategy import FaultStrategy, new_strategy
from rebalance_core.producers.topic_route import BrokerData, QueueData, QueueMapping, TopicRoute


def profile(version: str) -> ProducerProfile:
    return profile_of(parse_version(version))


def counter(value: int, version: str) -> Counter:
    its = profile(version)
    return Counter(value, lambda: 0, its.raw_seed, its.masked_counter)


def route(*brokers: tuple[str, int, int], masters: tuple[str, ...] = ("a", "b", "c")) -> TopicRoute:
    return TopicRoute(
        tuple(QueueData(name, queues, queues, perm) for name, queues, perm in brokers),
        tuple(BrokerData(name, frozenset({0})) for name in masters),
    )


def test_the_publish_list_needs_write_permission_and_a_master() -> None:
    given = route(("c", 1, 6), ("b", 2, 4), ("a", 2, 2), ("d", 3, 6))
    assert [(q.broker_name, q.queue_id) for q in publish_list("t", given)] == [
        ("a", 0),
        ("a", 1),
        ("c", 0),
    ]


@pytest.mark.parametrize(
    ("conf", "java_class"),
    [("a", "ArrayIndexOutOfBoundsException"), ("a:x", "NumberFormatException")],
)
def test_a_malformed_order_configuration_throws(conf: str, java_class: str) -> None:
    with pytest.raises(RouteError) as caught:
        publish_list("t", TopicRoute((), (), conf))
    assert caught.value.java_class == java_class


def test_logical_queues_are_those_of_the_broker_that_states_most() -> None:
    mappings = {"a": QueueMapping("x", 1, 1), "b": QueueMapping("x", 3, 0)}
    queues = static_queues("t", mappings)
    assert sorted(q.queue_id for q in queues) == [0, 1, 2]
    assert {q.broker_name for q in queues} == {"__syslo__x"}


def test_a_map_of_java_is_ordered_anew_when_it_grows() -> None:
    order = ConcurrentMapOrder(java_hash, 32)
    names = [f"broker-{i}" for i in range(23)]
    for name in names:
        order.add(name)
    before = list(order)
    order.add("broker-23")  # the 24th doubles the table
    assert sorted(order) == sorted([*names, "broker-23"])
    assert list(order) != before
    order.remove("broker-5")
    assert "broker-5" not in list(order)


@pytest.mark.parametrize(
    ("version", "latency_ms", "isolation", "avoid_ms"),
    [
        ("4.9.7", 549, False, 0),
        ("4.9.7", 550, False, 30_000),
        ("4.9.7", 1, True, 600_000),
        ("5.1.3", 1000, False, 60_000),
        ("5.1.4", 1000, False, 2_000),
        ("5.3.3", 1, True, 10_000),
    ],
)
def test_how_long_a_broker_is_avoided(
    version: str, latency_ms: int, isolation: bool, avoid_ms: int
) -> None:
    assert isolation_ms(latency_ms, isolation, profile(version)) == avoid_ms


def test_a_fast_result_opens_a_broker_to_5_1_3_only() -> None:
    for extends in (True, False):
        table = FaultTable(extends)
        table.update("a", 600, 30_000, True, 0)
        table.update("a", 1, 0, True, 10)
        assert table.is_available("a", 10) is not extends


def strategy(version: str, *slow: str) -> FaultStrategy:
    made = new_strategy(profile(version), True, counter(0, version))
    for broker in slow:
        made.report(broker, 600, False, True, 0)
    return made


@pytest.mark.parametrize(
    ("version", "last", "chosen"),
    [
        ("4.9.7", "b", ("b", 0)),  # the last broker is not avoided
        ("5.1.3", "b", ("c", 0)),  # 5.1.1 to 5.1.3: it is
        ("5.3.3", "b", ("c", 0)),
        ("5.3.3", None, ("b", 0)),
    ],
)
def test_the_scan_passes_over_slow_brokers(
    version: str, last: str | None, chosen: tuple[str, int]
) -> None:
    given = route(("a", 1, 6), ("b", 1, 6), ("c", 1, 6))
    info = PublishInfo(publish_list("t", given), counter(2, version), given)
    queue = strategy(version, "a").select(info, last, False, 1)
    assert (queue.broker_name, queue.queue_id) == chosen


@pytest.mark.parametrize(
    ("version", "kept"), [("4.9.7", False), ("4.9.8", True), ("5.0.0", False), ("5.3.3", True)]
)
def test_without_a_good_broker_old_versions_write_into_the_list(version: str, kept: bool) -> None:
    given = route(("a", 1, 6), ("b", 3, 6))
    info = PublishInfo(publish_list("t", given), counter(0, version), given)
    before = list(info.queues)
    made = strategy(version, "a", "b")
    made.report("a", 5000, False, True, 0)
    for _ in range(4):
        made.select(info, None, False, 1)
    assert (info.queues == before) is kept


class Script:
    """Answers of every broker, in turn."""

    def __init__(self, *kinds: tuple[str, int]) -> None:
        self.answers = [Reply(*kind) for kind in kinds]

    def knows(self, broker_name: str) -> bool:
        return True

    def answer(self, broker_name: str, queue_id: int, timeout_ms: int, now_ms: int) -> Reply:
        return self.answers.pop(0)


@pytest.mark.parametrize(
    ("kinds", "timeout_ms", "status", "code"),
    [
        ([("ok", 5)], 3000, "SEND_OK", None),
        ([("code:1", 5), ("ok", 5)], 3000, "SEND_OK", None),
        ([("code:13", 5)], 3000, None, 13),
        ([("connect", 1)] * 3, 3000, None, 10001),
        ([("ok", 4000)] * 3, 3000, None, 10002),  # one attempt uses the whole timeout up
        ([("flush_disk_timeout", 5)], 3000, "FLUSH_DISK_TIMEOUT", None),
    ],
)
def test_what_a_send_ends_with(
    kinds: list[tuple[str, int]], timeout_ms: int, status: str | None, code: int | None
) -> None:
    given = route(("a", 1, 6), ("b", 1, 6))
    info = PublishInfo(publish_list("t", given), counter(0, "5.3.3"), given)
    producer = Producer(strategy("5.3.3"), info, ProducerSettings())
    record = send(producer, Script(*kinds), timeout_ms)
    assert record.status == status
    assert (record.failure.code if record.failure else None) == code
    brokers = [pick.broker_name for pick in record.picks]
    assert all(x != y for x, y in pairwise(brokers))
