"""lose_room: a machine room is cut off, with its brokers and its consumers."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.planning.scenario.cluster_life import ClusterLife
from rebalance_core.planning.scenario.edits.edit import LOSS_DETAILS, Edit
from rebalance_core.planning.scenario.edits.rolling_restart import DOWN_MS
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.planning.scenario.keys import Key, one_of, required, texts, words
from rebalance_core.planning.scenario.time import read_duration
from rebalance_core.strategies.machine_room_nearby import DEFAULT_ROOM_SEPARATOR


@dataclass(frozen=True, kw_only=True)
class LoseRoom(Edit):
    """Everything in the rooms is lost; after ``back_after`` brokers are up and members join again.

    In the room is what begins with one of ``broker_prefixes`` or ``client_prefixes``; without
    prefixes, what has the room's name before the first ``separator``. ``how``: ``crash`` closes the
    connections, ``expired`` (default: the network is cut) leaves it to the scans.
    """

    KIND = "lose_room"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "room": required(texts),
        "separator": Key(words, DEFAULT_ROOM_SEPARATOR),
        "broker_prefixes": Key(texts),
        "client_prefixes": Key(texts),
        "how": Key(one_of("crash", "expired"), "expired"),
        "back_after": Key(read_duration),
    }

    room: tuple[str, ...]
    separator: str
    broker_prefixes: tuple[str, ...] | None
    client_prefixes: tuple[str, ...] | None
    how: str
    back_after: int | None

    def concerns_group(self, consumer_group: str) -> bool:
        """Every group may have members there."""
        return True

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take the brokers down."""
        lost = [name for name in sorted(life.brokers) if self._inside(name, self.broker_prefixes)]
        if not lost:
            rooms = ", ".join(self.room)
            life.log.warn(f"{source}: no broker of {life.cluster} is in the room {rooms}")
        for name in lost:
            life.lose(name, LOSS_DETAILS[self.how] or "", self.back_after, source)

    def on_group(self, life: GroupLife, source: str) -> None:
        """Lose the members."""
        detail = LOSS_DETAILS[self.how]
        for member in life.members():
            if not self._inside(member.key[0], self.client_prefixes):
                continue
            if self.back_after is None:
                life.remove(member, source, detail)
            else:
                down_ms = self.back_after + DOWN_MS
                life.restart(member, source, down_ms=down_ms, detail=detail)

    def _inside(self, name: str, prefixes: tuple[str, ...] | None) -> bool:
        if prefixes is not None:
            return name.startswith(prefixes)
        room, separator, _ = name.partition(self.separator)
        return bool(separator) and room in self.room
