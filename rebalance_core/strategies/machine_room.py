"""MACHINE_ROOM: only the queues of the configured rooms, divided among all members."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeVar

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.strategies.custom import Plugin, asked_room
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, escape, is_member


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
        return self._slice(client_ids.index(client_id), len(client_ids), in_rooms)

    @staticmethod
    def _slice(index: int, members: int, in_rooms: Sequence[MessageQueue]) -> list[MessageQueue]:
        size, remainder = divmod(len(in_rooms), members)
        share = list(in_rooms[size * index : size * (index + 1)])
        if remainder > index:  # the remainder sits at the tail, unlike AVG
            share.append(in_rooms[index + size * members])
        return share

    @property
    def throws_for_all(self) -> bool:
        """What throws are the rooms."""
        return True

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member in one sweep."""
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

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        if self.consumer_idcs is None:
            return []
        if self.consumer_idcs == ("",):
            # One empty room: `consumer_idcs=` alone is the empty set.
            return [("consumer_idcs", "|")]
        return [("consumer_idcs", "|".join(map(escape, self.consumer_idcs)))]


# Which machine room a broker or a client is in: upstream's MachineRoomResolver as settings.

DEFAULT_ROOM_SEPARATOR = "-"

Prefixes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RoomResolver:
    """Room of a name: that of its longest listed prefix, else the text before the separator.

    Upstream leaves the resolver to the user; these two rules are the ones of the strategy text.

    Attributes:
        separator: The text before its first occurrence is the room.
        client_rooms: (prefix of a client id, room) pairs.
        broker_rooms: (prefix of a broker name, room) pairs.
    """

    separator: str = DEFAULT_ROOM_SEPARATOR
    client_rooms: Prefixes = ()
    broker_rooms: Prefixes = ()

    def __post_init__(self) -> None:
        if not self.separator:
            raise UsageError("room_separator is empty; give at least one character, e.g. '-'")

    def broker_room(self, queue: MessageQueue) -> str | None:
        """``brokerDeployIn``; None if the name has no room."""
        return self._room(queue.broker_name, self.broker_rooms)

    def client_room(self, client_id: str) -> str | None:
        """``consumerDeployIn``; None if the id has no room."""
        return self._room(client_id, self.client_rooms)

    def known_room(self, place: MessageQueue | str) -> str | None:
        """The room of a queue's broker or of a client id; None, too, where a resolver throws."""
        try:
            if isinstance(place, MessageQueue):
                return self.broker_room(place)
            return self.client_room(place)
        except AllocationError:
            return None

    def _room(self, name: str, prefixes: Prefixes) -> str | None:
        matches = [pair for pair in prefixes if name.startswith(pair[0])]
        if matches:
            return max(matches, key=lambda pair: len(pair[0]))[1]
        room, separator, _ = name.partition(self.separator)
        return room if separator else None

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text; never empty."""
        settings = []
        is_default = self.separator == DEFAULT_ROOM_SEPARATOR
        if not is_default or not (self.client_rooms or self.broker_rooms):
            settings.append(("room_separator", escape(self.separator)))
        for key, pairs in (
            ("client_rooms", self.client_rooms),
            ("broker_rooms", self.broker_rooms),
        ):
            if pairs:
                texts = (f"{escape(prefix)}:{escape(room)}" for prefix, room in pairs)
                settings.append((key, "|".join(texts)))
        return settings


@dataclass(frozen=True)
class OwnRooms(RoomResolver):
    """A user's ``MachineRoomResolver``; its methods raise `AllocationError` as it raises."""

    plugin: Plugin = field(kw_only=True)

    def broker_room(self, queue: MessageQueue) -> str | None:
        """``brokerDeployIn``; None if the queue has no room."""
        return asked_room(self.plugin, "broker_room", queue)

    def client_room(self, client_id: str) -> str | None:
        """``consumerDeployIn``; None if the id has no room."""
        return asked_room(self.plugin, "client_room", client_id)

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        return [("room_resolver", escape(self.plugin.name))]


NEARBY = "MACHINE_ROOM_NEARBY"

_T = TypeVar("_T", MessageQueue, str)


