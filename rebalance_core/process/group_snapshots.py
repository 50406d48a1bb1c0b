"""What an audit compares with, and everything on one group in one place: rows of many tables."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, cast

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.cluster_snapshot import CLUSTER_KINDS, ClusterRows, cluster_rows
from rebalance_core.audit.group_snapshot import snapshot_rows
from rebalance_core.checks.input_tables import ArrowTables, read_tables
from rebalance_core.checks.packed_rows import PackedTables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.checks.table_files import tables_at
from rebalance_core.contracts import (
    ALL_TABLES,
    COVERAGE_TABLES,
    FINDING_TABLES,
    OBSERVED_TABLES,
    SIMULATED_TABLES,
)
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.snapshot_tables import BROKER_EVENTS, NEWEST_DUMPS, SPANS
from rebalance_core.contracts.table import TECHNICAL, rows_of_arrow
from rebalance_core.engine.fan_out import GROUP, ROWS_PER_CHUNK, GroupedRows, of_types, subscribed
from rebalance_core.kernels.codes import encode
from rebalance_core.kernels.segments import Bools, Ints, pointers
from rebalance_core.model import events
from rebalance_core.model.queue import POP_RETRY_MARKS, RETRY_TOPIC_PREFIX
from rebalance_core.process.queue_progress import queue_progress
from rebalance_core.storage.place import Location

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import ObservedFactsRow, SnapshotRows

# What an audit compares with: the observed tables, and the findings of an ingest.

READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES, *COVERAGE_TABLES)


@dataclass(frozen=True, eq=False)
class Observed:
    """The observed tables by name, some maybe empty, and their bad rows as ``rejected``.

    ``counts`` is of those that are there.
    """

    tables: Mapping[str, pa.Table]
    rejected: pa.Table
    counts: Mapping[str, RowCounts]


def read_observed(folder: Location) -> Observed:
    """Return the tables that a folder has by name, as `read_input_tables` reads its own.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    locations = tables_at(folder, READ_TABLES)
    return observed(read_tables(locations).tables)


def observed(tables: Mapping[str, pa.Table]) -> Observed:
    """Return the checked tables from Arrow tables by name; missing tables are empty.

    Raises:
        InputRefused: a table lacks columns.
    """
    checked = check_tables(
        ArrowTables({name: tables[name] for name in READ_TABLES if name in tables})
    )
    good = {name: ALL_TABLES[name].arrow_schema().empty_table() for name in READ_TABLES}
    for name, rows in checked.tables.items():
        good[name] = rows.select(good[name].column_names)
    return Observed(good, checked.rejected, checked.counts)


# What concerns each cluster as a whole, from Arrow tables or parts of them.

_DUMP = ("cluster", "broker_name", "command")


@dataclass(frozen=True, eq=False)
class ClusterTables(PackedTables):
    """The rows that belong to no group; they grow with brokers, not with groups.

    Attributes:
        spans: cluster, and first_ms and last_ms of its events.
        facts: observed facts of `CLUSTER_KINDS`.
        dumps: the newest ones by command and broker; observed rows of other origin are dumps too.
        broker_events: `BROKER_EVENTS`.
        findings: those of ingest that are on no group.
        coverage: all rows of the table.
    """

    SCHEMAS: ClassVar = {
        "spans": SPANS.arrow_schema(),
        "facts": ALL_TABLES["observed_facts"].arrow_schema(),
        "dumps": NEWEST_DUMPS.arrow_schema(),
        "broker_events": BROKER_EVENTS.arrow_schema(),
        "findings": ALL_TABLES["findings"].arrow_schema(),
        "coverage": ALL_TABLES["coverage"].arrow_schema(),
    }

    spans: pa.Table
    facts: pa.Table
    dumps: pa.Table
    broker_events: pa.Table
    findings: pa.Table
    coverage: pa.Table

    @classmethod
    def merged(cls, parts: Iterable[ClusterTables]) -> ClusterTables:
        """Merge the tables of all parts."""
        all_of = cls.joined(parts)
        all_of["spans"] = _range(all_of["spans"], ("cluster",))
        all_of["dumps"] = _range(all_of["dumps"], _DUMP)
        return cls(**all_of)

    def by_cluster(self) -> dict[str, ClusterRows]:
        """Return the rows that a judge of clusters asks for, by cluster."""
        return cluster_rows(
            self.spans.to_pylist(),
            cast("list[ObservedFactsRow]", rows_of_arrow(self.facts)),
            self.dumps.to_pylist(),
            self.broker_events.to_pylist(),
            self.coverage.to_pylist(),
        )


