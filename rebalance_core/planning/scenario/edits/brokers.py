"""Edits of brokers: one lost, its master lost, a machine room cut off."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

from rebalance_core.planning.scenario.cluster_life import ClusterLife
from rebalance_core.planning.scenario.edits.edit import LOSS_DETAILS, Edit, matches
from rebalance_core.planning.scenario.edits.members import DOWN_MS
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.planning.scenario.keys import (
    Key,
    one_of,
    patterns,
    read_duration,
    required,
    texts,
    words,
)
from rebalance_core.strategies.machine_room_nearby import DEFAULT_ROOM_SEPARATOR

# lose_broker: brokers without a replica left, and back if they come back.


@dataclass(frozen=True, kw_only=True)
class BrokerLoss(Edit):
    """What brokers lose for ``back_after``, or until the end."""

    broker: tuple[str, ...]
    back_after: int | None

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """The brokers."""
        return {"broker": ("brokers", self.broker)}

    def matched(self, life: ClusterLife) -> list[str]:
        """The brokers that ``broker`` matches."""
        return [name for name in sorted(life.brokers) if matches(name, self.broker)]


@dataclass(frozen=True, kw_only=True)
class LoseBroker(BrokerLoss):
    """Every broker that ``broker`` matches goes down, for ``back_after`` or until the end.

    ``how``: ``stopped`` in order, its connection ``closed``, or ``expired`` for the name server.
    """

    KIND = "lose_broker"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "broker": required(patterns),
        "how": Key(one_of("stopped", "closed", "expired"), "closed"),
        "back_after": Key(read_duration),
    }

    how: str

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take them down."""
        for name in self.matched(life):
            life.lose(name, self.how.upper(), self.back_after, source)


# lose_master: brokers whose slaves live on without a master, and its return.


@dataclass(frozen=True, kw_only=True)
class LoseMaster(BrokerLoss):
    """Every broker that ``broker`` matches loses its master, for ``back_after`` or until the end.

    ``slaves``: ``refused`` to be read (RocketMQ's default), read (``slave_read``),
    or one is ``acting`` as master (rocketmq.md §15).
    """

    KIND = "lose_master"
    KEYS: ClassVar[Mapping[str, Key]] = {
        "broker": required(patterns),
        "slaves": Key(one_of("refused", "slave_read", "acting"), "refused"),
        "back_after": Key(read_duration),
    }

    slaves: str

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Take their masters away."""
        for name in self.matched(life):
            life.lose_master(name, self.slaves.upper(), self.back_after, source)


# lose_room: a machine room is cut off, with its brokers and its consumers.


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
