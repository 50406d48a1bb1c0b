"""Random numbers, names and numbered rows of one entity: they depend on (seed, kind, ids) alone."""

import math
from collections.abc import Sequence
from hashlib import blake2b
from random import Random
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

# Random numbers of one entity: they depend on (seed, kind, ids) and on nothing else.
#
# Only what does not change between versions is used: ``random.random()`` of a Mersenne Twister
# seeded with an integer (Python promises its sequence) and 64-bit integer arithmetic. Never
# `hash()`.

T = TypeVar("T")
Mix = tuple[tuple[T, float], ...]
"""Values with their weights; the weights need not sum to one."""

_KEY_BYTES = 16


def key_of(seed: int, kind: str, *ids: int) -> int:
    """A 128-bit number of an entity; entities that differ in anything have unrelated ones."""
    text = "/".join([str(seed), kind, *map(str, ids)])
    return int.from_bytes(blake2b(text.encode(), digest_size=_KEY_BYTES).digest(), "big")


class Draws:
    """The random numbers of one entity, in order."""

    def __init__(self, seed: int, kind: str, *ids: int) -> None:
        self.random = Random(key_of(seed, kind, *ids)).random

    def chance(self, probability: float) -> bool:
        """True with this probability."""
        return self.random() < probability

    def between(self, low: int, high: int) -> int:
        """A whole number from ``low`` to ``high``, both included."""
        return low + int(self.random() * (high - low + 1))

    def pick(self, values: Sequence[T]) -> T:
        """One of the values, all alike."""
        return values[int(self.random() * len(values))]

    def mixed(self, mix: Mix[T]) -> T:
        """One of the values, by weight."""
        left = self.random() * sum(weight for _, weight in mix)
        for value, weight in mix:
            left -= weight
            if left < 0:
                return value
        return mix[-1][0]

    def scattered(self, low: float, high: float) -> float:
        """A positive number from ``low`` to ``high`` whose logarithm is uniform."""
        return low * math.pow(high / low, self.random())

    def count(self, mean: float) -> int:
        """Return how often something with this mean happens (Poisson). Cost: the mean."""
        arrived, total = 0, -math.log(1.0 - self.random())
        while total < mean:
            arrived += 1
            total -= math.log(1.0 - self.random())
        return arrived

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """All the values in random order (Fisher-Yates)."""
        mixed = list(values)
        for last in range(len(mixed) - 1, 0, -1):
            other = int(self.random() * (last + 1))
            mixed[last], mixed[other] = mixed[other], mixed[last]
        return mixed


def noise(key: int, *numbers: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
    """One number in [0, 1) for each row of the arrays: a function of the key and the row alone.

    Args:
        key: from `key_of`.
        numbers: int64 arrays of one length.
    """
    state = np.full(len(numbers[0]), key & 0xFFFFFFFFFFFFFFFF, np.uint64)
    for values in numbers:
        state = _mixed(state ^ _mixed(values.astype(np.uint64)))
    return (state >> np.uint64(11)).astype(np.float64) * 2.0**-53


def _mixed(state: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """SplitMix64's output function (Steele, Lea, Flood 2014); arithmetic wraps."""
    state = state + np.uint64(0x9E3779B97F4A7C15)
    state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return state ^ (state >> np.uint64(31))


# Names as they are found in the field; unique within a cluster by the number they come from.

REGIONS = ("prod-east", "prod-west", "prod-north", "prod-south", "core", "pay-cell", "logs")
DOMAINS = (
    "order", "payment", "stock", "user", "coupon", "search",
    "delivery", "risk", "billing", "message", "report", "device",
)  # fmt: skip
THINGS = ("event", "status", "change", "sync", "task", "notice", "refund", "index")
VERBS = ("created", "paid", "closed", "updated", "failed", "expired", "retry", "snapshot")
SERVICES = ("worker", "service", "writer", "loader", "audit", "push", "cache", "stats")

_COMBINATIONS = len(DOMAINS) * len(THINGS) * len(VERBS)
_STRIDE = 307  # coprime with the number of combinations, so each comes once before any comes twice


def cluster_name(number: int) -> str:
    """Name of a cluster; unique."""
    return f"{REGIONS[number % len(REGIONS)]}-{number // len(REGIONS) + 1:02d}"


def topic_name(seed: int, cluster: int, number: int) -> str:
    """Name of a topic; unique in its cluster."""
    domain, thing, verb, more = _words(seed, "topic-names", cluster, number, VERBS)
    name = f"{domain}_{thing}_{verb}{more}"
    return name.upper() if number % 3 == 0 else name


def group_name(seed: int, cluster: int, number: int) -> str:
    """Name of a consumer group; unique in its cluster."""
    domain, thing, service, more = _words(seed, "group-names", cluster, number, SERVICES)
    form = ("GID_{0}_{1}_{2}{3}", "{0}-{1}-{2}{3}", "cg_{0}_{1}_{2}{3}")[number % 3]
    return form.format(domain, thing, service, more)


def broker_names(draws: Draws, count: int, rooms: tuple[str, ...]) -> tuple[str, ...]:
    """Names of a cluster's brokers.

    In a cluster with machine rooms they are ``room@name``, as MACHINE_ROOM wants it; the rooms take
    turns.
    """
    form = draws.pick(("broker-{0}", "broker-{0}", "mq-{1:02d}", "rmq{1}"))
    plain = [form.format(chr(ord("a") + i), i + 1) for i in range(count)]
    if not rooms:
        return tuple(plain)
    return tuple(f"{rooms[i % len(rooms)]}@{name}" for i, name in enumerate(plain))


def _words(
    seed: int, kind: str, cluster: int, number: int, last: tuple[str, ...]
) -> tuple[str, str, str, str]:
    shift = Draws(seed, kind, cluster).between(0, _COMBINATIONS - 1)
    turn, place = divmod(number, _COMBINATIONS)
    index = (place * _STRIDE + shift) % _COMBINATIONS
    index, word = divmod(index, len(last))
    index, thing = divmod(index, len(THINGS))
    return DOMAINS[index], THINGS[thing], last[word], f"_{turn + 1}" if turn else ""


# The rows of one entity in cluster_events, numbered so that no two of a cluster share a key.

Row = dict[str, Any]
"""Column name to value; what is not there is null."""

FIRST_TOPIC = 1
FIRST_GROUP = 1_000_000
NUMBERS_PER_ENTITY = 1_000_000_000


class EventRows:
    """Gathers the events of one entity of a cluster, in order.

    ``sequence`` is entity x 10^9 + the event's number within the entity, so it orders the events of
    an entity and never collides. Entity 0 is the cluster's brokers, topic t is 1 + t, group g
    is 1,000,000 + g: at one instant brokers come first, then topics, then groups.
    """

    def __init__(self, cluster: str, entity: int) -> None:
        self._rows: list[Row] = []
        self._cluster = cluster
        self._next = entity * NUMBERS_PER_ENTITY

    def add(self, event_ms: int, event_type: str, **values: Any) -> None:
        """One more event; ``values`` are the other columns."""
        row: Row = {
            "cluster": self._cluster,
            "event_ms": event_ms,
            "sequence": self._next,
            "event_type": event_type,
        }
        row.update(values)
        self._rows.append(row)
        self._next += 1

    def take(self) -> list[Row]:
        """The rows since the last time; the numbers go on."""
        rows, self._rows = self._rows, []
        return rows
