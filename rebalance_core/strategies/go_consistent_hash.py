"""GO_CONSISTENT_HASH: the ring of Go clients (rocketmq-client-go 2.0.0 on).

If a group's members use both Go's and Java's CONSISTENT_HASH, some queues have no owner and others
have two, because each uses its own ring.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import ClassVar
from zlib import crc32

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.consistent_hash import check_virtual_nodes, next_node
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import WHOLE_NUMBER, Params
from rebalance_core.strategies.spi import AllocationStrategy
from rebalance_core.strategies.vectorised import OnRing


def go_ring_point(key: str) -> int:
    """Return ``consistent.hashKeyCRC32``: CRC-32 (IEEE) of the bytes, unsigned."""
    return crc32(key.encode("utf-8", "surrogatepass"))


# Every member of a group requests the same ring.
@lru_cache(maxsize=16)
def build_go_ring(
    client_ids: tuple[str, ...], virtual_nodes: int
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Return the ring's sorted points and their owners; colliding points belong to the later id."""
    ring = {
        go_ring_point(f"{number}{client_id}"): client_id
        for client_id in client_ids
        for number in range(virtual_nodes)
    }
    points = tuple(sorted(ring))
    return points, tuple(ring[point] for point in points)


@dataclass(frozen=True)
class GoConsistentHash(AllocationStrategy):
    """``AllocateByConsistentHash`` of rocketmq-client-go, based on stathat/consistent 1.0.0.

    A queue belongs to the first point strictly above its own, cyclically. For an empty argument,
    the answer is an empty list, whereas Java throws. Cost: O(members x nodes).

    Attributes:
        virtual_nodes: The number of ring points per id, for which Go's constructor has no default;
            below 1, there are none.
    """

    NAME = "GO_CONSISTENT_HASH"
    """Go prints no name."""
    PARAMETERS: ClassVar = {"virtual_nodes": WHOLE_NUMBER}

    virtual_nodes: int

    def __post_init__(self) -> None:
        check_virtual_nodes(self.virtual_nodes)

    @classmethod
    def make(cls, params: Params, version: Version) -> "GoConsistentHash":
        """Return the strategy; virtual nodes are required."""
        if "virtual_nodes" not in params:
            raise UsageError(f"{cls.NAME} needs virtual_nodes: Go's constructor has no default")
        return cls(params["virtual_nodes"])

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the queues whose next point on the ring belongs to ``client_id``."""
        owners = self._owners(queues, client_ids) if client_id else ()
        return [queue for queue, owner in zip(queues, owners, strict=False) if owner == client_id]

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` of every distinct member in one sweep."""
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        for queue, owner in zip(queues, self._owners(queues, client_ids), strict=False):
            if owner:
                shares[owner].append(queue)
        return shares

    def _owners(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Sequence[str]:
        """Return the owner of each queue; empty if the ring is empty."""
        points, owners = build_go_ring(tuple(client_ids), self.virtual_nodes)
        places = (bisect_right(points, go_ring_point(str(queue))) for queue in queues)
        return [owners[place % len(owners)] for place in places] if points else ()

    def vectorised(self) -> OnRing:
        """Return the ring; a point equal to the queue's own does not count."""
        return OnRing(self._process_points, lambda queue: go_ring_point(str(queue)) + 1)

    def _process_points(self, client_id: str, process: int) -> tuple[int, ...]:
        """Return the points of an id; additional processes share those of the first."""
        nodes = range(0 if process else self.virtual_nodes)
        return tuple(go_ring_point(f"{number}{client_id}") for number in nodes)

    def formula(self, asked: Question) -> Formula:
        """Return the points of the queue and of the node that owns it."""
        ring = build_go_ring(tuple(asked.client_ids), self.virtual_nodes)
        place = go_ring_point(str(asked.queue))

        def node(owner: str, point: int) -> str:
            names = (f"{n}{owner}" for n in range(self.virtual_nodes))
            return next(name for name in names if go_ring_point(name) == point)

        return next_node(
            str(self),
            asked,
            ring,
            bisect_right(ring[0], place),
            place=place,
            hashed="crc32",
            end=" up to 2^32",
            node=node,
        )

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        return [("virtual_nodes", str(self.virtual_nodes))]
