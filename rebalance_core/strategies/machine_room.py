"""MACHINE_ROOM: only the queues of the configured rooms, divided among all members."""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.arguments import is_member
from rebalance_core.strategies.escapes import escape
from rebalance_core.strategies.spi import AllocationStrategy


def java_split(text: str, separator: str) -> list[str]:
    """``String.split``: trailing empty parts are dropped.

    >>> java_split("room1@", "@"), java_split("@b", "@"), java_split("@", "@")
    (['room1'], ['', 'b'], [])
    """
    parts = text.split(separator)
    while len(parts) > 1 and not parts[-1]:
        parts.pop()
    return [] if parts == [""] and text else parts


@dataclass(frozen=True)
class MachineRoom(AllocationStrategy):
    """``AllocateMessageQueueByMachineRoom``. SEM §2.5.

    Queues on brokers named ``room@broker`` whose room is configured are divided; the others belong
    to nobody. The members' own rooms do not matter. Cost: O(members + queues).

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

    def _is_in_rooms(self, queue: MessageQueue) -> bool:
        parts = java_split(queue.broker_name, "@")
        if len(parts) != 2:
            return False
        if self.consumer_idcs is None:
            raise AllocationError("NullPointerException", None)
        return parts[0] in self.consumer_idcs

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The slice of the queues in the rooms, and one of the remainder at its tail."""
        if not is_member(client_id, queues, client_ids, blank_is_empty=self.blank_is_empty):
            return []
        in_rooms = [queue for queue in queues if self._is_in_rooms(queue)]
        index, members = client_ids.index(client_id), len(client_ids)
        size, remainder = divmod(len(in_rooms), members)
        share = in_rooms[size * index : size * (index + 1)]
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
