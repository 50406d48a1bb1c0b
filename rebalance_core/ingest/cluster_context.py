"""Cluster data that all groups and topics need: brokers, proxies and the time span."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, TypeVar

from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.broker_folders import (
    BrokerDirectory,
    BrokerFolder,
    broker_folders,
    switched,
    without_graceful_stops,
)
from rebalance_core.ingest.broker_history import BrokerHistory, StoreRead
from rebalance_core.ingest.collection import PROXIES
from rebalance_core.ingest.evidence import Evidence, is_on_cluster
from rebalance_core.ingest.fact import file_of
from rebalance_core.ingest.masters import MasterTurn, master_turns, modes_at_end
from rebalance_core.ingest.parse.broker_log import MEMORY_RATIO
from rebalance_core.ingest.replicas import Replicas
from rebalance_core.ingest.store_copies import BrokerStore, rocksdb_stores
from rebalance_core.model.times import MINUTE_MS, SECOND_MS
from rebalance_core.model.versions import nearest_version
from rebalance_core.protocol.broker_offset_reply import PAGE_CACHE_CHECK

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ConsumerGroupsGiven
    from rebalance_core.ingest.evidence_types import (
        ClusterEvidence,
    )


@dataclass(frozen=True)
class ProxyLives:
    """The lifetimes of all proxies, by place.

    Attributes:
        starts: (time, source) of each start, at which the proxy's consumer table is empty.
        minutes: minutes since 1970 in which its log has a line about a member.
        modes: CLUSTER or LOCAL, as last stated.
        addresses: the proxy's own ends of clients' connections.
    """

    starts: Mapping[str, tuple[tuple[int, str], ...]] = field(default_factory=dict)
    minutes: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    modes: Mapping[str, str] = field(default_factory=dict)
    addresses: Mapping[str, tuple[str, ...]] = field(default_factory=dict)


def proxy_lives(pieces: Iterable[ClusterEvidence], end_ms: int) -> ProxyLives:
    """Return the lifetimes of the proxies; evidence without a time counts at the end."""
    starts: dict[str, set[tuple[int, str]]] = {}
    minutes: dict[str, set[int]] = {}
    modes: dict[str, set[tuple[int, str]]] = {}
    addresses: dict[str, set[str]] = {}
    for piece in pieces:
        at_ms = end_ms if piece.at_ms is None else piece.at_ms
        if piece.kind == "proxy_starting":
            starts.setdefault(piece.place, set()).add((at_ms, piece.source))
        elif piece.kind == "proxy_alive":
            minutes.setdefault(piece.place, set()).add(at_ms // MINUTE_MS)
        elif piece.kind == "proxy_mode":
            modes.setdefault(piece.place, set()).add((at_ms, piece.values["mode"].upper()))
        elif piece.kind == "proxy_local":
            addresses.setdefault(piece.place, set()).add(piece.values["address"])
    return ProxyLives(
        {place: tuple(sorted(times)) for place, times in starts.items()},
        {place: tuple(sorted(of_place)) for place, of_place in minutes.items()},
        {place: max(stated)[1] for place, stated in modes.items()},
        {place: tuple(sorted(of_place)) for place, of_place in addresses.items()},
    )


QueueOfGroup = tuple[str, str, str, int]


@dataclass(frozen=True)
class ClusterContext:
    """Data about the whole cluster; small and plain because every task receives it.

    Attributes:
        cluster: name of the cluster.
        start_ms: first moment covered by any server log; members and topics that already existed
            are OBSERVED at this time.
        end_ms: last moment of the collection; documents without a time are dated to it.
        brokers: names of all brokers.
        addresses: broker name by address.
        versions: broker version by name, as stated by a dump; it may be older than any known
            version (`nearest_version`).
        permissions: brokerPermission by broker and start time, newest last.
        starts: (time, source) of each start of a broker, when its consumer table is empty.
        ends: (time, source) of each moment at which a broker left the routes or stopped. Starts and
            ends are by `BrokerFolder.place`.
        assumed: values used if no file states them.
        group_rows: rows of the collection's consumer_groups.jsonl by group.
        client_zones: time zone by client folder.
        first_routes: for new brokers, when a name server first had them.
        logged: for places whose broker.log was collected, the time of its last line.
        log_begins: for the same places, the start of the log's coverage; 0 if the broker did not
            exist before.
        folders: the owner of the files in each folder of brokers/.
        slaves: addresses of slaves.
        master_turns: when masters left and returned, by time.
        slave_modes: for each broker with slaves, what they do without the master at the end; None
            if no file shows it.
        expected: brokers named in ``collection.toml``, with a slave's folder as its broker.
        mode_stores: each messageRequestMode.json that was read completely.
        topic_stores: the same for topics.json, by time.
        proxies: statements of files about each proxy.
        resets: by group, topic, broker and queue id, when and to which value offsets were reset.
        rocksdb: by folder, the store of a broker that keeps its configurations in RocksDB.
        static_topics: topics whose logical queues are mapped to broker queues by a route, with its
            source.
        client_intervals: by client id and column, unusual values in clients' logs.
        clients_created: by client id, when its log last records the creation of its instance.
        client_settings: by client id pattern, the columns given in ``collection.toml``.
        client_clocks: see `clock_offsets.ClockShifts.clients`.
        errors_ms: see `clock_offsets.ClockShifts.errors`.
        redacted: whether client ids differ from those with which clients allocate queues, but keep
            their order.
        client_logs: whether the log of any client was collected.
        client_ends: the time up to which the logs in each client folder show what their clients do.
        broker_turns: when brokers came or went, by time.
        topic_turns: by topic, when its queues changed on any broker.
        lite_topics: topics of type LITE, with the source that states it.
        uncached: by broker, the periods in which it treats no message as cached.
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
    group_rows: Mapping[str, ConsumerGroupsGiven] = field(default_factory=dict)
    client_zones: Mapping[str, str] = field(default_factory=dict)
    first_routes: Mapping[str, int] = field(default_factory=dict)
    logged: Mapping[str, int] = field(default_factory=dict)
    log_begins: Mapping[str, int] = field(default_factory=dict)
    folders: Mapping[str, BrokerFolder] = field(default_factory=dict)
    slaves: frozenset[str] = frozenset()
    expected: tuple[str, ...] = ()
    mode_stores: tuple[StoreRead, ...] = ()
    master_turns: tuple[MasterTurn, ...] = ()
    proxies: ProxyLives = field(default_factory=ProxyLives)
    rocksdb: Mapping[str, BrokerStore] = field(default_factory=dict)
    slave_modes: Mapping[str, str | None] = field(default_factory=dict)
    resets: Mapping[QueueOfGroup, tuple[tuple[int, int], ...]] = field(default_factory=dict)
    topic_stores: tuple[StoreRead, ...] = ()
    static_topics: Mapping[str, str] = field(default_factory=dict)
    client_intervals: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    clients_created: Mapping[str, int] = field(default_factory=dict)
    client_settings: Mapping[str, Mapping[str, int]] = field(default_factory=dict)
    client_clocks: Mapping[str, int] = field(default_factory=dict)
    errors_ms: Mapping[str, int] = field(default_factory=dict)
    redacted: bool = False
    client_logs: bool = False
    client_ends: Mapping[str, int] = field(default_factory=dict)
    broker_turns: tuple[int, ...] = ()
    topic_turns: Mapping[str, tuple[int, ...]] = field(default_factory=dict)
    lite_topics: Mapping[str, str] = field(default_factory=dict)
    uncached: Mapping[str, tuple[tuple[int, int], ...]] = field(default_factory=dict)

    @cached_property
    def slave_places(self) -> frozenset[str]:
        """Places of slaves, whose consumer tables do not count as a broker's answer."""
        of_folders = self.folders.values()
        return frozenset(f.place for f in of_folders if f.place != f.broker_name)

    @cached_property
    def places(self) -> Mapping[str, str]:
        """Place by the address of a broker process."""
        placed = {a: folder.place for folder in self.folders.values() for a in folder.addresses}
        # an address without a folder belongs to the master or to a broker without files
        return dict(self.addresses) | placed

    def acting_master_place(self, broker: str, at_ms: int) -> str:
        """Return the place of the replica that is master at that time; by default, the broker's
        name.
        """
        replicas = [f for f in self.folders.values() if f.broker_name == broker and f.by_turns]
        return next((folder.place for folder in replicas if folder.is_authoritative(at_ms)), broker)

    def tells_since(self, at_ms: int) -> bool:
        """Return True if the collected logs cover every broker from that time on."""
        return all(self.log_begins.get(name, at_ms + 1) <= at_ms for name in self.brokers)

    def starts_at(self, piece: Evidence) -> list[int]:
        """Return when the broker or proxy whose log contains the piece started, epoch ms."""
        if piece.source.startswith(PROXIES):
            place = PROXIES + piece.source.removeprefix(PROXIES).partition("/")[0]
            return [at_ms for at_ms, _ in self.proxies.starts.get(place, ())]
        return [at_ms for at_ms, _ in self.starts.get(piece.place, ())]

    def is_masterless(self, broker: str, at_ms: int) -> bool:
        """Return True if only slaves answer for the broker at that time."""
        turns = [t for t in self.master_turns if t.broker_name == broker and t.at_ms <= at_ms]
        return bool(turns) and turns[-1].is_down

    def was_masterless(self, broker: str, from_ms: int, to_ms: int) -> bool:
        """Return True if only slaves answered for the broker at some time in [from_ms, to_ms]."""
        turns = [t for t in self.master_turns if t.broker_name == broker]
        inside = any(from_ms <= turn.at_ms <= to_ms for turn in turns)
        return inside or self.is_masterless(broker, from_ms)

    def became_master(self, broker: str, at_ms: int) -> int | None:
        """Return when the master at that time took over, or None without a change or a master."""
        by_turns = broker in switched(self.folders.values())
        turns = [t for t in self.master_turns if t.broker_name == broker and t.at_ms <= at_ms]
        return turns[-1].at_ms if by_turns and turns and not turns[-1].is_down else None

    def effective_perm(self, broker: str, perm: int, at_ms: int) -> int:
        """Return the topic's perm as the broker registers it (rocketmq.md §6.3).

        A brokerPermission without R or W replaces the perm in 4.9 and masks it from 5.0 on.
        """
        permission = 6
        for since_ms, value in self.permissions.get(broker, ()):
            if since_ms <= at_ms:
                permission = value
        if permission & 6 == 6:
            return perm
        return permission if self.is_v4(broker) else perm & permission

    def is_v4(self, broker: str) -> bool:
        """Return True if a file shows that the broker is 4.x or older."""
        version = nearest_version(self.versions.get(broker, ""))
        return version is not None and version.is_v4

    @cached_property
    def exported(self) -> Mapping[str, int | None]:
        """Return, by file, when each JSON store next to a RocksDB was exported, or None if
        unknown.
        """
        of_folders = self.rocksdb.values()
        return {name: at_ms for store in of_folders for name, at_ms in store.dates.items()}

    @cached_property
    def in_rocksdb(self) -> frozenset[str]:
        """Brokers, by name and by folder, that keep their configurations in RocksDB."""
        names = {self.folders[folder].broker_name for folder in self.rocksdb}
        return frozenset(names | self.rocksdb.keys())

    @cached_property
    def log_ends(self) -> Mapping[str, int]:
        """Return when the broker.log of each place ended, epoch ms, after which only dumps show its
        events. If no broker's log was collected, this holds from the start.
        """
        return self.logged or dict.fromkeys(self.brokers, self.start_ms - SECOND_MS)

    def log_had_ended(self, place: str, at_ms: int) -> bool:
        """Return True if the place's broker.log was collected and its last line is older, or if no
        broker's log was collected.

        For a proxy, which logs its clients' heartbeats, the last minute with a line about a member
        counts.
        """
        if place in self.proxies.minutes:
            return at_ms >= (max(self.proxies.minutes[place]) + 1) * MINUTE_MS
        return place in self.log_ends and at_ms >= self.log_ends[place] + SECOND_MS

    def all_logs_had_ended(self, at_ms: int) -> bool:
        """Return True if every collected broker.log ends before that time."""
        ends = self.log_ends
        return bool(ends) and all(self.log_had_ended(place, at_ms) for place in ends)

    def queue_turns(self, topics: Iterable[str]) -> set[int]:
        """Return when queues of these topics appeared or disappeared, with a topic or with a
        broker.
        """
        return {*self.broker_turns}.union(*(self.topic_turns.get(topic, ()) for topic in topics))

    def error_of(self, source: str) -> int:
        """Return how far off the time in the name of a source's file may be."""
        return self.errors_ms.get(file_of(source), 0) if self.errors_ms else 0

    def time_of(self, piece: Evidence) -> int:
        """Return when the evidence was true."""
        at_ms = self.exported.get(piece.source) or piece.at_ms
        return self.end_ms if at_ms is None else at_ms