def read_cluster_tables(tables: Mapping[str, pa.Table]) -> ClusterTables:
    """Read what concerns clusters in input tables, observed tables and findings, by name."""
    parts = (cluster_tables_of(name, rows) for name, rows in tables.items())
    return ClusterTables.merged(part for part in parts if part is not None)


def cluster_tables_of(table: str, rows: pa.Table) -> ClusterTables | None:
    """Keep the rows of one table that concern clusters; None: its rows never do."""
    match table:
        case "cluster_events":
            times = rows.select(["cluster", "event_ms", "event_ms"])
            kinds = BROKER_EVENTS.column("event_type").allowed
            return ClusterTables.of(
                spans=_range(
                    times.rename_columns(ClusterTables.SCHEMAS["spans"].names), ("cluster",)
                ),
                broker_events=_of(rows, "event_type", kinds).select(BROKER_EVENTS.column_names),
            )
        case "observed_facts":
            facts = rows.select(ClusterTables.SCHEMAS["facts"].names)
            dumps = _of(facts, "kind", ("DUMP",))
            command = pc.map_lookup(dumps["details"], pa.scalar("command"), "first")
            return ClusterTables.of(
                facts=_of(facts, "kind", CLUSTER_KINDS),
                dumps=_dumps(dumps, dumps["broker_name"], command, "last_ms"),
            )
        case "observed_ownership":
            return ClusterTables.of(dumps=_dumps(rows, None, "consumerStatus", "observed_ms"))
        case "observed_members":
            brokers = rows["asked_broker"]
            return ClusterTables.of(
                dumps=_dumps(rows, brokers, "consumerConnection", "observed_ms")
            )
        case "findings":
            on_clusters = rows.filter(rows["consumer_group"].is_null())
            return ClusterTables.of(
                findings=on_clusters.select(ClusterTables.SCHEMAS["findings"].names)
            )
        case "coverage":
            return ClusterTables.of(coverage=rows.select(ClusterTables.SCHEMAS["coverage"].names))
    return None


def _of(rows: pa.Table, column: str, words: Iterable[str]) -> pa.Table:
    return rows.filter(pc.is_in(rows[column], pa.array(words)))


def _dumps(
    rows: pa.Table, brokers: pa.ChunkedArray | None, command: pa.ChunkedArray | str, ms: str
) -> pa.Table:
    """Return the newest dumps; without ``brokers``, as dumps that name no broker."""
    if brokers is None:
        brokers = pa.nulls(len(rows), pa.string())
    if isinstance(command, str):
        command = pa.repeat(pa.scalar(command), len(rows))
    columns = [rows["cluster"], brokers, command, rows[ms], rows[ms]]
    return _range(pa.table(columns, ClusterTables.SCHEMAS["dumps"].names), _DUMP)


def _range(times: pa.Table, key: tuple[str, ...]) -> pa.Table:
    """Return the least first_ms and the greatest last_ms of each key."""
    grouped = times.group_by(list(key), use_threads=False)
    made = grouped.aggregate([("first_ms", "min"), ("last_ms", "max")])
    return made.rename_columns([*key, "first_ms", "last_ms"])


# The state in which each topic is at the end, broker by broker.

_STATE = ("read_queue_nums", "write_queue_nums", "perm", "source")
_NEVER = np.iinfo(np.int64).min


