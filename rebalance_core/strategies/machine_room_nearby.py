"""MACHINE_ROOM_NEARBY: a strategy within each room; queues in rooms without members go to all."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar, TypeVar

from rebalance_core.model.errors import AllocationError, UsageError
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.strategies.custom import ROOM_RESOLVERS, Plugin, asked_room, plugin_of
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import (
    PREFIXES,
    TEXT,
    Parameter,
    Params,
    escape,
    text_in_text,
)
from rebalance_core.strategies.spi import AllocationStrategy, check_every_member, is_member
from rebalance_core.strategies.vectorised import ByPlace, InRooms

NEARBY = "MACHINE_ROOM_NEARBY"
DEFAULT_ROOM_SEPARATOR = "-"

Prefixes = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class RoomResolver:
    """Finds the room of a name: that of its longest listed prefix or, failing that, the text before
    the separator.

    Upstream leaves its ``MachineRoomResolver`` to the user; these two rules come from the strategy
    text.

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
            raise UsageError("room_separator is empty; expected at least one character, e.g. '-'")

    def broker_room(self, queue: MessageQueue) -> str | None:
        """Return ``brokerDeployIn``, or None if the name has no room."""
        return self._room(queue.broker_name, self.broker_rooms)

    def client_room(self, client_id: str) -> str | None:
        """Return ``consumerDeployIn``, or None if the id has no room."""
        return self._room(client_id, self.client_rooms)

    def known_room(self, place: MessageQueue | str) -> str | None:
        """Return the room of a queue's broker or of a client id, or None if it has none or a
        resolver throws.
        """
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
        """Return the (key, escaped value) pairs of the strategy text; never empty."""
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
    """A user's ``MachineRoomResolver``, whose exceptions are raised as `AllocationError`."""

    plugin: Plugin = field(kw_only=True)

    def broker_room(self, queue: MessageQueue) -> str | None:
        """Return ``brokerDeployIn``, or None if the queue has no room."""
        return asked_room(self.plugin, "broker_room", queue)

    def client_room(self, client_id: str) -> str | None:
        """Return ``consumerDeployIn``, or None if the id has no room."""
        return asked_room(self.plugin, "client_room", client_id)

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        return [("room_resolver", escape(self.plugin.name))]


def _resolver(key: str, value: Any) -> OwnRooms | None:
    return None if value is None else OwnRooms(plugin=plugin_of(ROOM_RESOLVERS, value))


def rooms_of(params: Params) -> RoomResolver:
    """Return the resolver for checked parameters of MACHINE_ROOM_NEARBY.

    Raises:
        UsageError: The parameters combine a custom resolver with settings of the built-in resolver.
    """
    resolver: RoomResolver | None = params.get("room_resolver")
    if resolver is None:
        return RoomResolver(
            params.get("room_separator", DEFAULT_ROOM_SEPARATOR),
            params.get("client_rooms", ()),
            params.get("broker_rooms", ()),
        )
    others = [key for key in ROOM_PARAMETERS if key in params and key != "room_resolver"]
    if others:
        raise UsageError(f"room_resolver and {others[0]} exclude each other")
    return resolver


ROOM_PARAMETERS = {
    "room_separator": TEXT,
    "client_rooms": PREFIXES,
    "broker_rooms": PREFIXES,
    "room_resolver": Parameter(_resolver, text_in_text),
}

_T = TypeVar("_T", MessageQueue, str)


def _by_room(
    items: Sequence[_T], room_of: Callable[[_T], str | None], kind: str
) -> dict[str, list[_T]]:
    """Return the items in each room, with rooms in TreeMap order; the first item without a room
    raises an error.
    """
    rooms: dict[str, list[_T]] = {}
    for item in items:
        room = room_of(item)
        if not room:
            raise AllocationError(
                "IllegalArgumentException", f"Machine room is null for {kind} {item}"
            )
        rooms.setdefault(room, []).append(item)
    return {room: rooms[room] for room in sorted(rooms, key=java_string_key)}