def _by_room(
    items: Sequence[_T], room_of: Callable[[_T], str | None], kind: str
) -> dict[str, list[_T]]:
    """The items of each room, rooms in TreeMap order; the first item without a room raises."""
    rooms: dict[str, list[_T]] = {}
    for item in items:
        room = room_of(item)
        if not room:
            raise AllocationError(
                "IllegalArgumentException", f"Machine room is null for {kind} {item}"
            )
        rooms.setdefault(room, []).append(item)
    return {room: rooms[room] for room in sorted(rooms, key=java_string_key)}


# Every member of a group asks for the same division; a few groups may be asked in turn.
@lru_cache(maxsize=8)
def _divide(
    rooms: RoomResolver, queues: tuple[MessageQueue, ...], client_ids: tuple[str, ...]
) -> tuple[dict[str, list[MessageQueue]], dict[str, list[str]]]:
    """Queues by room and members by room; queues are checked first, as upstream does."""
    return (
        _by_room(queues, rooms.broker_room, "mq"),
        _by_room(client_ids, rooms.client_room, "consumer id"),
    )


@dataclass(frozen=True)
class MachineRoomNearby(AllocationStrategy):
    """``AllocateMachineRoomNearby``. rocketmq.md §2.6.

    Queues of a room with members are divided among these; each room without any is divided among
    all members. One queue or member without a room fails the whole group.

    Attributes:
        inner: Any strategy. A CONFIG without a list fails as upstream's null does.
        rooms: Who is where.
    """

    inner: AllocationStrategy
    rooms: RoomResolver = field(default_factory=RoomResolver)

    def __post_init__(self) -> None:
        if isinstance(self.inner, MachineRoomNearby) and self.inner.rooms != self.rooms:
            raise UsageError("nested MACHINE_ROOM_NEARBY strategies must share their rooms")

    @property
    def name(self) -> str:
        """``getName()``."""
        return f"{NEARBY}-{self.inner.name}"

    @property
    def keeps_to_topic(self) -> bool:
        """As the strategy inside."""
        return self.inner.keeps_to_topic

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """The share of the own room, then those of the rooms without members."""
        if not is_member(client_id, queues, client_ids):
            return []
        queues_of, members_of = _divide(self.rooms, tuple(queues), tuple(client_ids))
        own_room = self.rooms.client_room(client_id)
        assert own_room is not None  # _divide raised otherwise
        share: list[MessageQueue] = []
        if own_room in queues_of:
            share += self._ask(client_id, queues_of[own_room], members_of[own_room])
        for room, orphans in queues_of.items():
            if room not in members_of:
                share += self._ask(client_id, orphans, client_ids)
        return share

    @property
    def throws_for_all(self) -> bool:
        """What throws are the rooms, or the strategy inside; a user's resolver may do otherwise."""
        return self.inner.throws_for_all and not isinstance(self.rooms, OwnRooms)

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate` of every distinct member: each room is divided once."""
        try:
            return self._of_rooms(queues, client_ids)
        except AllocationError:  # of several, the loop raises that of the first asked
            return super().allocate_all(queues, client_ids)

    def _of_rooms(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        check_every_member(queues, client_ids)
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        if not shares:
            return shares
        queues_of, members_of = _divide(self.rooms, tuple(queues), tuple(client_ids))
        own = [room for room in queues_of if room in members_of]
        orphaned = [room for room in queues_of if room not in members_of]
        for room in (*own, *orphaned):
            of_room = self.inner.allocate_all(queues_of[room], members_of.get(room, client_ids))
            if self.inner.returns_null:
                raise AllocationError("NullPointerException", None)
            for client_id, share in of_room.items():
                shares[client_id] += share
        return shares

    def _ask(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        share = self.inner.allocate(client_id, queues, client_ids)
        if self.inner.returns_null:
            raise AllocationError("NullPointerException", None)  # addAll(null)
        return share

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        if isinstance(self.inner, MachineRoomNearby):
            return self.inner.settings()  # nested ones share their rooms, see __post_init__
        return self.inner.settings() + self.rooms.settings()