def topic_states(cluster_events: pa.Table) -> pa.Table:
    """Return the last event of every topic on every broker; a deletion everywhere counts on each.

    ``deleted_ms``: when it was deleted there last. ``source``: where the last event is from, as
    a name server may still route what a broker deleted.
    """
    of_topics = pc.is_in(cluster_events["event_type"], pa.array(events.TOPIC_EVENTS))
    rows = cluster_events.filter(of_topics)
    topic, broker = _codes(rows)
    event_ms, sequence = rows["event_ms"].to_numpy(), rows["sequence"].to_numpy()
    order = np.lexsort((sequence, event_ms, broker, topic))
    rows, topic, broker = rows.take(pa.array(order)), topic[order], broker[order]
    event_ms, sequence = event_ms[order], sequence[order]
    new = np.ones(len(order), np.bool_)
    new[1:] = (topic[1:] != topic[:-1]) | (broker[1:] != broker[:-1])
    first, last = np.flatnonzero(new), np.flatnonzero(np.roll(new, -1))
    everywhere = broker[first] < 0
    gone_ms, gone_sequence = _gone(topic, event_ms, sequence, last[everywhere])
    deleted = pc.equal(rows["event_type"], events.TOPIC_DELETED).to_numpy()
    deleted_ms = np.where(deleted, event_ms, _NEVER)
    there_ms = (np.maximum.reduceat(deleted_ms, first) if len(first) else deleted_ms)[~everywhere]
    last = last[~everywhere]
    topic, event_ms, sequence = topic[last], event_ms[last], sequence[last]
    gone_ms, gone_sequence = gone_ms[topic], gone_sequence[topic]
    gone = (gone_ms > event_ms) | ((gone_ms == event_ms) & (gone_sequence > sequence))
    return _states(rows.take(pa.array(last)), gone, gone_ms, np.maximum(there_ms, gone_ms))


def _codes(rows: pa.Table) -> tuple[Ints, Ints]:
    """Return the codes of (cluster, topic), dense, and of brokers; -1: all brokers."""
    _, (cluster,) = encode(rows["cluster"])
    names, (topic,) = encode(rows["topic"])
    _, (broker,) = encode(rows["broker_name"])
    _, dense = np.unique(cluster * len(names) + topic, return_inverse=True)
    return dense.astype(np.int64), broker


def _gone(topic: Ints, event_ms: Ints, sequence: Ints, last: Ints) -> tuple[Ints, Ints]:
    """Return the time and sequence of the last event of each topic on all brokers at once."""
    topics = int(topic.max(initial=-1)) + 1
    gone_ms = np.full(topics, _NEVER, np.int64)
    gone_sequence = np.full(topics, _NEVER, np.int64)
    gone_ms[topic[last]], gone_sequence[topic[last]] = event_ms[last], sequence[last]
    return gone_ms, gone_sequence


def _states(last: pa.Table, gone: Bools, gone_ms: Ints, deleted_ms: Ints) -> pa.Table:
    kind = pc.if_else(pa.array(gone), events.TOPIC_DELETED, last["event_type"])
    event_ms = pc.if_else(pa.array(gone), pa.array(gone_ms), last["event_ms"])
    columns = {name: last[name] for name in ("cluster", "topic", "broker_name")}
    columns |= {"event_ms": event_ms, "event_type": kind}
    columns |= {name: last[name] for name in _STATE}
    columns["deleted_ms"] = pa.array(deleted_ms, mask=deleted_ms == _NEVER)
    return pa.table(columns)


# Everything on one group in one place: the rows of many tables, by group.
#
# Offsets, of which a fleet has most, are thinned first: of a queue the first and the last
# observation, of its commits the first two, the last and those at which the offset fell.

GroupKeyedRows = tuple[str, str, "SnapshotRows"]

_TOPIC = ("cluster", "topic")
_QUEUE = ("topic", "broker_name", "queue_id")
_QUEUE_END = ("cluster", *_QUEUE, "observed_ms", "min_offset", "max_offset", "head_cached")


