"""When the processes of each broker started and ended, and what each broker is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from rebalance_core.ingest.evidence.broker_folders import MASTER_ID, BrokerFolder
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.parse.text.client_version import plain_version
from rebalance_core.model.times import MINUTE_MS
from rebalance_core.model.versions import nearest_version

_MENTIONS = ("broker_registered", "broker_address", "broker_known", "broker_removed")
_START_LINES_MS = 5_000
"""A broker prints what it loads beside its settings when it starts."""
_REGISTRATION_MS = MINUTE_MS
"""registerNameServerPeriod at its longest: what fails at the start is tried again so often."""


@dataclass
class BrokerHistory:
    """Starts and ends of the brokers' processes, by place, and what each broker is."""

    folders: Mapping[str, BrokerFolder]
    addresses: Mapping[str, str]
    end_ms: int
    mode_stores: set[tuple[str, int, str]] = field(default_factory=set)
    names: set[str] = field(default_factory=set)
    versions: dict[str, str] = field(default_factory=dict)
    permissions: dict[str, set[tuple[int, int]]] = field(default_factory=dict)
    starts: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    ends: dict[str, set[tuple[int, str]]] = field(default_factory=dict)
    registered: dict[str, int] = field(default_factory=dict)
    """When a name server's log first mentions each broker."""
    _version_ms: dict[str, int] = field(default_factory=dict)

    def read(self, piece: Evidence) -> None:
        """Take what one piece of evidence on the cluster says."""
        v, folder = piece.values, self.folders.get(piece.place)
        if piece.kind == "broker":
            version = plain_version(v["version"] or "")
            if nearest_version(version) and str(v["broker_id"]) == str(MASTER_ID):
                at_ms = self.end_ms if piece.at_ms is None else piece.at_ms
                since_ms = self._version_ms.get(v["broker_name"], at_ms)
                if since_ms <= at_ms:  # it may have been upgraded between two dumps
                    self.versions[v["broker_name"]] = version
                    self._version_ms[v["broker_name"]] = at_ms
        elif piece.kind == "request_modes":
            at_ms = self.end_ms if piece.at_ms is None else piece.at_ms
            if folder is not None and folder.speaks(at_ms):
                self.mode_stores.add((folder.broker_name, at_ms, piece.source))
        elif piece.at_ms is None:
            return
        elif piece.kind == "broker_starting" and folder is not None:
            self.starts.setdefault(folder.place, set()).add((piece.at_ms, piece.source))
            if folder.speaks(piece.at_ms):
                masks = self.permissions.setdefault(folder.broker_name, set())
                masks.add((piece.at_ms, v["perm"]))
        elif piece.kind == "broker_stopping" and folder is not None:
            self._ended({folder.place}, piece.at_ms, piece.source)
        elif piece.kind == "broker_removed":
            self.names.add(v["broker"])
            of_name = [f.place for f in self.folders.values() if f.broker_name == v["broker"]]
            self._ended({v["broker"], *of_name}, piece.at_ms, piece.source)
        elif piece.kind == "replica_removed":
            address = v["address"]
            places = {f.place for f in self.folders.values() if address in f.addresses}
            self._ended(places, piece.at_ms, piece.source)

    def begin_of(self, folder: BrokerFolder, since_ms: int) -> int:
        """Since when its log, whose first statement is this old, tells what happens there.

        A broker that the name servers did not know before its log's first line is new.
        """
        first, known = self._first_start(folder, since_ms), self.registered.get(folder.broker_name)
        if first is None or known is None:
            return since_ms
        others = [at_ms for at_ms in self.registered.values() if at_ms < first]
        return 0 if others and known >= first else since_ms

    def first_route(self, folder: BrokerFolder, since_ms: int) -> int | None:
        """When a name server first had a master whose log begins with its start, if it did then."""
        first, known = self._first_start(folder, since_ms), self.registered.get(folder.broker_name)
        if folder.slave or first is None or known is None:
            return None
        return known if first <= known <= first + _REGISTRATION_MS else None

    def _first_start(self, folder: BrokerFolder, since_ms: int) -> int | None:
        """The start that its log begins with."""
        first = min((at_ms for at_ms, _ in self.starts.get(folder.place, ())), default=None)
        return first if first is not None and first <= since_ms + _START_LINES_MS else None

    def note_mention(self, piece: Evidence) -> None:
        """A name server's line on a broker."""
        if piece.kind in _MENTIONS and piece.at_ms is not None:
            v = piece.values
            name = v.get("broker") or self.addresses.get(v["address"])
            if name is not None:
                self.registered[name] = min(piece.at_ms, self.registered.get(name, piece.at_ms))

    def _ended(self, places: Iterable[str], at_ms: int, source: str) -> None:
        for place in places:
            self.ends.setdefault(place, set()).add((at_ms, source))
