"""The upstream assertions about offset stores, broker offsets and order locks."""

from collections.abc import Callable, Iterator
from typing import Any

from rebalance_core.client.broker_answers import (
    BrokerAnswers,
    BrokerRefusedError,
    BrokerUnreachableError,
    QueueAnswers,
)
from rebalance_core.client.offset_stores import LocalOffsetStore, OffsetStore, RemoteOffsetStore
from rebalance_core.model.errors import RebalanceError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import parse_version

Json = dict[str, Any]
Fact = tuple[str, Any, Any]

BROKER = "DefaultBrokerName"
QUEUE = MessageQueue("FooBar", BROKER, 0)
NOTHING_COMMITTED = QueueAnswers(committed=None, max_offset=None, by_timestamp=None)
FAILURES: dict[str, Callable[[str], RebalanceError] | None] = {
    "not_found": None,
    "refused": BrokerRefusedError,
    "unreachable": BrokerUnreachableError,
}


def offset_store(row: Json, version: str) -> Iterator[Fact]:
    """One store and one queue, step by step."""
    brokers = BrokerAnswers({QUEUE: NOTHING_COMMITTED})
    client = parse_version(version)
    store: OffsetStore
    store = LocalOffsetStore(client, {}) if row["store"] == "local" else RemoteOffsetStore(client)
    for number, (step, *arguments) in enumerate(row["steps"], start=1):
        match step:
            case "update":
                store.update(QUEUE, *arguments)
            case "persist":
                store.persist(QUEUE, brokers)
            case "remove":
                store.remove(QUEUE)
            case "broker":
                brokers.answers[QUEUE] = QueueAnswers(None, None, None, FAILURES[arguments[0]])
            case "read_memory" | "read_store":
                in_memory = step == "read_memory"
                offset = store.read(QUEUE, brokers, memory_first=in_memory)
                yield f"step {number}: {step}", arguments[0], offset
            case _:
                raise ValueError(f"unknown step {step!r}")


def broker_offsets(row: Json, version: str) -> Iterator[Fact]:
    """Commits, then what the broker answers."""
    queues = [MessageQueue(topic, BROKER, i) for topic, i, _ in row["commits"] + row["queries"]]
    brokers = BrokerAnswers(dict.fromkeys(queues, NOTHING_COMMITTED))
    for topic, queue_id, offset in row["commits"]:
        brokers.commit(MessageQueue(topic, BROKER, queue_id), offset)
    for topic, queue_id, offset in row["queries"]:
        queue = MessageQueue(topic, BROKER, queue_id)
        yield str(queue), offset, brokers.query_committed(queue)


def order_lock(row: Json, version: str) -> Iterator[Fact]:
    """Locks asked for or given back by one client."""
    queues = [MessageQueue("defaultTopic", "defaultBroker", i) for i in range(2)]
    locks = {queues[int(i)]: client_id for i, client_id in row["held"].items()}
    brokers = BrokerAnswers(dict.fromkeys(queues, NOTHING_COMMITTED), locks)
    if "lock" in row:
        granted = [i for i in row["lock"] if brokers.lock(queues[i], row["client_id"])]
        yield "granted", row["granted"], granted
    else:
        for i in row["unlock"]:
            brokers.unlock(queues[i], row["client_id"])
        yield "locks left", row["left"], len(brokers.locks)