def names_of(grouped: GroupedRows, begin: int, end: int) -> list[tuple[str, str]]:
    """Return the cluster and name of each group of a range."""
    of_range = slice(begin, end)
    clusters, groups = grouped.clusters[of_range], grouped.groups[of_range]
    return list(zip(clusters.to_pylist(), groups.to_pylist(), strict=True))


def snapshots_of(grouped: GroupedRows) -> Iterator[GroupKeyedRows]:
    """Yield the rows of each group of `by_group`; only a few groups are in memory as dicts."""
    for begin, end in grouped.chunks(ROWS_PER_CHUNK):
        tables = grouped.tables_of(begin, end)
        # a giant group's rows are large: each table goes as its dicts come
        rows = {name: rows_of_arrow(tables.pop(name)) for name in [*tables]}
        first = {name: grouped.first[name] - grouped.first[name][begin] for name in rows}
        for number, (cluster, group) in enumerate(names_of(grouped, begin, end), begin):
            of_group = {
                name: rows[name][first[name][number] : first[name][number + 1]] for name in rows
            }
            yield cluster, group, snapshot_rows(of_group)


def group_tables(tables: Mapping[str, pa.Table]) -> dict[str, pa.Table]:
    """Return the tables that make up a group's snapshot; each has cluster and consumer_group."""
    cluster_events = tables["cluster_events"]
    of_groups = {"cluster_events": of_types(cluster_events, events.GROUP_EVENTS)}
    if "consumer_groups" in tables:
        of_groups["consumer_groups"] = tables["consumer_groups"]
    if "committed_offsets" in tables:
        of_groups["committed_offsets"] = thinned_commits(tables["committed_offsets"])
    topics = topics_of_groups(tables)
    of_groups["topics"] = _joined(topic_states(cluster_events), topics)
    of_groups["queue_progress"] = queue_progress(tables, topics)
    if "queue_offsets" in tables:
        of_groups["queue_offsets"] = _joined(thinned_queue_offsets(tables["queue_offsets"]), topics)
    for name in (*SIMULATED_TABLES, *OBSERVED_TABLES, "findings", PROPAGATION.name):
        if name in tables:
            of_groups[name] = tables[name].filter(pc.is_valid(tables[name]["consumer_group"]))
    if "observed_facts" in tables:
        routes = missing_routes(tables["observed_facts"], topics)
        of_groups["observed_facts"] = pa.concat_tables([of_groups["observed_facts"], routes])
    return {
        name: table.drop_columns([c for c in TECHNICAL if c in table.column_names])
        for name, table in of_groups.items()
    }


def by_group(tables: Mapping[str, pa.Table]) -> GroupedRows:
    """Return the rows of these tables by group; each table has cluster and consumer_group."""
    clusters, cluster = encode(*(table["cluster"] for table in tables.values()))
    groups, group = encode(*(table["consumer_group"] for table in tables.values()))
    keys = [c * len(groups) + g for c, g in zip(cluster, group, strict=True)]
    numbers = np.unique(np.concatenate(keys))
    rows, first = {}, {}
    for name, key in zip(tables, keys, strict=True):
        place = np.searchsorted(numbers, key)
        rows[name] = np.argsort(place, kind="stable")
        first[name] = pointers(np.bincount(place, minlength=len(numbers)))
    of_cluster, of_group = np.divmod(numbers, max(1, len(groups)))
    whole = {name: table.combine_chunks() for name, table in tables.items()}
    return GroupedRows(
        clusters.take(pa.array(of_cluster)), groups.take(pa.array(of_group)), whole, rows, first
    )


