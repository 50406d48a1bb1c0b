"""The subscriptions of one group at one broker, as set by its members' heartbeats."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.model.times import CHANNEL_SCAN_MS, HEARTBEAT_MS, SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import ConsumerDataPiece, GroupEvidence

HEARTBEAT_MARGIN_MS = 5_000
HEARTBEAT_SEEN_MS = HEARTBEAT_MS + HEARTBEAT_MARGIN_MS
"""The time within which every member's heartbeat is logged."""
SAME_MOMENT_MS = 2_000
"""Brokers learn of a change one after another, and their logs record whole seconds."""


class ConnectedMember(NamedTuple):
    """A process of the group: its client id and the name of its channel."""

    client_id: str
    channel_id: str


@dataclass
class SubscriptionTable:
    """The group's subscriptions at one broker.

    Each heartbeat makes the broker's table equal to its member's subscriptions, and every change is
    logged (rocketmq.md §6.2). So as long as no line follows, each client that sends heartbeats
    there has these subscriptions; a second member that subscribes to the same topic, or
    unsubscribes from it, is not logged.

    Attributes:
        topics: the topics of the last heartbeat that changed it.
        at_ms: when that was.
        source: its line.
        settled: True once every member has been heard from after it.
        versions: the subVersions in that heartbeat, by topic.
        reporter: the member whose heartbeat it was.
        line: the second and the position of the line in its log.
    """

    topics: frozenset[str] = frozenset()
    at_ms: int = 0
    source: str = ""
    settled: bool = True
    versions: Mapping[str, int] = field(default_factory=dict)
    reporter: ConnectedMember | None = None
    line: tuple[int, int] = (0, 0)
    _members: set[ConnectedMember] = field(default_factory=set)

    def knows(self, member: ConnectedMember) -> bool:
        """Return True if this broker had a heartbeat from the member before."""
        return member in self._members

    def report(
        self,
        member: ConnectedMember,
        topics: frozenset[str],
        at_ms: int,
        piece: ConsumerDataPiece,
        second_ms: int,
    ) -> None:
        """Record the change to the table made by a heartbeat of the member."""
        self._members.add(member)
        self.topics, self.at_ms, self.source, self.settled = topics, at_ms, piece.source, False
        self.versions, self.reporter = piece.values["versions"], member
        self.line = (second_ms, piece.position)


# The client id for a line in a client's log: lines name the group, but not always the client.
#
# All processes of a client append to one file. From 5.1 on each line has the process id; in older
# logs the last client id that the file named for the group counts.
def named_client(piece: GroupEvidence) -> str | None:
    """Return the client id stated by the piece or by its dump's file, or None if neither does."""
    if piece.kind in ("client", "client_subscription", "client_queue", "client_pop_queue"):
        return piece.values.get("client_file")
    if piece.kind == "consumer_expired":
        return piece.values.get("client_id")
    if piece.kind in (
        "consumer_connected",
        "consumer_left",
        "consumer_closed",
        "member",
        "listed_client",
        "heartbeat",
        "allocated",
        "broker_allocated",
        "client_language",
        "lock_refused",
    ):
        return piece.values["client_id"]
    return None


