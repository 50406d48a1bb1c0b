"""What every group and topic has to know of the cluster: brokers, their starts, the time span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from rebalance_core.ingest.broker_history import BrokerHistory
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.evidence.broker_folders import (
    BrokerDirectory,
    BrokerFolder,
    broker_folders,
    switched,
)
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.store_copies import BrokerStore, rocksdb_stores
from rebalance_core.ingest.masters.master_turns import master_turns, modes_at_end
from rebalance_core.ingest.masters.replicas import Replicas
from rebalance_core.ingest.masters.turn import MasterTurn
from rebalance_core.ingest.name_servers.silences import heard
from rebalance_core.ingest.proxies.proxy_lives import ProxyLives, proxy_lives
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from rebalance_core.model.versions import nearest_version

QueueOfGroup = tuple[str, str, str, int]


@dataclass(frozen=True)
class ClusterContext:
    """Small and plain: it travels to every task.

    Attributes:
        cluster: name of the cluster.
        start_ms: first moment that any log of a server covers; what was there already is OBSERVED
            at this time.
        end_ms: last moment of the collection; documents without a time are of then.
        brokers: names of all brokers.
        addresses: broker name by address.
        versions: broker version by name, where a dump tells, as it is stated: it may be older than
            any that is known (`nearest_version`).
        permissions: brokerPermission by broker and time of its start, newest last.
        starts: (time, source) of each start of a broker; its table of consumers is empty then.
        ends: (time, source) of each moment at which a broker was out of the route or stopped.
            Both by `BrokerFolder.place`.
        assumed: what is taken where no file says it.
        given: rows of the collection's consumer_groups.jsonl by group.
        client_zones: time zone by client folder.
        first_routes: of brokers that are new, when a name server first had them.
        logged: of the places whose broker.log was collected, when its last line was written.
        log_begins: of the same places since when the log tells what happens there; 0: there was
            no such broker before.
        folders: whose files lie in each folder of brokers/.
        slaves: addresses of slaves.
        master_turns: when masters went and came back, by time.
        slave_modes: by broker that has slaves what they do without its master, at the end; None:
            no file tells it.
        expected: brokers that ``collection.toml`` names, a slave's folder as its broker.
        mode_stores: (broker, time, source) of each messageRequestMode.json that was read whole.
        proxies: what files tell of each.
        resets: by group, topic, broker and queue id, when offsets were reset and to what.
        rocksdb: by folder the store of a broker that keeps its configurations in RocksDB.
    """

    cluster: str
    start_ms: int
    end_ms: int
    brokers: tuple[str, ...] = ()
    addresses: Mapping[str, str] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    permissions: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    starts: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    ends: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    assumed: Assumptions = field(default_factory=Assumptions)
    given: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    client_zones: Mapping[str, str] = field(default_factory=dict)
    first_routes: Mapping[str, int] = field(default_factory=dict)
    logged: Mapping[str, int] = field(default_factory=dict)
    log_begins: Mapping[str, int] = field(default_factory=dict)
    folders: Mapping[str, BrokerFolder] = field(default_factory=dict)
    slaves: frozenset[str] = frozenset()
    expected: tuple[str, ...] = ()
    mode_stores: tuple[tuple[str, int, str], ...] = ()
    master_turns: tuple[MasterTurn, ...] = ()
    proxies: ProxyLives = field(default_factory=ProxyLives)
    rocksdb: Mapping[str, BrokerStore] = field(default_factory=dict)
    slave_modes: Mapping[str, str | None] = field(default_factory=dict)
    resets: Mapping[QueueOfGroup, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    @cached_property
    def slave_places(self) -> frozenset[str]:
        """Places of slaves: what their tables of consumers say is no answer of a broker."""
        of_folders = self.folders.values()
        return frozenset(f.place for f in of_folders if f.place != f.broker_name)

    @cached_property
    def places(self) -> Mapping[str, str]:
        """Place by the address of a broker process."""
        own = {a: folder.place for folder in self.folders.values() for a in folder.addresses}
        # an address that no folder has is the master's, or one without files
        return dict(self.addresses) | own

    def answerer(self, broker: str, at_ms: int) -> str:
        """Place of the process that is the master at that time, of those that are so by turns."""
        replicas = [f for f in self.folders.values() if f.broker_name == broker and f.by_turns]
        return next((folder.place for folder in replicas if folder.speaks(at_ms)), broker)

    def tells_since(self, at_ms: int) -> bool:
        """True if whatever happened at any broker since then stands in a log that was collected."""
        return all(self.log_begins.get(name, at_ms + 1) <= at_ms for name in self.brokers)

    def is_masterless(self, broker: str, at_ms: int) -> bool:
        """True while slaves alone answer for the broker."""
        turns = [t for t in self.master_turns if t.broker_name == broker and t.at_ms <= at_ms]
        return bool(turns) and turns[-1].is_down

    def was_masterless(self, broker: str, from_ms: int, to_ms: int) -> bool:
        """True if slaves alone answered for the broker at some time in [from_ms, to_ms]."""
        turns = [t for t in self.master_turns if t.broker_name == broker]
        inside = any(from_ms <= turn.at_ms <= to_ms for turn in turns)
        return inside or self.is_masterless(broker, from_ms)

    def became_master(self, broker: str, at_ms: int) -> int | None:
        """When the master of then took the role over; None: it was always the same one, or gone."""
        by_turns = broker in switched(self.folders.values())
        turns = [t for t in self.master_turns if t.broker_name == broker and t.at_ms <= at_ms]
        return turns[-1].at_ms if by_turns and turns and not turns[-1].is_down else None

    def effective_perm(self, broker: str, perm: int, at_ms: int) -> int:
        """The topic's perm as the broker registers it (rocketmq.md §6.3).

        A brokerPermission without R or W replaces the perm in 4.9 and masks it from 5.0.
        """
        permission = 6
        for since_ms, value in self.permissions.get(broker, ()):
            if since_ms <= at_ms:
                permission = value
        if permission & 6 == 6:
            return perm
        return permission if self.is_v4(broker) else perm & permission

    def is_v4(self, broker: str) -> bool:
        """True if a file tells that the broker is of 4.x or older."""
        version = nearest_version(self.versions.get(broker, ""))
        return version is not None and version.is_v4

    @cached_property
    def exported(self) -> Mapping[str, int | None]:
        """When each JSON store beside a RocksDB was exported, by its file; None: nobody knows."""
        of_folders = self.rocksdb.values()
        return {name: at_ms for one in of_folders for name, at_ms in one.dates.items()}

    @cached_property
    def in_rocksdb(self) -> frozenset[str]:
        """Brokers, by name and by folder, that keep their configurations in RocksDB."""
        names = {self.folders[folder].broker_name for folder in self.rocksdb}
        return frozenset(names | self.rocksdb.keys())

    def log_had_ended(self, place: str, at_ms: int) -> bool:
        """True if the broker.log of the place was collected and its last line is older.

        Of a proxy, whose clients' heartbeats are logged: the last minute with a line on a member.
        """
        if place in self.proxies.minutes:
            return at_ms >= (max(self.proxies.minutes[place]) + 1) * MINUTE_MS
        return place in self.logged and at_ms >= self.logged[place] + SECOND_MS

    def all_logs_had_ended(self, at_ms: int) -> bool:
        """True if every broker.log that was collected ends before."""
        return bool(self.logged) and all(self.log_had_ended(p, at_ms) for p in self.logged)

    def time_of(self, piece: Evidence) -> int:
        """When the evidence was true."""
        at_ms = self.exported.get(piece.source) or piece.at_ms
        return self.end_ms if at_ms is None else at_ms


def cluster_context(
    pieces: Iterable[Evidence],
    *,
    cluster: str,
    start_ms: int,
    end_ms: int,
    expected: Iterable[str],
    folders: Iterable[str],
    assumed: Assumptions,
    given: Mapping[str, Mapping[str, Any]],
    client_zones: Mapping[str, str],
    logged: Mapping[str, int],
    log_begins: Mapping[str, int],
) -> ClusterContext:
    """The context from the evidence on the cluster.

    Args:
        pieces: evidence with part CLUSTER.
        cluster: name of the cluster.
        start_ms: first moment of the servers' logs.
        end_ms: last moment of the collection.
        expected: names of brokers in ``collection.toml``.
        folders: names of the folders of ``brokers/``.
        assumed: see `Assumptions`.
        given: rows of consumer_groups.jsonl by group.
        client_zones: time zone by client folder.
        logged: of folders with a broker.log, the time of its last line.
        log_begins: of folders with a broker.log, the time of the first that states something.
    """
    pieces, expected = list(pieces), list(expected)
    of_folders, directory = broker_folders(folders, pieces, expected, end_ms)
    expected = sorted({_broker_of(name, of_folders, directory) for name in expected})
    history = BrokerHistory(of_folders, directory.names, end_ms)
    for piece in heard(pieces):
        history.read(piece)
        history.note_mention(piece)
    slaves = directory.slaves.union(*(f.addresses for f in of_folders.values() if f.slave))
    nearest = {name: nearest_version(text) for name, text in history.versions.items()}
    modern = {name for name, its in nearest.items() if its is not None and not its.is_v4}
    replicas = Replicas(directory.names, slaves, directory.masters, of_folders, frozenset(modern))
    names = {*expected, *history.names, *directory.names.values()}
    return ClusterContext(
        cluster,
        start_ms,
        end_ms,
        tuple(sorted(names | {folder.broker_name for folder in of_folders.values()})),
        directory.names,
        history.versions,
        {name: tuple(sorted(masks)) for name, masks in history.permissions.items()},
        {place: tuple(sorted(times)) for place, times in history.starts.items()},
        {place: tuple(sorted(times)) for place, times in history.ends.items()},
        assumed,
        given,
        client_zones,
        {
            of_folders[folder].broker_name: first_ms
            for folder, since_ms in sorted(log_begins.items())
            if (first_ms := history.first_route(of_folders[folder], since_ms)) is not None
        },
        {of_folders[folder].place: until_ms for folder, until_ms in sorted(logged.items())},
        {
            of_folders[folder].place: history.begin_of(of_folders[folder], since_ms)
            for folder, since_ms in sorted(log_begins.items())
        },
        of_folders,
        slaves,
        tuple(expected),
        tuple(sorted(history.mode_stores)),
        master_turns(pieces, replicas, start_ms),
        proxy_lives(pieces, end_ms),
        rocksdb_stores(pieces, end_ms, {name: f.broker_name for name, f in of_folders.items()}),
        modes_at_end(pieces, replicas, end_ms),
        _resets(pieces),
    )


def _resets(pieces: Iterable[Evidence]) -> dict[QueueOfGroup, tuple[tuple[int, int], ...]]:
    resets: dict[QueueOfGroup, list[tuple[int, int]]] = {}
    for piece in pieces:
        if piece.kind == "offset_reset" and piece.at_ms is not None:
            v = piece.values
            queue = v["group"], v["topic"], v["broker"], v["queue_id"]
            resets.setdefault(queue, []).append((piece.at_ms, v["offset"]))
    return {queue: tuple(sorted(times)) for queue, times in sorted(resets.items())}


def _broker_of(name: str, folders: Mapping[str, BrokerFolder], directory: BrokerDirectory) -> str:
    """The broker of the folder so called, if no broker is: people list folders of slaves too."""
    if name in folders and name not in directory.names.values():
        return folders[name].broker_name
    return name
