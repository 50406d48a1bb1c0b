"""Select and latency vectors: one choice, or one step of a fault table, a fact."""

from collections.abc import Iterator, Sequence
from itertools import cycle
from typing import Any

from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.model.versions import parse_version
from rebalance_core.producers.counter import Counter
from rebalance_core.producers.profile import ProducerProfile, profile_of
from rebalance_core.producers.publish_info import NoQueueError, PublishInfo
from rebalance_core.producers.routes import publish_list
from rebalance_core.producers.strategy import FaultStrategy, new_strategy
from rebalance_core.producers.topic_route import TopicRoute
from tests.conformance.producer_routes import TOPIC, pairs, read_route
from tests.conformance.replay_world import Json


def read_counter(value: int | None, draws: Sequence[int], profile: ProducerProfile) -> Counter:
    """A counter whose draws are given, in turn."""
    given = cycle(draws or [0])
    return Counter(value, lambda: next(given), profile.raw_seed, profile.masked_counter)


def read_info(scenario: Json, profile: ProducerProfile) -> PublishInfo:
    """The publish list and the counter of a vector; the list is made of its route."""
    route = read_route(scenario["route"])
    counter = read_counter(scenario["start_counter"], scenario.get("draws", []), profile)
    queues = publish_list(TOPIC, route)
    if pairs(queues) != scenario["queues"]:
        raise ValueError(f"publish list {pairs(queues)}, recorded {scenario['queues']}")
    return PublishInfo(queues, counter, route)


def read_strategy(scenario: Json, profile: ProducerProfile) -> FaultStrategy:
    """The strategy of a vector."""
    worst = read_counter(scenario.get("start_worst"), [], profile)
    return new_strategy(profile, scenario["enable"], worst)


def faults_of(strategy: FaultStrategy, now_ms: int) -> list[list[Any]]:
    """The fault table as vectors write it."""
    rows = []
    items = strategy.faults.items
    for name in sorted(items, key=java_string_key):
        item = items[name]
        row: list[Any] = [name, item.latency_ms, item.start_ms, item.is_available(now_ms)]
        if strategy.profile.filters:
            row[2] = item.start_ms or None
            row += [item.reachable, item.check_ms or None]
        rows.append(row)
    return rows


def call_facts(scenario: Json) -> Iterator[str]:
    """One text for each call of a select vector."""
    profile = profile_of(parse_version(scenario["version"]))
    queues = [MessageQueue(TOPIC, broker, queue_id) for broker, queue_id in scenario["queues"]]
    counter = read_counter(scenario["start_counter"], scenario.get("draws", []), profile)
    answer: object
    info = PublishInfo(queues, counter, TopicRoute((), ()))
    for call, expected in zip(scenario["calls"], scenario["results"], strict=True):
        try:
            queue = _called(info, call)
            answer = None if queue is None else pairs([queue])[0]
        except NoQueueError as error:
            answer = f"!{error.java_class}"
        actual = [answer, counter.value]
        yield "" if actual == expected else f"{call}: expected {expected}, got {actual}"


def _called(info: PublishInfo, call: list[Any]) -> MessageQueue | None:
    match call:
        case ["plain"]:
            return info.next_queue()
        case ["last", broker]:
            return info.next_avoiding(broker)
        case ["filter", brokers]:
            return info.next_passing([lambda broker: broker in brokers])
        case ["reset"]:
            info.counter.reset()
            return None
    raise ValueError(f"unknown call {call}")


def step_facts(scenario: Json) -> Iterator[str]:
    """One text for each step of a latency vector."""
    profile = profile_of(parse_version(scenario["version"]))
    info, strategy = read_info(scenario, profile), read_strategy(scenario, profile)
    now_ms = 0
    for step, expected in zip(scenario["steps"], scenario["results"], strict=True):
        now_ms += step.get("ms", 0)
        actual = _stepped(strategy, info, step, now_ms)
        actual["faults"] = faults_of(strategy, now_ms)
        if "queues" in expected:
            actual["queues"] = pairs(info.queues)
        wrong = {
            key: (expected.get(key), actual.get(key))
            for key in expected.keys() | actual.keys()
            if expected.get(key) != actual.get(key)
        }
        yield f"{scenario['id']} {step}: {wrong}" if wrong else ""


def _stepped(strategy: FaultStrategy, info: PublishInfo, step: Json, now_ms: int) -> dict[str, Any]:
    filters, old = strategy.profile.filters, not strategy.profile.filters
    match step["op"]:
        case "advance":
            return {}
        case "result":
            reachable = step.get("reachable", True) if filters else True
            strategy.report(step["broker"], step["latency"], step["isolation"], reachable, now_ms)
            return {}
        case "select":
            before = pairs(info.queues)
            answer: dict[str, Any] = {}
            try:
                queue = strategy.select(info, step["last"], step.get("reset", False), now_ms)
                answer["queue"] = pairs([queue])[0]
            except NoQueueError as error:
                answer["queue"] = f"!{error.java_class}"
            answer["counter"] = info.counter.value
            answer |= {"queues": pairs(info.queues)} if pairs(info.queues) != before else {}
            return answer | ({"worst": strategy.worst.value} if old else {})
        case "pick" if old:
            broker = strategy.faults.pick_one_at_least(strategy.worst, now_ms)
            return {"broker": broker, "worst": strategy.worst.value}
        case "pick":
            acceptable = sorted(strategy.faults.reachable_brokers(), key=java_string_key)
            return {"acceptable": acceptable or None}
        case "detect":
            strategy.faults.detect(step["resolvable"], lambda b: b in step["alive"], now_ms)
            return {}
    raise ValueError(f"unknown step {step}")