class ProcessNames:
    """Client ids of one group, looked up by client log, process and time."""

    def __init__(self, pieces: Iterable[Evidence], context: ClusterContext) -> None:
        self._context = context
        self._places: dict[str, str] = {}
        self._named_ms: dict[str, int] = {}
        self._mentions: dict[tuple[str, object], list[tuple[int, str]]] = {}
        for piece in filter(is_on_group, pieces):
            if piece.kind in ("heartbeat", "allocated", "client_language"):
                key = (piece.place, piece.values.get("pid"))
                mention = (context.time_of(piece), piece.values["client_id"])
                self._mentions.setdefault(key, []).append(mention)
                self._places[mention[1]] = piece.place
                named_ms = self._named_ms.get(mention[1], mention[0])
                self._named_ms[mention[1]] = min(named_ms, mention[0])
        for mentions in self._mentions.values():
            mentions.sort()

    def client_of(self, piece: Evidence) -> str | None:
        """Return the client id, or None if the file never named it."""
        mentions = self._mentions.get((piece.place, piece.values.get("pid")))
        if not mentions:
            return None
        index = bisect_right(mentions, self._context.time_of(piece), key=lambda mention: mention[0])
        return mentions[max(index - 1, 0)][1]

    def logged(self, client_id: str) -> tuple[int, int] | None:
        """Return the period in which its own log shows what the client does, beginning with the
        first line that names it, or None if no log does.
        """
        since_ms = self._named_ms.get(client_id)
        if since_ms is None:
            return None
        return since_ms, self._context.client_ends.get(self._places[client_id], since_ms)

    def is_alone(self, piece: Evidence) -> bool:
        """Return whether the process has no second member of the group, as far as its log shows."""
        mentions = self._mentions.get((piece.place, piece.values.get("pid")), ())
        return len({client_id for _, client_id in mentions}) <= 1

    def zone_of(self, client_id: str) -> str | None:
        """Return the time zone of the client's host in ``collection.toml``, or None if it has
        none.
        """
        return self._context.client_zones.get(self._places.get(client_id, ""))


# Processes with one client id in one group, from the connections that several brokers log.
#
# A process holds one connection to each broker it knows, so the brokers' counts of connections show
# how many processes there are. A process joined if every broker that has connections has one more.
# Only a broker that freezes and thaws registers all queued connections (rocketmq.md §13 no. 5),
# while two processes that share an id (rocketmq.md §1.2) appear at all brokers. A process left if
# no broker has as many as there are processes, or if one broker has fewer for longer than a
# heartbeat takes: after one broker closes an idle or broken connection, the next heartbeat opens it
# again, and the process stays alive at the others. A process that unregisters does so at every
# broker, so once one broker logs this, it is gone, and another broker that keeps listing it has a
# stale list. After the end of a broker's log, only dumps show its connections: those it logged last
# may be gone, and it may still have a client that another broker lost.
SAME_LOSS_MS = CHANNEL_SCAN_MS + 1_000
"""Removals closer together than this are one loss: brokers scan independently, and log times are in
whole seconds.
"""
RETURN_MS = 3 * HEARTBEAT_MS
"""After a broker's restart, a live client is back within one or two heartbeats (30 s each)."""


@dataclass(slots=True)
class ConnectionChange:
    """The arrival or departure of a process.

    Attributes:
        at_ms: the time according to the first broker.
        joined: whether it arrived rather than left.
        channel: the connection that names the change.
        scanned: whether it was removed by a scan, which notifies no member.
        graceful: whether it unregistered.
        source: the line.
        broker: the only broker that saw the change while the process stayed alive; empty if all
            did.
    """

    at_ms: int
    joined: bool
    channel: str
    source: str
    scanned: bool = False
    graceful: bool = False
    broker: str = ""


@dataclass(slots=True)
class _Removal:
    at_ms: int
    channel: str
    source: str
    scanned: bool = False
    graceful: bool = False
    broker: str = ""


