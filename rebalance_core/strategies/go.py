"""What Go clients divide by where it is not what Java divides by (rocketmq-client-go 2.0.0 on).

AVG, AVG_BY_CIRCLE and CONFIG are Java's. MACHINE_ROOM_NEARBY is a stub in Go that divides as AVG.
Members of one group that divide by Go's and by Java's CONSISTENT_HASH leave queues without an owner
and others with two: each counts on a ring of its own.
"""

from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from zlib import crc32

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.averagely import Averagely
from rebalance_core.strategies.consistent_hash import ConsistentHash, check_virtual_nodes
from rebalance_core.strategies.machine_room import MachineRoom, MachineRoomNearby
from rebalance_core.strategies.spi import AllocationStrategy, escape


def go_ring_point(key: str) -> int:
    """``consistent.hashKeyCRC32``: CRC-32 (IEEE) of the bytes, unsigned."""
    return crc32(key.encode("utf-8", "surrogatepass"))


# Every member of a group asks for the same ring.
@lru_cache(maxsize=16)
def build_go_ring(
    client_ids: tuple[str, ...], virtual_nodes: int
) -> tuple[tuple[int, ...], tuple[str, ...]]:
    """Sorted points of the ring and their owners; of colliding points the later id has it."""
    ring = {
        go_ring_point(f"{number}{client_id}"): client_id
        for client_id in client_ids
        for number in range(virtual_nodes)
    }
    points = tuple(sorted(ring))
    return points, tuple(ring[point] for point in points)


@dataclass(frozen=True)
class GoConsistentHash(AllocationStrategy):
    """``AllocateByConsistentHash`` of rocketmq-client-go, over stathat/consistent 1.0.0.

    A queue belongs to the first point strictly above its own, past the last to the first. Where an
    argument is empty, the answer is an empty list: Java throws there. Cost: O(members x nodes).

    Attributes:
        virtual_nodes: Ring points per id; Go's constructor has no default. None at all below 1.
    """

    virtual_nodes: int

    def __post_init__(self) -> None:
        check_virtual_nodes(self.virtual_nodes)

    @property
    def name(self) -> str:
        """The text's name; Go prints none."""
        return "GO_CONSISTENT_HASH"

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The queues whose next point on the ring is owned by ``client_id``."""
        owners = self._owners(queues, client_ids) if client_id else ()
        return [queue for queue, owner in zip(queues, owners, strict=False) if owner == client_id]

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member in one sweep."""
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        for queue, owner in zip(queues, self._owners(queues, client_ids), strict=False):
            if owner:
                shares[owner].append(queue)
        return shares

    def _owners(self, queues: Sequence[MessageQueue], client_ids: Sequence[str]) -> Sequence[str]:
        """The owner of each queue; empty if the ring is empty."""
        points, owners = build_go_ring(tuple(client_ids), self.virtual_nodes)
        places = (bisect_right(points, go_ring_point(str(queue))) for queue in queues)
        return [owners[place % len(owners)] for place in places] if points else ()

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        return [("virtual_nodes", str(self.virtual_nodes))]


@dataclass(frozen=True)
class GoMachineRoom(AllocationStrategy):
    """``AllocateByMachineRoom`` of rocketmq-client-go.

    The size of a slice comes from the queues in the rooms, but the slice is cut out of all queues;
    only the one of the remainder is taken from the rooms. So queues outside of the rooms are read,
    and some inside by nobody. Where an argument is empty, the answer is an empty list.

    Attributes:
        consumer_idcs: The rooms (a list: the queues of a repeated one count twice).
    """

    consumer_idcs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "" in self.consumer_idcs:
            raise UsageError("GO_MACHINE_ROOM: the name of a room is empty")

    @property
    def name(self) -> str:
        """The text's name; Go prints none."""
        return "GO_MACHINE_ROOM"

    def in_rooms(self, queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """The queues on brokers named ``room@broker``, once for each time the room is listed."""
        return [
            queue
            for queue in queues
            if len(parts := queue.broker_name.split("@")) == 2
            for room in self.consumer_idcs
            if room == parts[0]
        ]

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The slice at the member's place, and one of the remainder.

        Raises:
            AllocationError: The slice ends beyond the queues: Go panics.
        """
        if not client_id or client_id not in client_ids:
            return []
        place = client_ids.index(client_id)
        return self._slice(place, len(client_ids), queues, self.in_rooms(queues))

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member; the rooms are looked up once."""
        in_rooms = self.in_rooms(queues)
        shares: dict[str, list[MessageQueue]] = {"": []} if "" in client_ids else {}
        for place, client_id in enumerate(client_ids):
            if client_id not in shares:
                shares[client_id] = self._slice(place, len(client_ids), queues, in_rooms)
        return {client_id: shares[client_id] for client_id in client_ids}

    @staticmethod
    def _slice(
        index: int, members: int, queues: Sequence[MessageQueue], in_rooms: list[MessageQueue]
    ) -> list[MessageQueue]:
        size, remainder = divmod(len(in_rooms), members)
        end = size * (index + 1)
        if size and end > len(queues):
            index_read = max(size * index, len(queues))
            raise AllocationError(
                "panic",
                f"runtime error: index out of range [{index_read}] with length {len(queues)}",
            )
        share = list(queues[size * index : end])
        if remainder > index:
            share.append(in_rooms[index + size * members])
        return share

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        if not self.consumer_idcs:
            return []
        return [("consumer_idcs", "|".join(map(escape, self.consumer_idcs)))]


def go_strategy(strategy: AllocationStrategy) -> AllocationStrategy:
    """Return the strategy of a Go member in a group whose Java members divide by ``strategy``."""
    if isinstance(strategy, ConsistentHash):
        return GoConsistentHash(strategy.virtual_nodes)
    if isinstance(strategy, MachineRoom):
        return GoMachineRoom(strategy.consumer_idcs or ())
    if isinstance(strategy, MachineRoomNearby):
        return Averagely()
    return strategy
