"""CONSISTENT_HASH_BOUNDED: RocketMQ's ring with a limit on each member's load. NOT RocketMQ's.

After Vahab Mirrokni, Mikkel Thorup, Morteza Zadimoghaddam, "Consistent Hashing with Bounded
Loads" (SODA 2018, arXiv:1608.01350): a queue whose next member on the ring is full goes on to
the next.
"""

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import lru_cache
from math import isfinite
from typing import Any, ClassVar

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.strategies import HypotheticalStrategy, Previous
from rebalance_core.strategies.consistent_hash import (
    DEFAULT_VIRTUAL_NODES,
    UTF_8,
    build_ring,
    check_virtual_nodes,
    ring_point,
)
from rebalance_core.strategies.parameters import WHOLE_NUMBER, Parameter

DEFAULT_EPSILON = 0.25  # a quarter above the average: our choice, because the paper gives no value


def capacity(queue_count: int, member_count: int, epsilon: float) -> int:
    """Return the maximum number of queues per member: ceil((1 + epsilon) x queues / members), exact
    in decimals.

    >>> capacity(10, 11, 0.1), capacity(8, 3, 0.25)
    (1, 4)
    """
    bound = (1 + Fraction(repr(epsilon))) * queue_count / member_count
    return -(-bound.numerator // bound.denominator)


def _epsilon(key: str, value: Any) -> float:
    try:
        return float(value)
    except ValueError:
        raise UsageError(f"{key}={value}: expected a number") from None


@dataclass(frozen=True)
class ConsistentHashBounded(HypotheticalStrategy):
    """Consistent hashing that never exceeds `capacity`; RocketMQ has no such strategy.

    The ring is that of RocketMQ's CONSISTENT_HASH (same points, same lookup); with a large epsilon
    the results are equal. Each topic is allocated separately. The result depends only on the
    **sets** of queues and members, not on the order of arguments or an earlier allocation.

    It differs from the paper's online scheme, in which balls come and go one by one and each change
    moves a chain of balls. Here nothing is remembered: every queue is placed anew, always in
    RocketMQ's queue order, as if inserted in that order into today's bins. (Any fixed order will
    do; the order of the points on the ring moves more: 16 % instead of 13 % at epsilon 0 in tests.)
    All capacities are rounded up. A member has ``virtual_nodes`` points, which share its capacity.
    The paper's bound on the load therefore holds; its bound on the expected moves is not claimed.

    Attributes:
        epsilon: How far above the average a member may be, 0 or more.
        virtual_nodes: Ring points per member, 1 or more.

    Raises:
        UsageError: A value is out of its range.
    """

    NAME = "CONSISTENT_HASH_BOUNDED"
    PARAMETERS: ClassVar = {"epsilon": Parameter(_epsilon, _epsilon), "virtual_nodes": WHOLE_NUMBER}
    LEAGUE = ("CONSISTENT_HASH_BOUNDED(epsilon=0.25)",)

    epsilon: float = DEFAULT_EPSILON
    virtual_nodes: int = DEFAULT_VIRTUAL_NODES

    def __post_init__(self) -> None:
        if not (isfinite(self.epsilon) and self.epsilon >= 0):
            raise UsageError(f"{self.name}: epsilon {self.epsilon}: expected a number from 0 up")
        if self.virtual_nodes < 1:
            raise UsageError(
                f"{self.name}: virtual_nodes {self.virtual_nodes}: expected a whole number "
                "from 1 up"
            )
        check_virtual_nodes(self.virtual_nodes)
        object.__setattr__(self, "epsilon", float(self.epsilon))

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, value) pairs of the strategy text."""
        return [("epsilon", repr(self.epsilon)), ("virtual_nodes", str(self.virtual_nodes))]

    def assign_topic(
        self, previous: Previous, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[MessageQueue, str]:
        """Return the owner of every queue of a topic; ``previous`` is ignored.

        Cost: O(n log n) for n queues and ring points, and one MD5 for each that is not cached.
        """
        most = capacity(len(queues), len(client_ids), self.epsilon)
        return _place(queues, client_ids, most, self.virtual_nodes)


# Most of a group's queues remain the same from one change to the next.
@lru_cache(maxsize=1 << 16)
def _queue_point(queue: MessageQueue) -> int:
    """Return the queue's position on the ring."""
    return ring_point(str(queue), UTF_8)


def _place(
    queues: Sequence[MessageQueue], client_ids: Sequence[str], most: int, virtual_nodes: int
) -> dict[MessageQueue, str]:
    """Assign each queue to the first node at or after its point whose member has room."""
    points, nodes = build_ring(tuple(client_ids), virtual_nodes, UTF_8)
    room = dict.fromkeys(client_ids, most)
    onward = list(range(len(nodes)))  # node -> the first node at or after it that may have room

    def first_with_room(start: int) -> int:
        """Return the position of that node, passing each full node only once."""
        place, passed = start, []
        while room[nodes[place]] == 0:
            passed.append(place)
            place = onward[place] if onward[place] != place else (place + 1) % len(nodes)
        for full in passed:
            onward[full] = place
        return place

    on_ring = set(nodes)
    left = len(on_ring) * most
    # A member whose points all coincide with those of others takes the queues for which the ring
    # has no room.
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
