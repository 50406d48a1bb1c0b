"""Starts and ends of each broker's processes, and the broker's role."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple

from rebalance_core.ingest.broker_folders import (
    MASTER_ID,
    BrokerFolder,
    registered,
)
from rebalance_core.ingest.collection import TOPICS
from rebalance_core.ingest.parse.wire_versions import plain_version
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.model.versions import nearest_version

if TYPE_CHECKING:
    from rebalance_core.ingest.evidence_types import (
        ClusterEvidence,
        RequestModesPiece,
        StoreCopiedPiece,
    )


_START_LINES_MS = 5_000
"""When it starts, a broker prints what it loads close to its settings."""


_REGISTRATION_MS = MINUTE_MS
"""The longest registerNameServerPeriod; registrations that fail at startup are retried at this
interval.
"""


class StoreRead(NamedTuple):
    """A store that was read completely, so that an entry missing from it did not exist."""

    broker: str
    at_ms: int
    source: str


@dataclass
class BrokerHistory:
    """Starts and ends of the brokers' processes, by place, and the kind of each broker."""

    folders: Mapping[str, BrokerFolder]
    addresses: Mapping[str, str]
    end_ms: int
    mode_stores: set[StoreRead] = field(default_factory=set)
    topic_stores: set[StoreRead] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    permissions: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    starts: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    ends: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    registered: dict[str, int] = field(default_factory=dict)
    """When a name server's log first mentions each broker."""
    _version_ms: dict[str, int] = field(default_factory=dict)

    def read(self, piece: ClusterEvidence) -> None:
        """Record a piece of evidence about the cluster."""
        folder = self.folders.get(piece.place)
        if piece.kind == "broker":
            version = plain_version(piece.values["version"] or "")
            if nearest_version(version) and piece.values["broker_id"] == MASTER_ID:
                at_ms = self.end_ms if piece.at_ms is None else piece.at_ms
                since_ms = self._version_ms.get(piece.values["broker_name"], at_ms)
                if since_ms <= at_ms:  # it may have been upgraded between two dumps
                    self.versions[piece.values["broker_name"]] = version
                    self._version_ms[piece.values["broker_name"]] = at_ms
        elif piece.kind in ("request_modes", "store_copied"):
            self._read_store(piece, folder)
        elif piece.at_ms is None:
            return
        elif piece.kind == "broker_starting" and folder is not None:
            self.starts.setdefault(folder.place, set()).add((piece.at_ms, piece.source))
            if folder.is_authoritative(piece.at_ms):
                masks = self.permissions.setdefault(folder.broker_name, set())
                masks.add((piece.at_ms, piece.values["perm"]))
        elif piece.kind == "broker_stopping" and folder is not None:
            self._ended({folder.place}, piece.at_ms, piece.source)
        elif piece.kind == "broker_removed":
            self.names.add(piece.values["broker"])
            of_name = [
                f.place for f in self.folders.values() if f.broker_name == piece.values["broker"]
            ]
            self._ended({piece.values["broker"], *of_name}, piece.at_ms, piece.source)
        elif piece.kind == "replica_removed":
            address = piece.values["address"]
            places = {f.place for f in self.folders.values() if address in f.addresses}
            self._ended(places, piece.at_ms, piece.source)

    def _read_store(
        self, piece: RequestModesPiece | StoreCopiedPiece, folder: BrokerFolder | None
    ) -> None:
        """Record one of the broker's own stores if it was read completely."""
        at_ms = self.end_ms if piece.at_ms is None else piece.at_ms
        if folder is None or not folder.is_authoritative(at_ms):
            return
        store = StoreRead(folder.broker_name, at_ms, piece.source)
        if piece.kind == "request_modes":
            self.mode_stores.add(store)
        elif piece.values["store"] == TOPICS and piece.values["whole"]:
            self.topic_stores.add(store)

    def begin_of(self, folder: BrokerFolder, since_ms: int) -> int:
        """Return the time from which a log whose first statement is at ``since_ms`` covers its
        broker.

        A broker unknown to the name servers before its log's first line is new.
        """
        first = self._first_start(folder, since_ms)
        registered_ms = self.registered.get(folder.broker_name)
        if first is None or registered_ms is None:
            return since_ms
        others = [at_ms for at_ms in self.registered.values() if at_ms < first]
        return 0 if others and registered_ms >= first else since_ms

    def first_route(self, folder: BrokerFolder, since_ms: int) -> int | None:
        """Return when a name server first had a master whose log begins with its start, or None."""
        first = self._first_start(folder, since_ms)
        registered_ms = self.registered.get(folder.broker_name)
        if folder.slave or first is None or registered_ms is None:
            return None
        return registered_ms if first <= registered_ms <= first + _REGISTRATION_MS else None

    def _first_start(self, folder: BrokerFolder, since_ms: int) -> int | None:
        """Return the time of the start with which the folder's log begins, or None."""
        first = min((at_ms for at_ms, _ in self.starts.get(folder.place, ())), default=None)
        return first if first is not None and first <= since_ms + _START_LINES_MS else None

    def note_mention(self, piece: ClusterEvidence) -> None:
        """Record when a name server's line first mentions a broker."""
        name = None
        if piece.kind in ("broker_registered", "broker_address", "broker_known"):
            name = registered(piece, self.addresses)
        elif piece.kind == "broker_removed":
            name = piece.values["broker"]
        if name is not None and piece.at_ms is not None:
            self.registered[name] = min(piece.at_ms, self.registered.get(name, piece.at_ms))

    def _ended(self, places: Iterable[str], at_ms: int, source: str) -> None:
        for place in places:
            self.ends.setdefault(place, set()).add((at_ms, source))
