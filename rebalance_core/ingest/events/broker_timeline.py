"""BROKER_UP and BROKER_DOWN from the name servers, or otherwise from the brokers themselves."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from rebalance_core.ingest.broker_folders import (
    HEARD_MS,
    registered,
    silences,
    without_graceful_stops,
)
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence import Evidence, is_on_cluster
from rebalance_core.ingest.masters import MasterTurn
from rebalance_core.ingest.own_settings import notice_events
from rebalance_core.ingest.parse.inside_second import MIDDLE_MS
from rebalance_core.ingest.rows import Event, Finding, Tables, event, finding
from rebalance_core.model import events
from rebalance_core.model.versions import nearest_version

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        BrokerAddressPiece,
        BrokerBootedPiece,
        BrokerRegisteredPiece,
        BrokerRemovedPiece,
        BrokerStartingPiece,
        ClusterEvidence,
        NameServerStartingPiece,
    )

STOPPED, CLOSED = "STOPPED", "CLOSED"
_CAUSE_MS = 2_000
"""The cause of a removal is logged right before it; the removal runs in a batch (5.x)."""


@dataclass
class BrokerRegistry:
    """Follows the registrations of brokers through all name servers' logs.

    A broker is up while any of them has it. A name server that starts knows no broker, and all live
    brokers register within `HEARD_MS`; until then, clients keep the routes that they had. A broker
    that does not register has been gone since that start, or since the others lost it while that
    name server was down.
    """

    context: ClusterContext
    rows: list[Event] = field(default_factory=list)
    _there: dict[str, set[str]] = field(default_factory=dict)
    _silent: dict[str, set[str]] = field(default_factory=dict)
    """Name servers that had the broker when they stopped, until they start again."""
    _awaited: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Brokers that no name server has known since one of them started, with the time of that
    start."""
    _cause: dict[str, tuple[int, str]] = field(default_factory=dict)

    def read(self, ordered: Sequence[ClusterEvidence]) -> list[Event]:
        """Return BROKER_UP and BROKER_DOWN from evidence on the cluster, which is in order of
        time.
        """
        ordered = without_graceful_stops(ordered)
        silent = silences(ordered)
        for number, piece in enumerate(ordered):
            at_ms = self.context.time_of(piece)
            self._give_up(at_ms)
            if piece.kind == "broker_channel_closed":
                # the scan closes the channel of a broker that it finds expired
                if at_ms - self._cause.get(piece.place, (0, ""))[0] > _CAUSE_MS:
                    self._cause[piece.place] = (at_ms, CLOSED)
            elif piece.kind == "broker_expired":
                self._cause[piece.place] = (at_ms, events.EXPIRED)
            elif piece.kind in ("broker_registered", "broker_address"):
                self._registered(piece, at_ms)
            elif piece.kind == "broker_removed":
                self._removed(piece, at_ms)
            elif piece.kind == "name_server_starting":
                self._started(piece, at_ms)
            elif piece.kind == "name_server_stopping":
                self._stopped(piece.place)
            if number in silent:
                self._stopped(silent[number])
        self._give_up(self.context.end_ms)
        return self.rows

    def _registered(self, piece: BrokerRegisteredPiece | BrokerAddressPiece, at_ms: int) -> None:
        name = registered(piece, self.context.addresses)
        if name is None or not _has_route(piece, name, self.context):
            return
        servers = self._there.setdefault(name, set())
        if not (servers or self._silent.get(name) or name in self._awaited):
            self.rows.append(broker_up(name, at_ms + MIDDLE_MS, piece.source, self.context))
        self._awaited.pop(name, None)
        servers.add(piece.place)

    def _removed(self, piece: BrokerRemovedPiece, at_ms: int) -> None:
        name = piece.values["broker"]
        already_gone = name in self._there and not self._there[name] and not self._silent.get(name)
        servers = self._there.setdefault(name, set())
        servers.discard(piece.place)
        if servers or (already_gone and is_down(self.rows, name)):
            return
        self._silent.pop(name, None)
        since, detail = self._cause.get(piece.place, (0, STOPPED))
        detail = detail if at_ms - since <= _CAUSE_MS else STOPPED
        self._down(name, at_ms, piece.source, detail)

    def _stopped(self, place: str) -> None:
        for name, servers in self._there.items():
            if place in servers:
                servers.discard(place)
                self._silent.setdefault(name, set()).add(place)

    def _started(self, piece: NameServerStartingPiece, at_ms: int) -> None:
        for name, places in self._silent.items():
            if piece.place in places:
                places.discard(piece.place)
                if not places and not self._there[name]:
                    self._awaited[name] = (at_ms, piece.source)

    def _give_up(self, now_ms: int) -> None:
        for name, (since_ms, source) in list(self._awaited.items()):
            if now_ms > since_ms + HEARD_MS:
                del self._awaited[name]
                self._down(name, since_ms, source, CLOSED)

    def _down(self, name: str, at_ms: int, source: str, detail: str) -> None:
        at_ms += MIDDLE_MS
        self.rows.append(event(events.BROKER_DOWN, at_ms, source, broker_name=name, detail=detail))