@dataclass(slots=True)
class Connections:
    """The connections of one client id, broker by broker.

    ``live`` has the name of each live process, which is the connection with which it was first
    seen. ``ended`` has the brokers whose log has ended, the same set for all ids. ``timed`` is True
    if the id contains a time (from 4.9), so that it belongs to a single process.
    """

    live: list[str] = field(default_factory=list)
    by_broker: dict[str, dict[str, tuple[int, str]]] = field(default_factory=dict)
    ended: set[str] = field(default_factory=set)
    timed: bool = False
    _known_at: set[str] = field(default_factory=set)
    _lost: _Removal | None = None
    """The time since which no broker with a continuing log has known it, although one whose log
    ended may.
    """
    _away: _Removal | None = None
    """The first loss in a continuing log without a return, since it was last seen."""
    _unlisted: _Removal | None = None
    """The first dump without it, since it was last seen."""
    _removals: list[_Removal] = field(default_factory=list)
    _over: set[tuple[str, str]] = field(default_factory=set)
    """The broker and channel of the connections that a process had when it unregistered."""
    _restarted: tuple[int, _Removal] | None = None
    """When the last broker that knew it restarted; it has been gone since then, unless it
    returns.
    """
    _names: dict[str, str] = field(default_factory=dict)
    _expired: dict[str, _Removal] = field(default_factory=dict)
    """Brokers whose scan removed the only process while it had connections elsewhere."""
    _short: dict[str, _Removal] = field(default_factory=dict)
    """Brokers with fewer connections than processes, with the removal that caused it."""
    _last_held: tuple[str, str] | None = None
    """The broker and channel of the last removal of a connection."""

    def connect(self, broker: str, channel: str, at_ms: int, source: str) -> list[ConnectionChange]:
        """Record a broker's line about a new connection."""
        changes = self.settle(at_ms)
        self._over.discard((broker, channel))
        self.by_broker.setdefault(broker, {})[channel] = (at_ms, source)
        self._seen(broker)
        if broker in self._expired and len(self.live) == 1:
            changes += self._lived_on([broker])
            changes.append(ConnectionChange(at_ms, True, self.live[0], source, broker=broker))
        while self._processes() > len(self.live):
            changes.append(self._join())
            self._name_connections(len(self.live) - 1)
        if len(self.by_broker[broker]) >= len(self.live):
            self._short.pop(broker, None)
        free = self._without_connection(broker, channel)
        if free or channel not in self._names:
            self._names[channel] = free[0] if free else self.live[-1]
        return changes

    def _without_connection(self, broker: str, channel: str) -> list[str]:
        """Return, in order, the live processes that have no other connection at the broker."""
        others = self.by_broker[broker].keys() - {channel}
        named = {self._names.get(other) for other in others}
        return [name for name in self.live if name not in named]

    def relist(
        self, broker: str, channels: Iterable[str], at_ms: int, source: str
    ) -> list[ConnectionChange]:
        """Record a dump of all connections of a broker whose log has ended."""
        changes = self.settle(at_ms)
        before = self.by_broker.get(broker, {})
        now = {
            channel: before.get(channel, (at_ms, source))
            for channel in channels
            if (broker, channel) not in self._over  # it does not know the client yet
        }
        self.by_broker[broker] = now
        removal = _Removal(at_ms, next(iter(before.keys() - now.keys()), ""), source)
        if now:
            self._seen(broker)
        elif self._unlisted is None:
            self._unlisted = removal
        while self._processes() > len(self.live):
            changes.append(self._join())
            self._name_connections(len(self.live) - 1)
        new = sorted(now.keys() - self._names.keys())
        self._names |= {channel: self.live[-1] for channel in new if self.live}
        while len(self.live) > self._held():
            changes.append(self._end(self._lost or self._away or self._unlisted or removal))
        return changes

    def _seen(self, broker: str) -> None:
        self._known_at.add(broker)
        self._restarted = self._lost = self._away = self._unlisted = None
        self._removals = []

    def _end(self, removal: _Removal) -> ConnectionChange:
        """End the process whose connection was removed, and return the change."""
        name = self._names.get(removal.channel)
        name = name if name in self.live else self.live[-1]
        self.live.remove(name)
        scanned, graceful = removal.scanned, removal.graceful
        return ConnectionChange(removal.at_ms, False, name, removal.source, scanned, graceful)

    def _name_connections(self, rank: int) -> None:
        """Name the connections at brokers that knew of the process before the others did."""
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
        everywhere: bool = False,
    ) -> list[ConnectionChange]:
        """Record a broker's line stating that a connection is gone.

        ``everywhere``: the process unregistered at every broker, whether or not the others log it.
        """
        changes = self.settle(at_ms)
        if (broker, channel) in self._over:
            return changes  # another broker logged it earlier
        held = self.by_broker.get(broker, {})
        if held.pop(channel, None) is not None:
            self._last_held = (broker, channel)
        if not self.live:
            return changes
        if graceful and len(self.live) == 1:
            held.clear()  # a thawed broker's other connections to it are dead
            for place in self.by_broker if everywhere else self.ended & self.by_broker.keys():
                self._unregister_at(place, at_ms)
        if self._removals and at_ms - self._removals[-1].at_ms > SAME_LOSS_MS:
            self._removals = []
        removal = _Removal(at_ms, channel, source, scanned, graceful, broker)
        self._removals.append(removal)
        if not graceful and self.ended & self._known_at and not self._is_logged():
            self._lost = self._lost or self._removals[0]
            return changes
        gone = len(self.live) - (self._processes() if graceful else self._held())
        if gone > 0 and self._expired:
            first_ms = self._removals[0].at_ms
            early = [
                b for b, expired in self._expired.items() if expired.at_ms < first_ms - SAME_LOSS_MS
            ]
            changes += self._lived_on(early)
            self._expired.clear()
        elif scanned and self._was_all(broker, channel):
            self._expired[broker] = _Removal(at_ms, channel, source, scanned=True)
        changes += [self._leave(removal) for _ in range(gone)]
        if gone <= 0 and len(held) < len(self.live):
            self._short.setdefault(broker, removal)
        return changes

    def _unregister_at(self, place: str, at_ms: int) -> None:
        """Remove the process here, too; connections of the last second may be its successor's."""
        gone = {
            channel for channel, (ms, _) in self.by_broker[place].items() if ms < at_ms - SECOND_MS
        }
        self._over |= {(place, channel) for channel in gone}
        for channel in gone:
            del self.by_broker[place][channel]

    def _was_all(self, broker: str, channel: str) -> bool:
        """Return True if this was the broker's last connection of a process that lives elsewhere.

        The scan closes the connection, which may be logged before the scan's own line.
        """
        last = self._last_held == (broker, channel) and not self.by_broker.get(broker)
        return last and len(self.live) == 1 and self._is_logged()

    def _lived_on(self, brokers: Iterable[str]) -> list[ConnectionChange]:
        """Record that these brokers' scans removed a process that stayed alive."""
        lost = [(broker, self._expired.pop(broker)) for broker in list(brokers)]
        return [
            ConnectionChange(
                removal.at_ms, False, self.live[0], removal.source, scanned=True, broker=broker
            )
            for broker, removal in lost
        ]

    def _is_logged(self) -> bool:
        """Return True if a broker whose log continues has a connection."""
        return any(
            channels for place, channels in self.by_broker.items() if place not in self.ended
        )

    def forget(self, broker: str) -> None:
        """Remove a broker that left the route, so that the connections it knew no longer count."""
        self.by_broker.pop(broker, None)
        self._expired.pop(broker, None)
        self._short.pop(broker, None)

    def restart(self, broker: str, at_ms: int, source: str) -> list[ConnectionChange]:
        """Empty the broker's table at a restart; nothing shows whether its clients are alive.

        A process that all other brokers had lost before has been dead since then, because this
        broker was dead.
        """
        changes = self.settle(at_ms)
        self.forget(broker)
        if self.live and not self._processes():
            before = self._removals[0] if self._removals and len(self.live) == 1 else None
            self._restarted = (at_ms, before or _Removal(at_ms, "", source))
        return changes

    def settle(self, now_ms: int) -> list[ConnectionChange]:
        """End processes that did not return to the only broker that knew them.

        The same applies to processes that no broker with a continuing log has seen since, and to
        one of several that did not return to a broker that has the others.
        """
        changes = []
        for broker, removal in sorted(self._short.items()):
            has = len(self.by_broker.get(broker, ()))
            if now_ms >= removal.at_ms + RETURN_MS:
                del self._short[broker]
                changes += [self._end(removal)] if 0 < has < len(self.live) else []
                if not has and self._away is None and broker not in self.ended:
                    self._away = removal
        return changes + self._all_gone(now_ms)

    def _all_gone(self, now_ms: int) -> list[ConnectionChange]:
        if self._lost is not None and now_ms >= self._lost.at_ms + RETURN_MS:
            return self._all_lost()
        if self._restarted is None or now_ms < self._restarted[0] + RETURN_MS:
            return []
        _, since = self._restarted
        self._restarted, self._removals = None, []
        return [self._end(since) for _ in list(self.live)]

    def finish(self, now_ms: int) -> list[ConnectionChange]:
        """End processes that lost a connection and were not seen again, as no more lines follow."""
        changes = self.settle(now_ms)
        if self._lost is None and len(self.live) == 1:
            early = [
                b for b, removal in self._expired.items() if removal.at_ms <= now_ms - SAME_LOSS_MS
            ]
            changes += self._lived_on(early)
        return changes + self._all_lost()

    def _all_lost(self) -> list[ConnectionChange]:
        lost, self._lost = self._lost, None
        if lost is None:
            return []
        self.by_broker.clear()
        return [self._end(lost) for _ in list(self.live)]

    def process_of(self, channel: str) -> str | None:
        """Return the name of the process that holds the connection, if it exists."""
        name = self._names.get(channel)
        if name in self.live:
            return name
        return self.live[0] if self.live else None

    def _processes(self) -> int:
        """Return the number of processes shown by every broker that has any.

        A single broker shows only one process of an id that several brokers knew and that contains
        a time, because it registers every connection that queued up while it was frozen, and the
        others' logs may lack lines.
        """
        counts = [len(channels) for channels in self.by_broker.values() if channels]
        alone = self.timed and len(counts) == 1 < len(self._known_at)
        return 1 if alone else min(counts, default=0)

    def _held(self) -> int:
        """Return the number of processes that brokers still have, by continuing logs or otherwise
        by any log.
        """
        counts = {place: len(channels) for place, channels in self.by_broker.items()}
        logged = [count for place, count in counts.items() if place not in self.ended]
        most = max(logged, default=0) or max(counts.values(), default=0)
        return min(most, len(self.live))

    def _join(self) -> ConnectionChange:
        """Return the arrival of a process, dated by the first of the connections that show it."""
        rank = len(self.live)
        first = min(
            (at_ms, channel, source)
            for channels in self.by_broker.values()
            if channels
            for at_ms, channel, source in [
                sorted((at_ms, channel, source) for channel, (at_ms, source) in channels.items())[
                    rank
                ]
            ]
        )
        at_ms, channel, source = first
        if channel in self.live:  # one port can serve two connections, to two brokers
            channel = f"{channel}#{rank + 1}"
        self.live.append(channel)
        return ConnectionChange(at_ms, True, channel, source)

    def _leave(self, last: _Removal) -> ConnectionChange:
        """Return the departure of the process whose connections the brokers lost first.

        Only its UNREGISTER line identifies a process that unregisters.
        """
        if len(self.live) == 1 and self._removals:
            together = self._removals
        elif last.graceful or not self._removals:
            together = [last]
        else:
            firsts: dict[str, _Removal] = {}
            for removal in self._removals:
                firsts.setdefault(removal.broker, removal)
            together = list(firsts.values())
        self._removals = [removal for removal in self._removals if removal not in together]
        first = together[0]
        scanned, graceful = (any(r.scanned for r in together), any(r.graceful for r in together))
        channel = together[-1].channel
        return self._end(_Removal(first.at_ms, channel, first.source, scanned, graceful))