def cluster_context(
    pieces: Iterable[Evidence],
    stated: ClusterContext,
    folders: Iterable[str],
    logged: Mapping[str, int],
    log_begins: Mapping[str, int],
) -> ClusterContext:
    """Return the context, built from the evidence on the cluster.

    Args:
        pieces: evidence with part CLUSTER.
        stated: the collection's own settings: its cluster, its span, and what is set or given;
            `expected` has the names as in ``collection.toml``.
        folders: names of the folders in ``brokers/``.
        logged: for folders with a broker.log, the time of its last line.
        log_begins: for folders with a broker.log, the time of the first line that states a fact.
    """
    on_cluster = list(filter(is_on_cluster, pieces))
    start_ms, end_ms = stated.start_ms, stated.end_ms
    of_folders, directory = broker_folders(folders, on_cluster, stated.expected, end_ms)
    expected = sorted({_broker_of(name, of_folders, directory) for name in stated.expected})
    history = BrokerHistory(of_folders, directory.names, end_ms)
    for piece in without_graceful_stops(on_cluster):
        history.read(piece)
        history.note_mention(piece)
    slaves = directory.slaves.union(*(f.addresses for f in of_folders.values() if f.slave))
    nearest = {name: nearest_version(text) for name, text in history.versions.items()}
    modern = {name for name, v in nearest.items() if v is not None and not v.is_v4}
    replicas = Replicas(directory.names, slaves, directory.masters, of_folders, frozenset(modern))
    names = {*expected, *history.names, *directory.names.values()}
    return replace(
        stated,
        expected=tuple(expected),
        brokers=tuple(sorted(names | {folder.broker_name for folder in of_folders.values()})),
        addresses=directory.names,
        versions=history.versions,
        permissions=_in_time(history.permissions),
        starts=_in_time(history.starts),
        ends=_in_time(history.ends),
        first_routes={
            of_folders[folder].broker_name: first_ms
            for folder, since_ms in sorted(log_begins.items())
            if (first_ms := history.first_route(of_folders[folder], since_ms)) is not None
        },
        logged={of_folders[folder].place: until_ms for folder, until_ms in sorted(logged.items())},
        log_begins={
            of_folders[folder].place: history.begin_of(of_folders[folder], since_ms)
            for folder, since_ms in sorted(log_begins.items())
        },
        folders=of_folders,
        slaves=slaves,
        mode_stores=tuple(sorted(history.mode_stores)),
        master_turns=master_turns(on_cluster, replicas, start_ms),
        proxies=proxy_lives(on_cluster, end_ms),
        rocksdb=rocksdb_stores(
            on_cluster, end_ms, {name: f.broker_name for name, f in of_folders.items()}
        ),
        slave_modes=modes_at_end(on_cluster, replicas, end_ms),
        resets=_resets(on_cluster),
        topic_stores=tuple(sorted(history.topic_stores, key=lambda store: (store.at_ms, store))),
        static_topics={
            p.values["topic"]: p.source for p in on_cluster if p.kind == "queue_mapping"
        },
        client_intervals={
            p.values["client_id"]: printed_intervals(p.values)
            for p in on_cluster
            if p.kind == "client_created" and p.values.keys() > {"client_id"}
        },
        clients_created=dict(
            sorted(
                (p.values["client_id"], p.at_ms)
                for p in on_cluster
                if p.kind == "client_created" and p.at_ms is not None
            )
        ),
        lite_topics={p.values["topic"]: p.source for p in on_cluster if p.kind == "lite_topic"},
        uncached=_uncached(on_cluster, of_folders, history),
        topic_turns=_topic_turns(on_cluster),
    )


