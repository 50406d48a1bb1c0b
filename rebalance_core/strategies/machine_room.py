"""MACHINE_ROOM: divides only the queues in the configured rooms, among all members."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING, ClassVar

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import NAMES, Params, escape
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member
from rebalance_core.strategies.vectorised import ByPlace, PlaceRule

if TYPE_CHECKING:
    from rebalance_core.strategies.vectorised import Number

CHECKS_IN_BASE_CLASS = (4, 9, 4)  # in earlier versions, a blank client id counts as empty


def java_split(text: str, separator: str) -> list[str]:
    """Return ``String.split``: trailing empty parts are dropped.

    >>> java_split("room1@", "@"), java_split("@b", "@"), java_split("@", "@")
    (['room1'], ['', 'b'], [])
    """
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


# Every member of a group requests the same filter, but members may differ in their rooms.
@lru_cache(maxsize=8)
def queues_in_rooms(
    queues: tuple[MessageQueue, ...], rooms: tuple[str, ...] | None
) -> tuple[MessageQueue, ...]:
    """Return the queues on brokers named ``room@broker`` whose room is in ``rooms``.

    Raises:
        AllocationError: ``rooms`` is None (upstream's null) and a broker name has two parts.
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


def tail_index(place: Number, queues: Number, members: Number) -> Number:
    """Return the index in cidAll: slices of equal size, then the surplus at the tail, assigned in
    turn.

    >>> [tail_index(place, 8, 3) for place in range(8)]
    [0, 0, 1, 1, 2, 2, 0, 1]
    """
    size = queues // members
    among_slices, in_tail = place // (size + (size == 0)), place - size * members
    index: Number = among_slices + (in_tail - among_slices) * (in_tail >= 0)
    return index


FROM_TAIL = PlaceRule(tail_index)


@dataclass(frozen=True)
class MachineRoom(AllocationStrategy):
    """``AllocateMessageQueueByMachineRoom``. rocketmq.md §2.5.

    Queues on brokers named ``room@broker`` whose room is configured are divided; the others have no
    owner. The members' own rooms do not matter. Cost: O(members + queues).

    Attributes:
        consumer_idcs: The rooms (as a set: repeats are dropped); None means upstream's unset set,
            which fails as soon as a broker name has a room.
        blank_is_empty: Whether the client id is checked by isBlank (clients up to 4.9.3).
    """

    NAME = "MACHINE_ROOM"
    PARAMETERS: ClassVar = {"consumer_idcs": NAMES}
    JAVA_CLASS = "AllocateMessageQueueByMachineRoom"

    consumer_idcs: tuple[str, ...] | None = None
    blank_is_empty: bool = False

    def __post_init__(self) -> None:
        if self.consumer_idcs is not None:
            object.__setattr__(self, "consumer_idcs", tuple(dict.fromkeys(self.consumer_idcs)))

    @classmethod
    def make(cls, params: Params, version: Version) -> MachineRoom:
        """Return the strategy with the version's checks."""
        rooms = params.get("consumer_idcs")
        return cls(rooms, blank_is_empty=version < CHECKS_IN_BASE_CLASS)

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the slice of the queues in the rooms, followed by a queue from the remainder."""
        if not is_member(client_id, queues, client_ids, blank_is_empty=self.blank_is_empty):
            return []
        in_rooms = queues_in_rooms(tuple(queues), self.consumer_idcs)
        return self._slice(client_ids.index(client_id), len(client_ids), in_rooms)

    @staticmethod
    def _slice(index: int, members: int, in_rooms: Sequence[MessageQueue]) -> list[MessageQueue]:
        size, remainder = divmod(len(in_rooms), members)
        share = list(in_rooms[size * index : size * (index + 1)])
        if remainder > index:  # the remainder comes at the tail, unlike AVG
            share.append(in_rooms[index + size * members])
        return share

    @property
    def throws_for_all(self) -> bool:
        """Whether only the rooms can make it throw."""
        return True

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` of every distinct member in one sweep."""
        if not client_ids:
            return {}
        is_member(client_ids[0], queues, client_ids, blank_is_empty=self.blank_is_empty)
        in_rooms = queues_in_rooms(tuple(queues), self.consumer_idcs)
        check_every_member(queues, client_ids, blank_is_empty=self.blank_is_empty)
        shares: dict[str, list[MessageQueue]] = {}
        for index, client_id in enumerate(client_ids):
            if client_id not in shares:
                shares[client_id] = self._slice(index, len(client_ids), in_rooms)
        return shares

    def vectorised(self) -> ByPlace | None:
        """Return the division by place, or None without rooms, since any broker with a room then
        throws.
        """
        if self.consumer_idcs is None:
            return None
        return ByPlace(FROM_TAIL, self._divides, blank_is_empty=self.blank_is_empty)

    def _divides(self, broker_name: str) -> bool:
        return bool(queues_in_rooms((MessageQueue("", broker_name, 0),), self.consumer_idcs))

    def formula(self, asked: Question) -> Formula:
        """Return the slice of the rooms' queues that contains the queue, or that it is outside the
        rooms.
        """
        rooms = ", ".join(self.consumer_idcs or ()) or "none"
        inside = queues_in_rooms(tuple(asked.queues), self.consumer_idcs)
        head = (
            f"{len(inside)} of {len(asked.queues)} queues are on brokers named room@name in the "
            f"rooms {rooms}"
        )
        if asked.queue not in inside:
            outside = f"{asked.queue.broker_name} is not: its queues have no owner"
            return Formula(str(self), (head, outside))
        place, members = inside.index(asked.queue), len(asked.client_ids)
        size, rest = divmod(len(inside), members)
        entry = tail_index(place, len(inside), members)
        index = asked.index_at(entry)
        tail = f" and [{index + size * members}]" if rest > index else ""
        lines = (
            head,
            f"each of {members} gets {len(inside)} / {members} = {size}, the first "
            f"{len(inside)} % {members} = {rest} get one more from the tail",
            f"index {index} gets [{size * index}..{size * (index + 1)}){tail}; this queue is "
            f"[{place}] of them",
        )
        values = {
            "index": index,
            "inRooms": len(inside),
            "size": size,
            "remainder": rest,
            "queueIndex": place,
        }
        return Formula(str(self), lines, values, entry, asked.first_owner(entry))

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        if self.consumer_idcs is None:
            return []
        if self.consumer_idcs == ("",):
            # One empty room: `consumer_idcs=` alone is the empty set.
            return [("consumer_idcs", "|")]
        return [("consumer_idcs", "|".join(map(escape, self.consumer_idcs)))]
