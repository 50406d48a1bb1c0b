"""Which machine room a broker or a client is in: upstream's MachineRoomResolver as settings."""

from dataclasses import dataclass

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.text_form.escapes import escape

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
