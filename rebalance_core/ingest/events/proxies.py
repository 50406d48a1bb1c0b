"""Connections of the members behind proxies, from the proxies' logs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Final

from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.events.connections import RETURN_MS
from rebalance_core.ingest.events.listings import beat_ms
from rebalance_core.ingest.evidence import Evidence, is_on_group
from rebalance_core.ingest.parse.channels import GRPC, REMOTING
from rebalance_core.ingest.piece import Piece
from rebalance_core.model.times import MINUTE_MS, SECOND_MS

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ConsumerClosedPiece,
        ConsumerConnectedPiece,
        ConsumerDataPiece,
        ConsumerDataValues,
        ConsumerExpiredPiece,
        ConsumerLeftPiece,
        GroupEvidence,
        ProxyStartingPiece,
    )

# The topics to which a member behind a proxy subscribes (rocketmq.md §14).
#
# Only remoting clients' lines name the client. A gRPC client's settings are not logged in full, but
# a proxy, or a broker with an embedded proxy, logs each topic that is new to its table for the
# group, right after the member that added it. The members subscribe to the topics then in the
# table.
BROUGHT_MS = 2 * SECOND_MS
"""The lines about a member's topics follow the line about the member; times have whole seconds."""


class ProxyGroupTopics:
    """The group's topics at each place over time."""

    def __init__(self, pieces: Iterable[GroupEvidence], context: ClusterContext) -> None:
        self._context = context
        self._changes: dict[str, list[tuple[int, int, str, str | None]]] = {}
        self._listed: set[str] = set()
        for piece in pieces:
            if piece.kind in ("member", "group_connection"):
                self._listed |= {topic for topic, _ in piece.values["subscriptions"] or ()}
                continue
            if piece.kind == "group_emptied":
                topic = None
            elif piece.kind == "group_topic" or (
                piece.kind == "subscription_changed" and "version" not in piece.values
            ):
                topic = piece.values["topic"]
            else:
                continue
            change = (context.time_of(piece), piece.position, piece.kind, topic)
            self._changes.setdefault(piece.place, []).append(change)
        for changes in self._changes.values():
            changes.sort(key=lambda change: change[:2])

    def stated(self, piece: ConsumerConnectedPiece, place: str) -> list[ConsumerDataPiece]:
        """Return a member's line as a statement of its topics at `place`; empty if they are
        unknown.

        Args:
            piece: the line.
            place: the location of the member's connection.
        """
        v = piece.values
        if "protocol" not in v:
            return []
        topics = v["topics"] or self._at(piece) or sorted(self._listed)
        if not topics:
            return []
        values: ConsumerDataValues = {
            "group": v["group"],
            "channel": v["channel"],
            "consume_type": v["consume_type"],
            "message_model": v["message_model"],
            "consume_from_where": None,
            "topics": topics,
            "expressions": {},
            "versions": {},
            "known_ms": None,
        }
        return [
            Piece(
                part=piece.part,
                key=piece.key,
                kind="consumer_data",
                at_ms=piece.at_ms,
                place=place,
                position=piece.position,
                source=piece.source,
                values=values,
            )
        ]

    def _at(self, piece: ConsumerConnectedPiece) -> list[str]:
        """Return the topics that the table at the member's place, or otherwise any table, held at
        that time.
        """
        until_ms = self._context.time_of(piece) + BROUGHT_MS
        held_there = self._held(piece.place, until_ms)
        held = held_there or set().union(*(self._held(place, until_ms) for place in self._changes))
        return sorted(held)

    def _held(self, place: str, until_ms: int) -> set[str]:
        held: set[str] = set()
        for at_ms, _, kind, topic in self._changes.get(place, ()):
            if at_ms > until_ms:
                break
            if kind == "group_emptied":
                held.clear()
            elif topic is not None:
                (held.add if kind == "group_topic" else held.discard)(topic)
        return held


# Members behind proxies, from what each proxy logs about its own and the others' clients
# (rocketmq.md §14).
#
# A proxy logs its clients' connections and those that other proxies report; the client's address
# identifies equal ones. For each connection, the lines of its own proxy count, and those of the
# others only if that proxy is dead or its log is missing.
MEMBER_LINES: Final = (
    "consumer_connected",
    "consumer_left",
    "consumer_closed",
    "consumer_expired",
    "group_topic",
    "group_emptied",
    "subscription_changed",
)
BEHIND = "behind " + PROXIES
"""The place of members behind proxies. Each connection of a gRPC client has its own place, because
a client that uses several proxies is still one process."""
SILENT_MS = 90_000
"""A proxy without a line for this long is dead, because its clients send heartbeats every 10 s."""
TABLE_LINES = ("group_topic", "group_emptied")
"""Facts about a group's topic table, without a member; only `ProxyGroupTopics` needs them."""