def _topic_turns(pieces: Iterable[ClusterEvidence]) -> dict[str, tuple[int, ...]]:
    turns: dict[str, set[int]] = {}
    for piece in pieces:
        if piece.kind == "queues_changed" and piece.at_ms is not None:
            turns.setdefault(piece.values["topic"], set()).add(piece.at_ms)
    return {topic: tuple(sorted(of_topic)) for topic, of_topic in sorted(turns.items())}


Moment = TypeVar("Moment", tuple[int, int], tuple[int, str])


def _in_time(by_name: Mapping[str, Iterable[Moment]]) -> dict[str, tuple[Moment, ...]]:
    return {name: tuple(sorted(moments)) for name, moments in by_name.items()}


def _uncached(
    pieces: Iterable[ClusterEvidence], folders: Mapping[str, BrokerFolder], history: BrokerHistory
) -> dict[str, tuple[tuple[int, int], ...]]:
    """Return, by broker, the times from a start with accessMessageInMemoryMaxRatio=0 to the next
    start (rocketmq.md §5.3). From 5.1.0 on, the setting has no effect.
    """
    uncached: dict[str, list[tuple[int, int]]] = {}
    for piece in pieces:
        folder = folders.get(piece.place)
        if piece.kind != "broker_property" or piece.values["name"] != MEMORY_RATIO:
            continue
        if piece.values["value"].strip() != "0":
            continue
        if folder is None or not folder.authoritative or piece.at_ms is None:
            continue
        version = nearest_version(history.versions.get(folder.broker_name, ""))
        if version is None or version >= PAGE_CACHE_CHECK:
            continue
        starts = [at_ms for at_ms, _ in sorted(history.starts.get(folder.broker_name, ()))]
        later = [at_ms for at_ms in starts if at_ms >= piece.at_ms][1:]  # the first is its own
        until_ms = min(later, default=END_OF_TIME_MS)
        uncached.setdefault(folder.broker_name, []).append((piece.at_ms, until_ms))
    return {broker: tuple(sorted(spans)) for broker, spans in uncached.items()}


