"""MACHINE_ROOM: only the queues of the configured rooms, divided among all members."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.spi import AllocationStrategy, escape, is_member


def java_split(text: str, separator: str) -> list[str]:
    """``String.split``: trailing empty parts are dropped.

    >>> java_split("room1@", "@"), java_split("@b", "@"), java_split("@", "@")
    (['room1'], ['', 'b'], [])
    """
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


# Every member of a group asks for the same filter; members may differ in their rooms.
@lru_cache(maxsize=8)
def queues_in_rooms(
    queues: tuple[MessageQueue, ...], rooms: tuple[str, ...] | None
) -> tuple[MessageQueue, ...]:
    """The queues on brokers named ``room@broker`` with a room of ``rooms``.

    Raises:
        AllocationError: ``rooms`` is None (upstream's null) and some broker name has two parts.
    """
    kept = []
    for queue in queues:
        parts = java_split(queue.broker_name, "@")
        if len(parts) != 2:
            continue
        if rooms is None:
            raise AllocationError("NullPointerException", None)
        if parts[0] in rooms:
            kept.append(queue)
    return tuple(kept)


@dataclass(frozen=True)
class MachineRoom(AllocationStrategy):
    """``AllocateMessageQueueByMachineRoom``. rocketmq.md §2.5.

    Queues on brokers named ``room@broker`` whose room is configured are divided; the others have
    no owner. The members' own rooms do not matter. Cost: O(members + queues).

    Attributes:
        consumer_idcs: The rooms (a set: repeats are dropped); None is upstream's unset set, which
            fails as soon as a broker name has a room.
        blank_is_empty: The client id is checked by isBlank (client up to 4.9.3).
    """

    consumer_idcs: tuple[str, ...] | None = None
    blank_is_empty: bool = False

    def __post_init__(self) -> None:
        if self.consumer_idcs is not None:
            object.__setattr__(self, "consumer_idcs", tuple(dict.fromkeys(self.consumer_idcs)))

    @property
    def name(self) -> str:
        """``getName()``."""
        return "MACHINE_ROOM"

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The slice of the queues in the rooms, and one of the remainder at its tail."""
        if not is_member(client_id, queues, client_ids, blank_is_empty=self.blank_is_empty):
            return []
        in_rooms = queues_in_rooms(tuple(queues), self.consumer_idcs)
        index, members = client_ids.index(client_id), len(client_ids)
        size, remainder = divmod(len(in_rooms), members)
        share = list(in_rooms[size * index : size * (index + 1)])
        if remainder > index:  # the remainder sits at the tail, unlike AVG
            share.append(in_rooms[index + size * members])
        return share

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        if self.consumer_idcs is None:
            return []
        if self.consumer_idcs == ("",):
            # One empty room: `consumer_idcs=` alone is the empty set.
            return [("consumer_idcs", "|")]
        return [("consumer_idcs", "|".join(map(escape, self.consumer_idcs)))]
