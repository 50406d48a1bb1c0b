"""Processes of one client id of one group, from the connections that several brokers log.

A process holds one connection to each broker it knows, so the brokers' counts of connections tell
how many processes there are: the smallest count over the brokers that have any. A broker that
freezes and thaws registers every connection that queued up (rocketmq.md §13 no. 5), alone; two
processes that share an id (rocketmq.md §1.2) show everywhere.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from rebalance_core.model.timers import CHANNEL_SCAN_MS, HEARTBEAT_MS

SAME_LOSS_MS = CHANNEL_SCAN_MS + 1_000
"""Removals closer than this are one loss: brokers scan by themselves, log times have seconds."""
RETURN_MS = 3 * HEARTBEAT_MS
"""After a broker's restart a client that lives is back within a heartbeat (30 s) or two."""


@dataclass
class Change:
    """A process came or went.

    Attributes:
        at_ms: when: the first broker's word.
        joined: it came; else it went.
        channel: connection the change is named after.
        scanned: removed by a scan, of which no member is notified.
        graceful: it unregistered.
        source: the line.
    """

    at_ms: int
    joined: bool
    channel: str
    source: str
    scanned: bool = False
    graceful: bool = False


@dataclass
class _Removal:
    at_ms: int
    channel: str
    source: str
    scanned: bool
    graceful: bool


@dataclass
class Connections:
    """The connections of one client id, broker by broker.

    ``live`` has the name of each process that is there: the connection it was first seen with.
    """

    live: list[str] = field(default_factory=list)
    by_broker: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)
    _removals: list[_Removal] = field(default_factory=list)
    _restarted: tuple[int, str] | None = None
    _names: dict[str, str] = field(default_factory=dict)

    def connect(self, broker: str, channel: str, at_ms: int, source: str) -> list[Change]:
        """A broker logged a new connection."""
        changes = self.settle(at_ms)
        self.by_broker.setdefault(broker, {})[channel] = (at_ms, source)
        self._restarted = None
        self._removals = []
        while self._processes() > len(self.live):
            changes.append(self._join())
            self._name_connections(len(self.live) - 1)
        rank = len(self.by_broker[broker]) - 1
        if rank < len(self.live) or channel not in self._names:
            self._names[channel] = self.live[min(rank, len(self.live) - 1)]
        return changes

    def _name_connections(self, rank: int) -> None:
        """Brokers that knew of the process before the others have a connection of it already."""
        for channels in self.by_broker.values():
            by_age = sorted(channels, key=lambda channel: channels[channel])
            if rank < len(by_age):
                self._names[by_age[rank]] = self.live[rank]

    def remove(
        self,
        broker: str,
        channel: str,
        at_ms: int,
        source: str,
        *,
        scanned: bool = False,
        graceful: bool = False,
    ) -> list[Change]:
        """A broker logged that a connection is gone."""
        changes = self.settle(at_ms)
        held = self.by_broker.get(broker, {})
        held.pop(channel, None)
        if not self.live:
            return changes
        if graceful and len(self.live) == 1:
            held.clear()  # what a thawed broker has of it beside is dead
        if self._removals and at_ms - self._removals[-1].at_ms > SAME_LOSS_MS:
            self._removals = []
        self._removals.append(_Removal(at_ms, channel, source, scanned, graceful))
        gone = len(self.live) - self._processes()
        changes += [self._leave() for _ in range(gone)]
        if gone > 0:
            self._removals = []
        return changes

    def forget(self, broker: str) -> list[Change]:
        """The broker is out of the route: what it knew of connections no longer counts.

        A process that unregistered elsewhere while this broker was dead is gone since then.
        """
        self.by_broker.pop(broker, None)
        unregistered = any(removal.graceful for removal in self._removals)
        if not (unregistered and len(self.live) == 1) or self._processes():
            return []
        gone = self._leave()
        self._removals = []
        return [gone]

    def restart(self, broker: str, at_ms: int, source: str) -> list[Change]:
        """The broker starts with an empty table; nothing tells whether its clients live."""
        changes = self.settle(at_ms) + self.forget(broker)
        if self.live and not self._processes():
            self._restarted = (at_ms, source)
        return changes

    def settle(self, now_ms: int) -> list[Change]:
        """Processes that did not come back to the only broker that knew them died with it."""
        if self._restarted is None or now_ms < self._restarted[0] + RETURN_MS:
            return []
        at_ms, source = self._restarted
        self._restarted = None
        gone = [Change(at_ms, False, name, source) for name in self.live]
        self.live.clear()
        return gone

    def process_of(self, channel: str) -> str | None:
        """Name of the process that holds the connection, if it is there."""
        name = self._names.get(channel)
        if name in self.live:
            return name
        return self.live[0] if self.live else None

    def _processes(self) -> int:
        return min((len(channels) for channels in self.by_broker.values() if channels), default=0)

    def _join(self) -> Change:
        """The process is as old as the first of the connections that make it count."""
        rank = len(self.live)
        first = min(
            (at_ms, channel, source)
            for channels in self.by_broker.values() if channels
            for at_ms, channel, source in [sorted(
                (at_ms, channel, source) for channel, (at_ms, source) in channels.items()
            )[rank]]
        )  # fmt: skip
        at_ms, channel, source = first
        if channel in self.live:  # a port can serve twice, to two brokers
            channel = f"{channel}#{rank + 1}"
        self.live.append(channel)
        return Change(at_ms, True, channel, source)

    def _leave(self) -> Change:
        last = self._removals[-1]
        last_of_all = len(self.live) == 1
        first = self._removals[0] if last_of_all else last
        name = self._names.get(last.channel)
        name = name if name in self.live else self.live[-1]
        self.live.remove(name)
        together = self._removals if last_of_all else [last]
        return Change(
            first.at_ms,
            False,
            name,
            first.source,
            scanned=any(r.scanned for r in together),
            graceful=any(r.graceful for r in together),
        )