# Every member of a group requests the same allocation, sometimes for a few groups in turn.
@lru_cache(maxsize=8)
def _divide(
    rooms: RoomResolver, queues: tuple[MessageQueue, ...], client_ids: tuple[str, ...]
) -> tuple[dict[str, list[MessageQueue]], dict[str, list[str]]]:
    """Return queues and members by room; queues are checked first, as upstream does."""
    return (
        _by_room(queues, rooms.broker_room, "mq"),
        _by_room(client_ids, rooms.client_room, "consumer id"),
    )


@dataclass(frozen=True)
class MachineRoomNearby(AllocationStrategy):
    """``AllocateMachineRoomNearby``. rocketmq.md §2.6.

    Queues in a room with members are divided among these; those in a room without members are
    divided among all. A single queue or member without a room fails the whole group.

    Attributes:
        inner: Any strategy. A CONFIG without a list fails, as upstream's null does.
        rooms: The rooms of clients and brokers.
    """

    NAME = NEARBY
    PARAMETERS: ClassVar = ROOM_PARAMETERS
    JAVA_CLASS = "AllocateMachineRoomNearby"
    LEAGUE = (f"{NEARBY}-AVG",)

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
        """Whether the inner strategy keeps to the topic."""
        return self.inner.keeps_to_topic

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the client's share of its own room, then its shares of the rooms without
        members.
        """
        if not is_member(client_id, queues, client_ids):
            return []
        queues_of, members_of = _divide(self.rooms, tuple(queues), tuple(client_ids))
        own_room = self.rooms.client_room(client_id)
        assert own_room is not None  # otherwise _divide raised
        share: list[MessageQueue] = []
        if own_room in queues_of:
            share += self._ask(client_id, queues_of[own_room], members_of[own_room])
        for room, orphans in queues_of.items():
            if room not in members_of:
                share += self._ask(client_id, orphans, client_ids)
        return share

    @property
    def throws_for_all(self) -> bool:
        """Whether only the rooms or the inner strategy can throw; a user's resolver may behave
        differently.
        """
        return self.inner.throws_for_all and not isinstance(self.rooms, OwnRooms)

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` for every distinct member; each room is divided once."""
        try:
            return self._of_rooms(queues, client_ids)
        except AllocationError:  # the loop raises the error of the first member queried
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

    def vectorised(self) -> InRooms | None:
        """Return the rooms, if the inner strategy divides all queues by place.

        A user's resolver may throw, in which case the replay processes the group.
        """
        inner = self.inner.vectorised()
        if not isinstance(inner, ByPlace) or inner.divides or isinstance(self.rooms, OwnRooms):
            return None
        return InRooms(inner.rule, self.rooms.client_room, self._room_of_broker)

    def _room_of_broker(self, broker_name: str) -> str | None:
        return self.rooms.broker_room(MessageQueue("", broker_name, 0))

    def formula(self, asked: Question) -> Formula:
        """Return which members share the queue's room, and how the inner strategy divides it."""
        queue, queues, client_ids, client_id = asked
        room = self.rooms.broker_room(queue)
        near = [q for q in queues if self.rooms.broker_room(q) == room]
        ids = [cid for cid in client_ids if self.rooms.client_room(cid) == room]
        sharing = ids or list(client_ids)
        sharers = (
            f"its {len(ids)} members" if ids else f"all {len(sharing)} members, because it has none"
        )
        head = (
            f"{queue.broker_name} is in room {room}: its {len(near)} queues are shared by {sharers}"
        )
        inner = self.inner.formula(
            Question(queue, near, sharing, client_id if client_id in sharing else None)
        )
        entry = inner.entry
        if entry is not None:
            # An id's entries are adjacent, so its k-th entry in the room is its k-th overall.
            of_id = sharing[entry]
            entry += client_ids.index(of_id) - sharing.index(of_id)
        return Formula(
            str(self),
            (head, *(f"{self.inner.name}: {line}" for line in inner.lines)),
            {"room": room, "queuesOfRoom": len(near), "membersOfRoom": len(ids), **inner.values},
            entry,
            inner.owner,
        )

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        if isinstance(self.inner, MachineRoomNearby):
            return self.inner.settings()  # nested strategies share their rooms; see __post_init__
        return self.inner.settings() + self.rooms.settings()