_Key = tuple[str, str]


@dataclass
class _Channel:
    """A client's connection: its own proxy, if its log has it, and all proxies that know it.

    ``broken``: its own proxy lost it, but others still count it.
    """

    protocol: str
    own_proxy: str | None = None
    broken: bool = False
    known_at: set[str] = field(default_factory=set)


@dataclass(slots=True)
class _Joined:
    """The line of the first proxy that saw a connection, and the member's place."""

    line: ConsumerConnectedPiece
    place: str


def through_proxies(pieces: Iterable[Evidence], context: ClusterContext) -> list[Evidence]:
    """Return the evidence on a group, with that of proxies as the connections of its members.

    Connections to a broker with an embedded proxy (LOCAL mode) keep their place. Members whose
    lines name no topics get the group's topics at that place; the lines that name these are
    omitted.
    """
    pieces = list(pieces)
    on_group = list(filter(is_on_group, pieces))
    topics = ProxyGroupTopics(on_group, context)
    of_proxies: list[GroupEvidence] = []
    local: list[Evidence] = []
    for piece in on_group:
        if piece.kind in MEMBER_LINES and piece.place.startswith(PROXIES):
            of_proxies.append(piece)
        elif piece.kind == "consumer_connected":
            local += topics.stated(piece, piece.place)
    rest = [
        piece
        for piece in pieces
        if piece.kind not in TABLE_LINES
        and not (piece.kind in MEMBER_LINES and piece.place.startswith(PROXIES))
    ]
    members = _Members(context, topics, _listed(on_group))
    members.take(of_proxies)
    return [*rest, *local, *members.evidence]


def _listed(pieces: Iterable[GroupEvidence]) -> dict[str, str]:
    """Return the client id by address, as listed by the proxies' consumerConnection."""
    return {
        p.values["client_addr"]: p.values["client_id"]
        for p in pieces
        if p.kind == "member" and p.place.startswith(PROXIES)
    }