def broker_up(
    name: str, at_ms: int, source: str, context: ClusterContext, detail: str | None = None
) -> Event:
    """Return the BROKER_UP row of a broker that came up or was already up (OBSERVED)."""
    nearest = nearest_version(context.versions.get(name, ""))
    version = None if nearest is None else str(nearest)
    return event(events.BROKER_UP, at_ms, source, broker_name=name, version=version, detail=detail)


def is_down(rows: list[Event], name: str) -> bool:
    """Return True if the broker's last row is BROKER_DOWN."""
    last = next((row for row in reversed(rows) if row["broker_name"] == name), None)
    return last is not None and last["event_type"] == events.BROKER_DOWN


def _has_route(
    piece: BrokerRegisteredPiece | BrokerAddressPiece, name: str, context: ClusterContext
) -> bool:
    """Return True if the process registers topics, which a 4.9 slave without a master does not.

    RouteInfoManager.registerBroker, ``isPrimeSlave``.
    """
    return piece.values["address"] not in context.slaves or not context.is_v4(name)


# BROKER_UP and BROKER_DOWN from the name servers' logs, or otherwise from the brokers' own; also
# MASTER_UP and MASTER_DOWN.
_OWN_LIFE: Final = ("broker_starting", "broker_booted", "broker_stopping")


def broker_tables(pieces: Iterable[Evidence], context: ClusterContext) -> Tables:
    """Return events of all brokers, and findings on events missing from the name servers' logs.

    A broker is up while any name server whose log was collected has one of its replicas. It goes
    down when the last name server removes it, and is up again from the start in its own log if the
    name servers' logs lack the registration. Without a name server's log, only starts and graceful
    stops in the brokers' own logs are known.
    """
    on_cluster = filter(is_on_cluster, pieces)
    ordered = sorted(on_cluster, key=lambda p: (context.time_of(p), p.place, p.position))
    registry = [
        p for p in ordered if p.kind in ("broker_registered", "broker_address", "broker_removed")
    ]
    if registry:
        rows = BrokerRegistry(context).read(ordered)
        heard_ms = max(map(context.time_of, registry))
        rows += list(_back_unheard(rows, ordered, heard_ms, context))
    else:
        rows = _from_brokers(ordered, context)
    findings = [] if registry else [_no_name_server()]
    seen = {row["broker_name"] for row in rows}
    first: dict[str, Event] = {}
    for row in rows:
        first.setdefault(row["broker_name"], row)
    for name in context.brokers:
        if name not in seen or first[name]["event_type"] == events.BROKER_DOWN:
            source = first[name]["source"] if name in first else "collection.toml"
            rows.append(broker_up(name, context.start_ms, source, context, events.OBSERVED))
    rows += [_turned(turn) for turn in context.master_turns]
    rows += notice_events(ordered, context)
    return {"cluster_events": rows, "findings": findings}


