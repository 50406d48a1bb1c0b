"""What a plan asks of a strategy: the whole group's allocation, given the one before.

RocketMQ's strategies ignore the allocation before; hypothetical ones, which RocketMQ lacks, may use
it. `PlanningStrategy` is the interface of both.
"""

from abc import ABC, abstractmethod
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import ClassVar, TypeAlias

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.consistent_hash import (
    DEFAULT_VIRTUAL_NODES,
    UTF_8,
    build_ring,
    check_virtual_nodes,
    ring_point,
)

Previous: TypeAlias = Mapping[MessageQueue, str | None]
"""Who held each queue before: a client id, None or no key: no owner. Other queues are ignored."""

Owners: TypeAlias = Mapping[MessageQueue, tuple[str, ...]]
"""Who holds each queue: client ids in Java's order, each once; () is no owner."""


@dataclass(frozen=True)
class PlanningStrategy(ABC):
    """A strategy as plans use it: frozen, comparable, picklable."""

    of_rocketmq: ClassVar[bool] = False
    """False: RocketMQ has no such strategy; label it wherever it is shown."""

    @property
    @abstractmethod
    def name(self) -> str:
        """The name of the text form."""

    @abstractmethod
    def assign(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, tuple[str, ...]]:
        """The owners of every queue, topic by topic, as RocketMQ divides.

        Args:
            previous: The allocation before; RocketMQ's strategies ignore it.
            queues: Readable queues of any number of topics, in any order.
            members: Client ids in any order; one entry a process, so a repeat is a second process.

        Returns:
            Keys are the queues in RocketMQ's order. Without members no queue has an owner.

        Raises:
            AllocationError: RocketMQ's strategy throws (a real client then keeps what it holds).
        """

    @abstractmethod
    def as_allocation(self, previous: Previous) -> AllocationStrategy:
        """The strategy as clients ask it, one by one, in **one** step from ``previous``."""

    def settings(self) -> list[tuple[str, str]]:
        """(key, value) pairs of the strategy text."""
        return []

    def __str__(self) -> str:
        """The strategy text; `planning_strategy` reads it back."""
        settings = ", ".join(f"{key}={value}" for key, value in self.settings())
        return f"{self.name}({settings})" if settings else self.name


