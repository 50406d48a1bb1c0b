"""Random groups and strategies for the comparison with the released classes."""

import random
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from hashlib import md5
from typing import Any

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.registry import STRATEGIES

TOPICS = ("T", "%RETRY%group_a", "order-events", "ns%trade", "café", "t～", "a|b", "|")
BROKERS = ("R1-a", "R1-b", "R2-a", "R3-x", "R1@a", "R2@b", "R1@a@c", "R2@", "@b", "plain", "R4-😀")
CLIENTS = ("R1-", "R2-", "R3-", "10.0.0.1@", "10.0.0.10@", "R1-é", "R2-～", "R3-😀", "-x", "app_")
SIMPLE = tuple(strategy.NAME for strategy in STRATEGIES if strategy.JAVA_CLASS)
PREFIXES = (
    "R1",
    "R1-",
    "R1-a",
    "R2",
    "R",
    "10.0.0.1",
    "10.0.0.10@",
    "10",
    "plain",
    "app_",
    "@",
    "",
)
ROOMS = ("R1", "R2", "R3", "east", "～", "😀")
SEARCHED = 250_000  # names among which ring points meet: some 7 pairs of nodes


@dataclass(frozen=True)
class Case:
    """One question: who asks, about which queues, in which group, by which strategy.

    Both lists are in no order: either side sorts them itself.
    """

    name: str
    params: dict[str, Any]
    client_id: str
    client_ids: list[str]
    queues: list[MessageQueue]


def random_case(rng: random.Random) -> Case:
    """Mostly ordinary groups; now and then empty arguments, duplicates, absent or blank ids."""
    if rng.random() < 0.06:
        return _ring_collision(rng)
    with_rooms = rng.random() < 0.8
    name, params = _strategy(rng)
    clients = _clients(rng, CLIENTS[:3] if with_rooms else CLIENTS)
    asks = rng.choice(clients) if clients and rng.random() < 0.92 else rng.choice(("", " ", "no"))
    brokers = BROKERS[4:7] if "consumer_idcs" in params else BROKERS[:4]
    queues = _queues(rng, brokers if with_rooms else BROKERS)
    return _shuffled(rng, Case(name, params, asks, clients, queues))


def _clients(rng: random.Random, prefixes: tuple[str, ...]) -> list[str]:
    unusual = rng.random() < 0.25
    count = rng.choice((0, 1, 2, 3, 13, 16, 25, 40, 70) if unusual else (2, 3, 5, 8))
    clients = [rng.choice(prefixes) + str(rng.randrange(30)) for _ in range(count)]
    if clients and rng.random() < 0.25:
        clients += rng.choices(clients, k=rng.randint(1, 2))
    return clients


def _queues(rng: random.Random, brokers: tuple[str, ...]) -> list[MessageQueue]:
    if rng.random() < 0.04:
        return []
    topic, queues = rng.choice(TOPICS), set()
    for broker in rng.sample(brokers, rng.randint(1, 3)):
        # Ids further apart than an int make upstream's order overflow; no route has such ids.
        first = rng.choice((0, 0, 0, 0, 8, 95, -3, -12, -(2**30), 2**30 - 20))
        ids = range(first, first + rng.choice((1, 2, 4, 8, 16)))
        queues |= {MessageQueue(topic, broker, i) for i in ids if rng.random() < 0.9}
    return list(queues)


def _shuffled(rng: random.Random, case: Case) -> Case:
    client_ids, queues = (
        sorted(case.client_ids),
        sorted(case.queues),
    )  # sets have no order of theirs
    rng.shuffle(client_ids)
    rng.shuffle(queues)
    return Case(case.name, case.params, case.client_id, client_ids, queues)


def _strategy(rng: random.Random) -> tuple[str, dict[str, Any]]:
    inner = rng.choice(SIMPLE)
    params: dict[str, Any] = {}
    if inner == "CONSISTENT_HASH":
        params["virtual_nodes"] = rng.choice((0, 1, 3, 3, 10, 10, 10, 64, 64, -1))
    elif inner == "MACHINE_ROOM":
        params["consumer_idcs"] = rng.choice((None, [], ["R1"], ["R2", "R1"], ["", "R1"]))
    elif inner == "CONFIG":
        listed = ["T|R1-a|3", "a|b|R1-a|-1", "T|ghost|1", "T|R1-a|3", "||R2-a|0"]
        params["config"] = rng.choice((None, [], listed, listed, listed))
    if rng.random() < 0.6:
        return inner, params
    levels = 2 if rng.random() < 0.2 else 1
    rooms: dict[str, Any] = {"room_separator": rng.choice(("-", "-", "-", "@"))}
    if rng.random() < 0.5:
        for key in ("client_rooms", "broker_rooms"):
            rooms[key] = {prefix: rng.choice(ROOMS) for prefix in PREFIXES if rng.random() < 0.5}
            if rng.random() < 0.1:
                rooms[key][rng.choice(PREFIXES)] = ""  # no room
    return "MACHINE_ROOM_NEARBY-" * levels + inner, params | rooms


def _ring_collision(rng: random.Random) -> Case:
    """Two nodes on one ring point, or a queue on the point of a node."""
    nodes, queues = _meeting_points()
    virtual_nodes = rng.choice((1, 1, 2))
    if rng.random() < 0.5:
        clients = list(rng.choice(nodes))
        taken = [MessageQueue("T", "R1-a", i) for i in rng.sample(range(100), 8)]
    else:
        client, queue = rng.choice(queues)
        clients, taken = [client], [queue]
    clients += rng.sample([f"R2-{i}" for i in range(30)], rng.choice((0, 1, 4)))
    params = {"virtual_nodes": virtual_nodes}
    return _shuffled(rng, Case("CONSISTENT_HASH", params, rng.choice(clients), clients, taken))


@cache
def _meeting_points() -> tuple[list[tuple[str, str]], list[tuple[str, MessageQueue]]]:
    """Pairs of clients whose first nodes meet, and of a client and a queue on its first node."""
    clients = [f"R1-{i}" for i in range(SEARCHED)]
    queues = [MessageQueue("T", "R1-a", i) for i in range(SEARCHED)]
    node_of = _by_point(clients, lambda client_id: f"{client_id}-0")
    pairs = [(group[0], group[1]) for group in node_of.values() if len(group) > 1]
    text = "MessageQueue [topic={}, brokerName={}, queueId={}]"
    queue_of = _by_point(queues, lambda queue: text.format(*queue))
    on_nodes = [(node_of[p][0], found[0]) for p, found in queue_of.items() if p in node_of]
    assert pairs
    assert on_nodes
    return pairs, on_nodes


def _by_point(items: Iterable[Any], key: Callable[[Any], str]) -> dict[bytes, list[Any]]:
    points: dict[bytes, list[Any]] = {}
    for item in items:
        point = md5(key(item).encode(), usedforsecurity=False).digest()[:4]
        points.setdefault(point, []).append(item)
    return points