def _back_unheard(
    rows: list[Event], ordered: list[ClusterEvidence], heard_ms: int, context: ClusterContext
) -> Iterator[Event]:
    """Yield starts of brokers that were down and whose registration is in no name server's log.

    They count if a dump lists the broker later, or if no name server logs anything any more,
    because its log ended or the line was dropped. If the broker's own log ends before its start is
    complete, only a dump shows that the start succeeded.
    """
    for piece in _starts(ordered):
        at_ms = context.time_of(piece)
        folder = context.folders.get(piece.place)
        name = folder.broker_name if folder else piece.place
        name = piece.values["broker"] if piece.kind == "broker_booted" else name
        if folder and folder.slave and context.is_v4(name):
            continue
        named = [row for row in rows if row["broker_name"] == name]
        before = [row for row in named if row["event_ms"] <= at_ms + HEARD_MS]
        last = max(before, key=lambda row: row["event_ms"], default=None)
        if last is None or last["event_type"] != events.BROKER_DOWN or last["event_ms"] > at_ms:
            continue
        end_ms = min((row["event_ms"] for row in named if row["event_ms"] > at_ms), default=None)
        listed = (
            context.time_of(listing)
            for listing in ordered
            if listing.kind in ("broker", "route_broker") and listing.values["broker_name"] == name
        )
        unheard = piece.kind == "broker_booted" and heard_ms < at_ms
        if unheard or any(at_ms < ms and (end_ms is None or ms < end_ms) for ms in listed):
            yield broker_up(name, at_ms + MIDDLE_MS, piece.source, context)


def _starts(
    ordered: Iterable[ClusterEvidence],
) -> Iterator[BrokerBootedPiece | BrokerStartingPiece]:
    """Yield the line of each start that succeeded, then the first line of each last start whose
    success is not logged.
    """
    last: dict[str, BrokerStartingPiece] = {}
    for piece in ordered:
        if piece.kind == "broker_starting":
            last[piece.place] = piece
        elif piece.kind in _OWN_LIFE:
            last.pop(piece.place, None)
            if piece.kind == "broker_booted":
                yield piece
    yield from last.values()


def _from_brokers(ordered: list[ClusterEvidence], context: ClusterContext) -> list[Event]:
    """Return rows of BROKER_UP and BROKER_DOWN from the starts and stops in brokers' own logs."""
    rows: list[Event] = []
    alive = _running_at_first(ordered, context)
    for piece in ordered:
        if piece.kind not in _OWN_LIFE:
            continue
        at_ms = context.time_of(piece) + MIDDLE_MS
        folder = context.folders.get(piece.place)
        name = piece.values["broker"] if piece.kind == "broker_booted" else piece.place
        name = folder.broker_name if folder else name
        others = alive.setdefault(name, set()) - {piece.place}
        if piece.kind != "broker_stopping":
            alive[name].add(piece.place)
            down = is_down(rows, name)
            if folder and folder.slave:
                back = down and not context.is_v4(name)
            else:
                back = down or not others
            if piece.kind == "broker_booted" and back:
                rows.append(broker_up(name, at_ms, piece.source, context))
            continue
        alive[name] = others
        if not others:
            rows.append(
                event(events.BROKER_DOWN, at_ms, piece.source, broker_name=name, detail=STOPPED)
            )
    return rows


def _running_at_first(
    ordered: list[ClusterEvidence], context: ClusterContext
) -> dict[str, set[str]]:
    """Return, by broker, the folders whose log lacks the start; "": a master without a log."""
    first: dict[str, str] = {}
    for piece in ordered:
        if piece.kind in _OWN_LIFE:
            first.setdefault(piece.place, piece.kind)
    running: dict[str, set[str]] = {}
    masters = {f.broker_name for f in context.folders.values() if not f.slave}
    for name, folder in context.folders.items():
        folders = running.setdefault(folder.broker_name, set())
        if folder.place in context.logged and first.get(name) in (None, "broker_stopping"):
            folders.add(name)
        if folder.broker_name not in masters:
            folders.add("")
    return running


def _turned(turn: MasterTurn) -> Event:
    kind = events.MASTER_DOWN if turn.is_down else events.MASTER_UP
    return event(kind, turn.at_ms, turn.source, broker_name=turn.broker_name, detail=turn.mode)


def _no_name_server() -> Finding:
    return finding(
        "INGEST_NO_NAMESRV_LOG",
        "No name server's log was collected, so a crash of a broker goes unnoticed.",
        "Collect namesrv.log of every name server.",
        "WARNING",
    )
