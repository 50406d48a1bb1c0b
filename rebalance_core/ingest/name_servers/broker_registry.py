"""When brokers are up and down by what all name servers know (RouteInfoManager)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.name_servers.silences import (
    HEARD_MS,
    STARTS,
    STOPS,
    heard,
    silences,
)
from rebalance_core.ingest.parse.text.second_resolution import MIDDLE_MS
from rebalance_core.ingest.rows import Row, event
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, EXPIRED
from rebalance_core.model.versions import nearest_version

STOPPED, CLOSED = "STOPPED", "CLOSED"
_CAUSE_MS = 2_000
"""The cause of a removal is logged right before it; the removal runs in a batch (5.x)."""


@dataclass
class BrokerRegistry:
    """Follows the logs of all name servers.

    A broker is up while any of them has it. One that starts knows none, and all that live register
    within `HEARD_MS`; clients keep the routes that they had until then. A broker that does not
    register is gone since that start, or since the others lost it while that one was down.
    """

    context: ClusterContext
    rows: list[Row] = field(default_factory=list)
    _there: dict[str, set[str]] = field(default_factory=dict)
    _silent: dict[str, set[str]] = field(default_factory=dict)
    """Name servers that had the broker when they stopped, until they start again."""
    _awaited: dict[str, tuple[int, str]] = field(default_factory=dict)
    """Brokers that nobody knows since a name server started, with the time of that."""
    _cause: dict[str, tuple[int, str]] = field(default_factory=dict)

    def read(self, ordered: Sequence[Evidence]) -> list[Row]:
        """BROKER_UP and BROKER_DOWN; evidence on the cluster by time."""
        ordered = heard(ordered)
        silent = silences(ordered)
        for number, piece in enumerate(ordered):
            at_ms = self.context.time_of(piece)
            self._give_up(at_ms)
            if piece.kind == "broker_channel_closed":
                # the scan closes the channel of a broker that it finds expired
                if at_ms - self._cause.get(piece.place, (0, ""))[0] > _CAUSE_MS:
                    self._cause[piece.place] = (at_ms, CLOSED)
            elif piece.kind == "broker_expired":
                self._cause[piece.place] = (at_ms, EXPIRED)
            elif piece.kind in ("broker_registered", "broker_address"):
                self._registered(piece, at_ms)
            elif piece.kind == "broker_removed":
                self._removed(piece, at_ms)
            elif piece.kind == STARTS:
                self._started(piece, at_ms)
            elif piece.kind == STOPS:
                self._stopped(piece.place)
            if number in silent:
                self._stopped(silent[number])
        self._give_up(self.context.end_ms)
        return self.rows

    def _registered(self, piece: Evidence, at_ms: int) -> None:
        name = piece.values.get("broker") or self.context.addresses.get(piece.values["address"])
        if name is None or not _has_route(piece, name, self.context):
            return
        servers = self._there.setdefault(name, set())
        if not (servers or self._silent.get(name) or name in self._awaited):
            self.rows.append(broker_up(name, at_ms + MIDDLE_MS, piece.source, self.context))
        self._awaited.pop(name, None)
        servers.add(piece.place)

    def _removed(self, piece: Evidence, at_ms: int) -> None:
        name = piece.values["broker"]
        known = name in self._there and not self._there[name] and not self._silent.get(name)
        servers = self._there.setdefault(name, set())
        servers.discard(piece.place)
        if servers or (known and is_down(self.rows, name)):
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

    def _started(self, piece: Evidence, at_ms: int) -> None:
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
        self.rows.append(event(BROKER_DOWN, at_ms, source, broker_name=name, detail=detail))


def broker_up(
    name: str, at_ms: int, source: str, context: ClusterContext, detail: str | None = None
) -> Row:
    """The row of a broker that came, or was there (OBSERVED)."""
    nearest = nearest_version(context.versions.get(name, ""))
    version = None if nearest is None else str(nearest)
    return event(BROKER_UP, at_ms, source, broker_name=name, version=version, detail=detail)


def is_down(rows: list[Row], name: str) -> bool:
    """True if the broker's last row says that it went."""
    last = next((row for row in reversed(rows) if row["broker_name"] == name), None)
    return last is not None and last["event_type"] == BROKER_DOWN


def _has_route(piece: Evidence, name: str, context: ClusterContext) -> bool:
    """False for a slave of 4.9: only from 5.0 on one without its master registers topics.

    RouteInfoManager.registerBroker, ``isPrimeSlave``.
    """
    return piece.values["address"] not in context.slaves or not context.is_v4(name)