@dataclass(frozen=True)
class HypotheticalStrategy(PlanningStrategy):
    """A strategy that RocketMQ lacks: every queue has one owner, a repeated id counts once."""

    @abstractmethod
    def assign_topic(
        self, previous: Previous, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[MessageQueue, str]:
        """The owner of every queue of one topic, in the order of the queues.

        Args:
            previous: As `assign`.
            queues: At least one, each once, in RocketMQ's order.
            client_ids: At least one, each once, in Java's order.
        """

    def assign_one(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, str]:
        """The owner of every queue, as `assign`: each topic by itself; repeats count once.

        Raises:
            UsageError: Queues but no member.
        """
        client_ids = sort_client_ids(set(members))
        topics = by_topic(queues)
        if topics and not client_ids:
            raise UsageError(f"{self.name}: there are queues but no member to own them")
        owners: dict[MessageQueue, str] = {}
        for of_topic in topics.values():
            owners.update(self.assign_topic(previous, of_topic, client_ids))
        return owners

    def assign(
        self, previous: Previous, queues: Iterable[MessageQueue], members: Iterable[str]
    ) -> dict[MessageQueue, tuple[str, ...]]:
        """`assign_one`; without a member no queue has an owner. Raises nothing."""
        present = tuple(dict.fromkeys(members))
        if not present:
            return dict.fromkeys(sort_queues(set(queues)), ())
        owners = self.assign_one(previous, queues, present)
        return {queue: (owner,) for queue, owner in owners.items()}

    def as_allocation(self, previous: Previous) -> AllocationStrategy:
        """Every member gets its part of the same result."""
        return _AskedByMembers(self, previous)


@dataclass(frozen=True)
class _AskedByMembers(AllocationStrategy):
    """One step of a hypothetical strategy; members all ask with the same queues and client ids."""

    strategy: HypotheticalStrategy
    previous: Previous
    shares_of_topic: dict[str, dict[str, list[MessageQueue]]] = field(
        default_factory=dict, compare=False, repr=False
    )

    @property
    def name(self) -> str:
        return self.strategy.name

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        topic = queues[0].topic
        shares = self.shares_of_topic.get(topic)
        if shares is None:
            shares = {}
            # Clients sort before they ask: only ids that several processes have stand there twice.
            distinct = tuple(dict.fromkeys(client_ids))
            owners = self.strategy.assign_topic(self.previous, queues, distinct)
            for queue, owner in owners.items():
                shares.setdefault(owner, []).append(queue)
            self.shares_of_topic[topic] = shares
        return shares.get(client_id, [])


def by_topic(queues: Iterable[MessageQueue]) -> dict[str, list[MessageQueue]]:
    """The distinct queues of each topic, both in RocketMQ's order.

    >>> {t: [q.queue_id for q in qs] for t, qs in by_topic([MessageQueue("T", "a", 10),
    ...     MessageQueue("T", "a", 2), MessageQueue("S", "a", 0)]).items()}
    {'S': [0], 'T': [2, 10]}
    """
    topics: dict[str, list[MessageQueue]] = {}
    for queue in sort_queues(set(queues)):
        topics.setdefault(queue.topic, []).append(queue)
    return topics


# CONSISTENT_HASH_BOUNDED: RocketMQ's ring with a limit on each member's load. NOT RocketMQ's.
#
# After Vahab Mirrokni, Mikkel Thorup, Morteza Zadimoghaddam, "Consistent Hashing with Bounded
# Loads" (SODA 2018, arXiv:1608.01350): a queue whose next member on the ring is full goes on to
# the next.

DEFAULT_EPSILON = 0.25  # a quarter above the average; our choice, the paper leaves it open


def capacity(queue_count: int, member_count: int, epsilon: float) -> int:
    """Most queues of one member: ceil((1 + epsilon) x queues / members), exact in decimals.

    >>> capacity(10, 11, 0.1), capacity(8, 3, 0.25)
    (1, 4)
    """
    bound = (1 + Fraction(repr(epsilon))) * queue_count / member_count
    return -(-bound.numerator // bound.denominator)


@dataclass(frozen=True)
class ConsistentHashBounded(HypotheticalStrategy):
    """Consistent hashing that never exceeds `capacity`; RocketMQ has no such strategy.

    The ring is that of RocketMQ's CONSISTENT_HASH (same points, same lookup); with a large epsilon
    the result is its result. Each topic by itself. The result depends on the **sets** of queues and
    members alone: no order of arguments, no allocation before it.

    It differs from the paper's online scheme. There balls come and go one by one, and each change
    moves a chain of balls; here nothing is remembered: every queue is placed anew, always in
    RocketMQ's order of queues, as if they had been inserted in that order into today's bins. (Any
    fixed order will do; that of the points on the ring moves more, 16 % instead of 13 % at epsilon
    0 in tests.) All capacities are the ceiling. A member has ``virtual_nodes`` points, not one, and
    its capacity counts over all of them. So the paper's bound on the load holds; its bound on the
    expected moves is not claimed.

    Attributes:
        epsilon: How far above the average a member may be, 0 or more.
        virtual_nodes: Ring points per member, 1 or more.

    Raises:
        UsageError: A value is out of its range.
    """

    epsilon: float = DEFAULT_EPSILON
    virtual_nodes: int = DEFAULT_VIRTUAL_NODES

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon) and self.epsilon >= 0):
            raise UsageError(f"{self.name}: epsilon {self.epsilon} is not a number from 0 up")
        if self.virtual_nodes < 1:
            raise UsageError(
                f"{self.name}: virtual_nodes {self.virtual_nodes} is not a whole number from 1 up"
            )
        check_virtual_nodes(self.virtual_nodes)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    @property
    def name(self) -> str:
        """The name of the text form."""
        return "CONSISTENT_HASH_BOUNDED"

    def settings(self) -> list[tuple[str, str]]:
        """(key, value) pairs of the strategy text."""
        return [("epsilon", repr(self.epsilon)), ("virtual_nodes", str(self.virtual_nodes))]

    def assign_topic(
        self, previous: Previous, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[MessageQueue, str]:
        """The owner of every queue of one topic; ``previous`` is ignored.

        Cost: O(n log n) for n queues and ring points, MD5 of each that is not remembered.
        """
        most = capacity(len(queues), len(client_ids), self.epsilon)
        return _place(queues, client_ids, most, self.virtual_nodes)


# From one change of a group to the next most of its queues stay.
@lru_cache(maxsize=1 << 16)
def _queue_point(queue: MessageQueue) -> int:
    """Where a queue lies on the ring."""
    return ring_point(str(queue), UTF_8)


def _place(
    queues: Sequence[MessageQueue], client_ids: Sequence[str], most: int, virtual_nodes: int
) -> dict[MessageQueue, str]:
    """Each queue to the first node at or after its point whose member has room."""
    points, nodes = build_ring(tuple(client_ids), virtual_nodes, UTF_8)
    room = dict.fromkeys(client_ids, most)
    onward = list(range(len(nodes)))  # node -> one that may have room, no further than the first

    def first_with_room(start: int) -> int:
        """The place of that node; walks past full ones once only."""
        place, passed = start, []
        while room[nodes[place]] == 0:
            passed.append(place)
            place = onward[place] if onward[place] != place else (place + 1) % len(nodes)
        for full in passed:
            onward[full] = place
        return place

    on_ring = set(nodes)
    left = len(on_ring) * most
    # A member all of whose points lie under others' takes what the ring has no room for.
    off_ring = (cid for cid in client_ids if cid not in on_ring for _ in range(most))
    owners: dict[MessageQueue, str] = {}
    for queue in queues:
        if left == 0:
            owners[queue] = next(off_ring)
            continue
        start = bisect_left(points, _queue_point(queue)) % len(nodes)
        owner = nodes[first_with_room(start)]
        owners[queue] = owner
        room[owner] -= 1
        left -= 1
    return owners
