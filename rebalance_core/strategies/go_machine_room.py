"""GO_MACHINE_ROOM: Go clients' MACHINE_ROOM (rocketmq-client-go 2.0.0 on), including its bug."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import NAMES, Params, escape
from rebalance_core.strategies.spi import AllocationStrategy


@dataclass(frozen=True)
class GoMachineRoom(AllocationStrategy):
    """``AllocateByMachineRoom`` of rocketmq-client-go.

    The size of a slice is derived from the queues in the rooms, but the slice is cut from all
    queues; only the queue from the remainder is taken from the rooms. So members read queues
    outside the rooms, and some queues inside them are not read by any client. For an empty
    argument, the answer is an empty list.

    Attributes:
        consumer_idcs: The rooms (as a list: the queues of a repeated room count twice).
    """

    NAME = "GO_MACHINE_ROOM"
    """Go prints no name."""
    PARAMETERS: ClassVar = {"consumer_idcs": NAMES}

    consumer_idcs: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if "" in self.consumer_idcs:
            raise UsageError("GO_MACHINE_ROOM: the name of a room is empty")

    @classmethod
    def make(cls, params: Params, version: Version) -> "GoMachineRoom":
        """Return the strategy; its list is empty by default."""
        return cls(params.get("consumer_idcs") or ())

    def in_rooms(self, queues: Sequence[MessageQueue]) -> list[MessageQueue]:
        """Return the queues on brokers named ``room@broker``, once for each time the room is
        listed.
        """
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
        """Return the slice at the member's place, and a queue of the remainder.

        Raises:
            AllocationError: The slice extends beyond the queues: Go panics.
        """
        if not client_id or client_id not in client_ids:
            return []
        place = client_ids.index(client_id)
        return self._slice(place, len(client_ids), queues, self.in_rooms(queues))

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` for every distinct member; the rooms are looked up once."""
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

    def formula(self, asked: Question) -> Formula:
        """Return the length of slices, and the owner found by querying every member."""
        queue, queues, client_ids, _ = asked
        inside, members = len(self.in_rooms(queues)), len(client_ids)
        size, rest = divmod(inside, members)
        rooms = ", ".join(self.consumer_idcs) or "none"
        owner = next((c for c in client_ids if queue in self.allocate(c, queues, client_ids)), None)
        entry = None if owner is None else client_ids.index(owner)
        lines: tuple[str, ...] = (
            f"{inside} of {len(queues)} queues are on brokers named room@name in the rooms {rooms}",
            f"each of {members} gets {inside} / {members} = {size}, cut out of all "
            f"{len(queues)} queues (Go's slip), the first {inside} % {members} = {rest} get "
            "one more from the rooms' tail",
        )
        if owner is None:
            lines = (*lines, "no slice holds this queue: it has no owner")
        values = {"inRooms": inside, "size": size, "remainder": rest}
        return Formula(str(self), lines, values, entry, owner)

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        if not self.consumer_idcs:
            return []
        return [("consumer_idcs", "|".join(map(escape, self.consumer_idcs)))]