@dataclass
class _Members:
    context: ClusterContext
    topics: ProxyGroupTopics
    listed: dict[str, str]
    _channels: dict[_Key, _Channel] = field(default_factory=dict)
    _closed: set[_Key] = field(default_factory=set)
    _at: dict[tuple[str, str], _Key] = field(default_factory=dict)
    _orphans: dict[_Key, ProxyStartingPiece] = field(default_factory=dict)
    _joined: dict[_Key, _Joined] = field(default_factory=dict)
    _all_joined: list[_Joined] = field(default_factory=list)
    _ended: list[Evidence] = field(default_factory=list)

    def take(self, pieces: Iterable[GroupEvidence]) -> None:
        """Read the lines of all proxies, in any order."""
        starts: list[ProxyStartingPiece] = [
            Piece(
                part=GROUP,
                key="",
                kind="proxy_starting",
                at_ms=at_ms,
                place=place,
                position=-1,
                source=source,
                values={},
            )
            for place, times in self.context.proxies.starts.items()
            for at_ms, source in times
        ]
        for piece in sorted(
            (*pieces, *starts), key=lambda p: (self.context.time_of(p), p.place, p.position)
        ):
            self._settle(self.context.time_of(piece))
            if piece.kind == "proxy_starting":
                self._started(piece)
            elif piece.kind == "consumer_connected":
                self._connected(piece)
            elif piece.kind in ("consumer_left", "consumer_closed", "consumer_expired"):
                self._removed(piece)
        self._settle(self.context.end_ms)

    @property
    def evidence(self) -> list[Evidence]:
        """The members' connections, each as the first proxy saw it, and their ends."""
        pieces: list[Evidence] = []
        for joined in self._all_joined:
            pieces += (
                replace(joined.line, place=joined.place),
                *self.topics.stated(joined.line, joined.place),
            )
        return pieces + self._ended

    def _connected(self, piece: ConsumerConnectedPiece) -> None:
        v = piece.values
        key = (v["client_id"], v["channel"])
        if v["remote"] and key in self._closed:
            return  # it was reported after its end
        self._closed.discard(key)
        new = key not in self._channels
        channel = self._channels.setdefault(key, _Channel(v["protocol"]))
        channel.known_at.add(piece.place)
        self._at[piece.place, v["channel"]] = key
        self._orphans.pop(key, None)
        if not v["remote"] and not channel.broken:  # or a late heartbeat of a dead connection
            channel.own_proxy = piece.place
        if new:
            self._replace(key, piece)
            self._joined[key] = _Joined(piece, _place(key, channel))
            self._all_joined.append(self._joined[key])
        joined = self._joined.get(key)
        if joined and self._seen_ms(piece) < self._seen_ms(joined.line):
            joined.line = piece

    def _seen_ms(self, piece: ConsumerConnectedPiece) -> int:
        return beat_ms(piece, self.context.time_of(piece))

    def _replace(self, key: _Key, piece: ConsumerConnectedPiece) -> None:
        """End the old connection of a client that lost its proxy or connected to it again."""
        for other in [k for k in self._channels if k[0] == key[0] and k != key]:
            channel = self._channels[other]
            again = not piece.values["remote"] and channel.own_proxy == piece.place
            grpc = channel.protocol == GRPC
            back = channel.broken and not piece.values["remote"]
            if other in self._orphans or back or (again and grpc):
                # the same process throughout: the old connection ends once the new one exists
                at_ms = self.context.time_of(piece) + (SECOND_MS if grpc else 0)
                self._gone(other, _closed(piece, at_ms))

    def _removed(
        self, piece: ConsumerLeftPiece | ConsumerClosedPiece | ConsumerExpiredPiece
    ) -> None:
        address = piece.values["channel"]
        client_id = piece.values.get("client_id") or self.listed.get(address)
        key = (client_id, address) if client_id else self._at.get((piece.place, address))
        if key is None or key in self._closed:
            return  # for a client that no file names, or logged twice
        channel = self._channels.get(key)
        if channel is None:  # it existed before the log begins
            protocol = "" if piece.kind == "consumer_expired" else piece.values.get("protocol", "")
            channel = self._channels[key] = _Channel(protocol or GRPC)
        channel.known_at.discard(piece.place)
        if channel.own_proxy in (None, piece.place) or self._dead(channel.own_proxy, piece):
            others = channel.known_at - {channel.own_proxy}
            alive = any(not self._dead(place, piece) for place in others)
            if alive and self._counts_elsewhere(channel):
                channel.own_proxy, channel.broken = None, True  # gone with the last that knew it
            elif channel.own_proxy == piece.place or not others:
                self._gone(key, piece)

    def _counts_elsewhere(self, gone: _Channel) -> bool:
        """Return True if members behind other proxies still allocate queues by lists that include
        it.

        A proxy reports to the others which clients unregistered, but not whose connection broke.
        """
        return gone.protocol == REMOTING and any(
            channel.protocol == REMOTING and channel.own_proxy not in (None, gone.own_proxy)
            for channel in self._channels.values()
        )

    def _dead(self, place: str | None, piece: Evidence) -> bool:
        now = self.context.time_of(piece)
        minutes = self.context.proxies.minutes.get(place or "", ())
        return not any(now - SILENT_MS - MINUTE_MS < m * MINUTE_MS <= now for m in minutes)

    def _started(self, piece: ProxyStartingPiece) -> None:
        """Empty a proxy's table when it starts: only other proxies still know its queues."""
        for key, channel in self._channels.items():
            channel.known_at.discard(piece.place)
            if channel.own_proxy == piece.place:
                channel.own_proxy = None
            if channel.own_proxy is None and not channel.known_at:
                self._orphans.setdefault(key, piece)

    def _settle(self, now_ms: int) -> None:
        """End connections that did not come back elsewhere, because they died with the proxy."""
        for key, start in list(self._orphans.items()):
            if now_ms >= self.context.time_of(start) + RETURN_MS:
                self._gone(key, _closed(start, start.at_ms))

    def _gone(self, key: _Key, piece: Evidence) -> None:
        channel = self._channels.pop(key)
        self._orphans.pop(key, None)
        self._closed.add(key)
        values = {"channel": key[1], "client_id": key[0]}
        self._ended.append(replace(piece, place=_place(key, channel), values=values))


def _closed(piece: Evidence, at_ms: int | None) -> Evidence:
    """Return the end of a connection that another kind of line shows."""
    return replace(piece, kind="consumer_closed", at_ms=at_ms)


def _place(key: _Key, channel: _Channel) -> str:
    return f"{BEHIND}{key[1]}" if channel.protocol == GRPC else BEHIND