def topics_of_groups(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return (cluster, consumer_group, topic) subscribed or committed on, and the retry topics."""
    joins = of_types(tables["cluster_events"], (events.CONSUMER_JOIN, events.SUBSCRIBE))
    parts = [subscribed(joins)]
    if "consumer_groups" in tables:
        parts.append(subscribed(tables["consumer_groups"]))
    if "committed_offsets" in tables:
        parts.append(tables["committed_offsets"].select([*GROUP, "topic"]))
    topics = pa.concat_tables(parts)
    retry = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, topics["consumer_group"], "")
    topics = pa.concat_tables([topics, topics.set_column(2, "topic", retry)])
    return topics.group_by([*GROUP, "topic"]).aggregate([])


def missing_routes(observed_facts: pa.Table, topics: pa.Table) -> pa.Table:
    """Return MISSING_ROUTE facts on groups' pop retry topics, which name no group, with the group.

    Args:
        observed_facts: the facts.
        topics: of `topics_of_groups`.
    """
    missing = pc.equal(observed_facts["kind"], "MISSING_ROUTE")
    facts = observed_facts.filter(pc.and_(missing, pc.is_null(observed_facts["consumer_group"])))
    place = pa.array(range(len(facts)), pa.int64())
    named = pa.table({"cluster": facts["cluster"], "topic": facts["topic"], "_place": place})
    in_groups = _joined(named, pop_retry_names(topics))
    column = observed_facts.column_names.index("consumer_group")
    of_groups = facts.take(in_groups["_place"])
    return of_groups.set_column(
        column, observed_facts.schema.field(column), in_groups["consumer_group"]
    )


def pop_retry_names(topics: pa.Table) -> pa.Table:
    """Return (cluster, consumer_group, topic) of the pop retry topics of each group's topics."""
    parts = []
    for mark in POP_RETRY_MARKS:
        groups = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, topics["consumer_group"], "")
        names = pc.binary_join_element_wise(groups, topics["topic"], mark)
        parts.append(topics.set_column(topics.column_names.index("topic"), "topic", names))
    return pa.concat_tables(parts)


def thinned_queue_offsets(queue_offsets: pa.Table) -> pa.Table:
    """Return the first and last observation of every queue, and those around a fall of its end."""
    order, new = _in_order(queue_offsets, ("cluster", *_QUEUE), ("observed_ms", "max_offset"))
    end = queue_offsets["max_offset"].to_numpy()[order]
    falls = ~new & (np.roll(end, 1) > end)
    kept = new | np.roll(new, -1) | falls | np.roll(falls, -1)
    return queue_offsets.select(_QUEUE_END).take(pa.array(order[kept]))


def thinned_commits(committed_offsets: pa.Table) -> pa.Table:
    """Keep each queue's first two commits, the last of each client, and those around a fall."""
    order, new = _in_order(
        committed_offsets, (*GROUP, *_QUEUE), ("observed_ms", "committed_offset")
    )
    offset = committed_offsets["committed_offset"].to_numpy()[order]
    falls = ~new & (np.roll(offset, 1) > offset)  # below the commit before
    second = np.roll(new, 1) & ~new
    kept = np.zeros(len(order), np.bool_)
    kept[order] = new | second | np.roll(new, -1) | falls | np.roll(falls, -1)
    order, new = _in_order(committed_offsets, (*GROUP, *_QUEUE, "client_id"), ("observed_ms",))
    kept[order] |= np.roll(new, -1)
    places = np.flatnonzero(kept)
    return committed_offsets.take(pa.array(places))


def _in_order(table: pa.Table, key: tuple[str, ...], by: tuple[str, ...]) -> tuple[Ints, Bools]:
    """Return the order of the rows by key and then by these columns, and where each key begins.

    The first row begins a key as well, so what is rolled by one is right at both ends.
    """
    encoded = (table[name].combine_chunks().dictionary_encode("encode") for name in key)
    codes = [column.indices.to_numpy() for column in encoded]
    order = np.lexsort([*(table[name].to_numpy() for name in reversed(by)), *reversed(codes)])
    new = np.zeros(len(order), np.bool_)
    new[:1] = True
    for code in codes:
        of_row = code[order]
        new[1:] |= of_row[1:] != of_row[:-1]
    return order, new


def _joined(table: pa.Table, topics: pa.Table) -> pa.Table:
    """Return the rows on topics once for each group that uses the topic."""
    return table.join(topics, keys=list(_TOPIC), join_type="inner")
