"""Random groups and strategies for the comparison with the released classes."""

import random
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.ordering import sort_client_ids
from rebalance_core.model.queue import MessageQueue, sort_queues

TOPICS = ("T", "%RETRY%group_a", "order-events", "ns%trade", "café", "t～")
BROKERS = ("R1-a", "R1-b", "R2-a", "R3-x", "R1@a", "R2@b", "R1@a@c", "R2@", "@b", "plain", "R4-😀")
CLIENTS = ("R1-", "R2-", "R3-", "10.0.0.1@", "10.0.0.10@", "R1-é", "R2-～", "R3-😀", "-x", "app_")
SIMPLE = ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH", "MACHINE_ROOM", "CONFIG")


@dataclass(frozen=True)
class Case:
    """One question: who asks, about which queues, in which group, by which strategy."""

    name: str
    params: dict[str, Any]
    client_id: str
    client_ids: list[str]
    queues: list[MessageQueue]


def random_case(rng: random.Random) -> Case:
    """Mostly ordinary groups; now and then empty arguments, duplicates, absent or blank ids."""
    with_rooms = rng.random() < 0.7
    name, params = _strategy(rng)
    clients = [
        rng.choice(CLIENTS[:3] if with_rooms else CLIENTS) + str(rng.randrange(30))
        for _ in range(rng.choice((0, 1, 2, 3, 5, 8, 13) if rng.random() < 0.2 else (2, 3, 5, 8)))
    ]
    if clients and rng.random() < 0.25:
        clients += rng.choices(clients, k=rng.randint(1, 2))
    asks = rng.choice(clients) if clients and rng.random() < 0.92 else rng.choice(("", " ", "no"))
    topic = rng.choice(TOPICS)
    queues = set()
    for broker in rng.sample(BROKERS[:4] if with_rooms else BROKERS, rng.randint(1, 4)):
        ids = range(rng.choice((1, 2, 4, 12)))
        queues |= {MessageQueue(topic, broker, i) for i in ids if rng.random() < 0.9}
    if rng.random() < 0.04:
        queues = set()
    return Case(name, params, asks, sort_client_ids(clients), sort_queues(queues))


def _strategy(rng: random.Random) -> tuple[str, dict[str, Any]]:
    inner = rng.choice(SIMPLE)
    params: dict[str, Any] = {}
    if inner == "CONSISTENT_HASH":
        params["virtual_nodes"] = rng.choice((0, 1, 3, 10, 10, 64, -1))
    elif inner == "MACHINE_ROOM":
        params["consumer_idcs"] = rng.choice((None, [], ["R1"], ["R1", "R2"], [""]))
    elif inner == "CONFIG":
        params["config"] = rng.choice((None, [], ["T|R1-a|3", "T|ghost|1", "T|R1-a|3"]))
    if rng.random() < 0.6:
        return inner, params
    separator = rng.choice(("-", "-", "-", "@"))
    return f"MACHINE_ROOM_NEARBY-{inner}", {**params, "room_separator": separator}