END_OF_TIME_MS = 2**62
"""The end of a period that is not ended by a start."""


PROPERTIES = {
    "pollNameServerInterval": "poll_name_server_interval_ms",
    "heartbeatBrokerInterval": "heartbeat_broker_interval_ms",
    "persistConsumerOffsetInterval": "persist_consumer_offset_interval_ms",
}
"""Properties of ClientConfig, and the columns."""


def printed_intervals(properties: Mapping[str, object]) -> dict[str, int]:
    """Return the intervals that a client printed, by column, in ms."""
    return {
        PROPERTIES[name]: int(text)
        for name, value in properties.items()
        if name in PROPERTIES and (text := str(value)).isdecimal()
    }


def _resets(pieces: Iterable[ClusterEvidence]) -> dict[QueueOfGroup, tuple[tuple[int, int], ...]]:
    resets: dict[QueueOfGroup, list[tuple[int, int]]] = {}
    for piece in pieces:
        if piece.kind == "reset_kept" and piece.at_ms is not None:
            queue = (
                piece.values["group"],
                piece.values["topic"],
                piece.values["broker"],
                piece.values["queue_id"],
            )
            resets.setdefault(queue, []).append((piece.at_ms, piece.values["offset"]))
    return {queue: tuple(sorted(times)) for queue, times in sorted(resets.items())}


def _broker_of(name: str, folders: Mapping[str, BrokerFolder], directory: BrokerDirectory) -> str:
    """Return the broker behind a name in a list, which may be the name of a slave's folder."""
    if name in folders and name not in directory.names.values():
        return folders[name].broker_name
    return name
