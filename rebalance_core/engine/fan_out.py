"""Assigns every input row to the groups that it concerns, as row numbers per group."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.kernels import segments
from rebalance_core.kernels.codes import encode
from rebalance_core.kernels.segments import Bools, Ints, matching, pointers, ranges
from rebalance_core.kernels.table_columns import COMMITS, EVENTS, GROUPS, OFFSETS, TABLES
from rebalance_core.model import events
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX

GROUP = ("cluster", "consumer_group")
ROWS_PER_CHUNK = 20_000
"""The number of input rows that are processed at once; their arrays fit into the cache, and groups
stay whole.
"""


def with_empty_events_if_missing(tables: Mapping[str, pa.Table]) -> Mapping[str, pa.Table]:
    """Return the tables of a bucket, with an empty cluster_events if it is missing."""
    if EVENTS in tables:
        return tables
    schema = INPUT_TABLES[EVENTS].arrow_schema()
    empty = pa.schema([*schema, (SOURCE, pa.string()), (RAW, pa.string())]).empty_table()
    return {**tables, EVENTS: empty}


def chunks(
    batches: Iterable[pa.RecordBatch], rows_per_chunk: int = ROWS_PER_CHUNK
) -> Iterator[pa.Table]:
    """Yield consecutive rows as tables of whole groups with at least ``rows_per_chunk`` rows where
    possible.
    """
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for batch in batches:
        if not batch.num_rows:
            continue
        waiting.append(batch)
        rows += batch.num_rows
        if rows >= rows_per_chunk:
            table = pa.Table.from_batches(waiting)
            whole = int(group_starts(table)[-1])
            if whole:
                yield table.slice(0, whole)
            waiting = table.slice(whole).combine_chunks().to_batches()
            rows = table.num_rows - whole
    if waiting:
        yield pa.Table.from_batches(waiting)


def group_starts(table: pa.Table) -> np.ndarray:
    """Return the start of each group; the rows of a group are contiguous."""
    new = np.ones(table.num_rows, np.bool_)
    new[1:] = False
    for name in GROUP:
        values = table[name].combine_chunks().dictionary_encode().indices.to_numpy()
        new[1:] |= values[1:] != values[:-1]
    return np.flatnonzero(new)


def joining(rows: pa.Table, others: pa.Table, how: str = "left semi") -> pa.Table:
    """Return, in order, the rows that a semi or anti join with ``others`` on its columns keeps."""
    keys = others.column_names
    numbers = pa.array(np.arange(rows.num_rows))
    numbered = rows.select(keys).append_column("_row", numbers)
    kept = numbered.join(others, keys=keys, join_type=how, use_threads=False)
    return rows.take(kept["_row"].combine_chunks().sort())


def of_types(
    rows: pa.Table, types: Sequence[str], columns: Sequence[str] | None = None
) -> pa.Table:
    """Return the events of these types, with the given columns or all; each costs a copy."""
    chosen = pc.is_in(rows["event_type"], pa.array(types))
    return (rows if columns is None else rows.select(columns)).filter(chosen)


def subscribed(rows: pa.Table) -> pa.Table:
    """Return (cluster, group, topic) for every topic that the rows name, singly or in a list."""
    rows = rows.combine_chunks()
    lists = rows["subscriptions"]
    parent = pc.list_parent_indices(lists)
    listed = rows.select(GROUP).take(parent).append_column("topic", pc.list_flatten(lists))
    if "topic" not in rows.column_names:
        return _named(listed)
    single = rows.filter(lists.is_null()).select([*GROUP, "topic"])
    return _named(pa.concat_tables([listed, single]))


def _named(topics: pa.Table) -> pa.Table:
    return topics.filter(topics["topic"].is_valid())


def topics_of_groups(tables: Mapping[str, pa.Table]) -> pa.Table:
    """Return the (cluster, consumer_group, topic) that groups subscribe to or commit on, and the
    retry topics.
    """
    joins = of_types(tables["cluster_events"], (events.CONSUMER_JOIN, events.SUBSCRIBE))
    parts = [subscribed(joins)]
    if "consumer_groups" in tables:
        parts.append(subscribed(tables["consumer_groups"]))
    if "committed_offsets" in tables:
        parts.append(tables["committed_offsets"].select([*GROUP, "topic"]))
    topics = pa.concat_tables(parts)
    retry = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, topics["consumer_group"], "")
    topics = pa.concat_tables([topics, topics.set_column(2, "topic", retry)])
    return topics.group_by([*GROUP, "topic"], use_threads=False).aggregate([])


# Assignment of every input row to the groups it concerns, as row numbers by group.
#
# Consumer events, request modes and commits name their group. A topic event or a queue's offsets
# concern all groups that ever subscribe to the topic; a broker event concerns those with a topic
# that is ever configured on the broker.
@dataclass(frozen=True, eq=False)
class GroupedRows:
    """The rows of all tables by group; a row appears once for each group that it concerns.

    Attributes:
        clusters: Cluster of each group.
        groups: Name of each group, sorted by cluster and name.
        tables: The rows.
        rows: Row numbers by table, contiguous for each group and in the order of groups.
        first: Where each group's rows begin, by table, followed by the end; shape (groups + 1,).
    """

    clusters: pa.StringArray
    groups: pa.StringArray
    tables: Mapping[str, pa.Table]
    rows: Mapping[str, Ints]
    first: Mapping[str, Ints]

    def __len__(self) -> int:
        return len(self.groups)

    def with_events_since(self, begin_ms: int) -> GroupedRows:
        """Return the groups concerned by an event at or after this moment."""
        late = pc.greater_equal(self.tables[EVENTS]["event_ms"], begin_ms).to_numpy()
        before = np.concatenate([[0], np.cumsum(late[self.rows[EVENTS]])])
        first = self.first[EVENTS]
        kept = np.flatnonzero(before[first[1:]] > before[first[:-1]])
        rows, starts = {}, {}
        for name, of_table in self.rows.items():
            first, counts = self.first[name], np.diff(self.first[name])[kept]
            rows[name] = of_table[ranges(first[kept], counts)]
            starts[name] = pointers(counts)
        chosen = pa.array(kept)
        clusters, groups = self.clusters.take(chosen), self.groups.take(chosen)
        return GroupedRows(clusters, groups, self.tables, rows, starts)

    def chunks(self, rows_per_chunk: int) -> Iterator[tuple[int, int]]:
        """Yield ranges of groups with at most ``rows_per_chunk`` rows, but at least one group."""
        total: Ints = sum((self.first[name] for name in self.first), np.zeros(1, np.int64))
        begin = 0
        while begin < len(self):
            end = int(np.searchsorted(total, total[begin] + rows_per_chunk, side="right")) - 1
            end = min(max(end, begin + 1), len(self))
            yield begin, end
            begin = end

    def tables_of(self, begin: int, end: int) -> dict[str, pa.Table]:
        """Return the rows of a range of groups by table, with the name of the group in each row."""
        tables = {}
        for name, table in self.tables.items():
            first = self.first[name]
            group = np.repeat(np.arange(begin, end), np.diff(first[begin : end + 1]))
            taken = table.take(pa.array(self.rows[name][first[begin] : first[end]]))
            group_names = self.groups.take(pa.array(group))
            place = taken.schema.get_field_index("consumer_group")
            tables[name] = (
                taken.append_column("consumer_group", group_names)
                if place < 0
                else taken.set_column(place, "consumer_group", group_names)
            )
        return tables


def without_quiet_groups(tables: Mapping[str, pa.Table], begin_ms: int) -> Mapping[str, pa.Table]:
    """Return the tables without the rows of groups that are not concerned by any event at or after
    this moment.

    A cheap step before `fan_out` for a state in which few groups change. It leaves out nothing if a
    late event is about a topic or broker, since such events concern groups that they do not name.

    Args:
        tables: As for `fan_out`.
        begin_ms: As for `GroupedRows.with_events_since`, which leaves out the other groups.
    """
    late = tables[EVENTS].filter(pc.field("event_ms") >= begin_ms)["consumer_group"]
    if late.null_count:
        return tables
    names = pc.unique(late)
    return {
        name: rows.filter(
            pc.field("consumer_group").is_null() | pc.field("consumer_group").isin(names)
        )
        for name, rows in tables.items()
    }


def fan_out(tables: Mapping[str, pa.Table], group_pattern: str | None = None) -> GroupedRows:
    """Return the rows of the groups that have consumer events.

    Args:
        tables: The used rows by table name; only cluster_events is required.
        group_pattern: SQL LIKE pattern for the selected groups; None for all.
    """
    keys = _Keys(tables, group_pattern)
    topics = _with_retry_topics(_group_topics(tables, keys), keys)
    pairs = {EVENTS: _event_rows(tables[EVENTS], keys, topics)}
    if GROUPS in tables:
        pairs[GROUPS] = keys.own_rows(GROUPS)
    if OFFSETS in tables:
        pairs[OFFSETS] = topics.groups_of(keys.topic_key(OFFSETS))
    if COMMITS in tables:
        pairs[COMMITS] = keys.own_rows(COMMITS)
    sorted_rows, first = {}, {}
    for name, (row, group) in pairs.items():
        order = np.argsort(group, kind="stable")
        sorted_rows[name] = row[order]
        first[name] = pointers(np.bincount(group, minlength=len(keys)))
    # Only an event that names an unknown member needs the text of its row.
    kept = {
        name: (table if name == EVENTS else without_text(table)).combine_chunks()
        for name, table in tables.items()
        if name in pairs
    }
    return GroupedRows(keys.clusters, keys.groups, kept, sorted_rows, first)


class OffsetsByTopic:
    """Rows of queue_offsets by topic, from which a set of groups gets those for its topics, each
    row once.

    Rows keyed by group would be copied for each group that reads a topic.

    Args:
        rows: The used rows of queue_offsets.
    """

    def __init__(self, rows: pa.Table) -> None:
        self._rows = rows = without_text(rows).combine_chunks()
        places = _flat(_places(rows["cluster"], rows["topic"])).dictionary_encode()
        code = np.asarray(places.indices).astype(np.int64)
        self._places = places.dictionary
        self._order = np.argsort(code, kind="stable")
        self._first = pointers(np.bincount(code, minlength=len(self._places)))

    def of(self, tables: Mapping[str, pa.Table]) -> pa.Table:
        """Return the rows, without group names, for the topics named in tables of whole groups."""
        wanted = pc.unique(_flat(named_topics(tables)))
        number = pc.index_in(wanted, self._places).drop_null()
        number = np.sort(np.asarray(number).astype(np.int64))
        first = self._first[number]
        place = ranges(first, self._first[number + 1] - first)
        return self._rows.take(pa.array(self._order[place]))


def _places(cluster: pa.ChunkedArray, topic: pa.ChunkedArray) -> pa.ChunkedArray:
    return pc.binary_join_element_wise(cluster, topic, "\0")


def named_topics(tables: Mapping[str, pa.Table]) -> pa.ChunkedArray:
    """Return a string for each cluster and topic named in tables of whole groups, including retry
    topics.
    """
    parts = []
    for name in (EVENTS, GROUPS):
        if name in tables:
            rows = tables[name].combine_chunks()
            lists = rows["subscriptions"]
            cluster = rows["cluster"].take(pc.list_parent_indices(lists))
            parts.append(_places(cluster, pc.list_flatten(lists)))
    rows = tables[EVENTS]
    retry = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, rows["consumer_group"], "")
    parts += [_places(rows["cluster"], topic).drop_null() for topic in (rows["topic"], retry)]
    return pa.chunked_array([chunk for part in parts for chunk in _chunks_of(part)], pa.string())


def _chunks_of(column: pa.ChunkedArray | pa.Array) -> list[pa.Array]:
    return column.chunks if isinstance(column, pa.ChunkedArray) else [column]


def without_text(rows: pa.Table) -> pa.Table:
    """Return the rows without their source and raw text."""
    return rows.select([name for name in rows.column_names if name not in (SOURCE, RAW)])


Pairs = tuple[Ints, Ints]
"""Row numbers and group numbers of equal length."""


@dataclass(frozen=True, slots=True)
class _Interests:
    """The groups interested in each key, as sorted, distinct (key, group) pairs."""

    key: Ints
    group: Ints

    @classmethod
    def from_pairs(cls, key: Ints, group: Ints) -> _Interests:
        return cls(*distinct_pairs(key, group))

    def groups_of(self, key: Ints) -> Pairs:
        """Return (row, group) for every group interested in a row's key; no group is interested in
        key -1.
        """
        row, place = matching(self.key, key)
        return row, self.group[place]


class _Keys:
    """Encodes the names of all tables with common codes.

    Args:
        tables: The used rows.
        group_pattern: As in `fan_out`.
    """

    def __init__(self, tables: Mapping[str, pa.Table], group_pattern: str | None) -> None:
        self._tables = {name: tables[name] for name in TABLES if name in tables}
        self._clusters, self.cluster = self._encode("cluster", *TABLES)
        self._groups, self._group = self._encode("consumer_group", EVENTS, GROUPS, COMMITS)
        lists = self._lists()
        self._topics, self.topic = self._encode("topic", EVENTS, OFFSETS, lists=lists)
        self.brokers, broker = self._encode("broker_name", EVENTS)
        self.broker = broker[EVENTS]
        self.type = tables[EVENTS]["event_type"]
        of_consumers = self.is_type(*events.CONSUMER_EVENTS) & (self._group[EVENTS] >= 0)
        if group_pattern is not None:
            wanted = pc.match_like(self._groups, group_pattern).to_numpy(zero_copy_only=False)
            of_consumers &= wanted[self._group[EVENTS]]
        self._numbers = segments.distinct(self._group_key(EVENTS)[of_consumers])
        cluster, group = np.divmod(self._numbers, max(1, len(self._groups)))
        self.cluster_of = cluster
        self.clusters = self._clusters.take(pa.array(cluster))
        self.groups = self._groups.take(pa.array(group))

    def __len__(self) -> int:
        return len(self._numbers)

    def group(self, table: str) -> Ints:
        """Return the number of the selected group that each row names, or -1."""
        key = self._group_key(table)
        place = np.searchsorted(self._numbers, key).clip(max=max(0, len(self) - 1))
        named = self._numbers[place] == key if len(self) else np.zeros(len(key), np.bool_)
        return np.where(named & (self._group[table] >= 0), place, -1)

    def own_rows(self, table: str) -> Pairs:
        """Return (row, group number) for the rows that name a selected group."""
        group = self.group(table)
        rows = np.flatnonzero(group >= 0)
        return rows, group[rows]

    def topic_key(self, table: str) -> Ints:
        """Return the (cluster, topic) key of each row, or -1 without a topic."""
        return self.key_of(self.cluster[table], self.topic[table])

    def key_of(self, cluster: Ints, topic: Ints) -> Ints:
        """Return the key of each (cluster, topic) pair, or -1 without a topic."""
        return np.where(topic < 0, -1, cluster * len(self._topics) + topic)

    def is_type(self, *types: str) -> Bools:
        """Return whether each row of cluster_events has one of these types."""
        of_type: Bools = _flat(pc.is_in(self.type, pa.array(types))).to_numpy(zero_copy_only=False)
        return of_type

    def topic_codes(self, names: pa.StringArray) -> Ints:
        """Return the codes of topics; -1 for a topic that no table names."""
        codes: Ints = pc.fill_null(pc.index_in(names, self._topics), -1).to_numpy()
        return codes.astype(np.int64)

    def _group_key(self, table: str) -> Ints:
        return self.cluster[table] * len(self._groups) + self._group[table]

    def _lists(self) -> dict[str, pa.Array]:
        names = (EVENTS, GROUPS)
        return {n: _flat(self._tables[n]["subscriptions"]) for n in names if n in self._tables}

    def _encode(
        self, column: str, *tables: str, lists: Mapping[str, pa.Array] | None = None
    ) -> tuple[pa.StringArray, dict[str, Ints]]:
        """Return the distinct names of a column in these tables, and the codes by table.

        Args:
            column: The column's name.
            tables: The tables that have it; a missing table has no rows.
            lists: Additional names, in lists; their codes are keyed by table name and ``[]``.
        """
        arrays = {
            name: _flat(self._tables[name][column]) for name in tables if name in self._tables
        }
        arrays |= {f"{name}[]": values.flatten() for name, values in (lists or {}).items()}
        names, codes = encode(*arrays.values())
        return names, dict(zip(arrays, codes, strict=True))


def _group_topics(tables: Mapping[str, pa.Table], keys: _Keys) -> _Interests:
    """Return each group's interest in every (cluster, topic) to which it ever subscribes."""
    subscribing = keys.is_type(events.CONSUMER_JOIN, events.SUBSCRIBE)
    group = np.where(subscribing, keys.group(EVENTS), -1)
    lists = _flat(tables[EVENTS]["subscriptions"])
    parts = [_listed(lists, keys.topic[f"{EVENTS}[]"], group)]
    single = np.flatnonzero(lists.is_null().to_numpy(zero_copy_only=False) & (group >= 0))
    parts.append((keys.topic[EVENTS][single], group[single]))
    if GROUPS in tables:
        settings = _flat(tables[GROUPS]["subscriptions"])
        parts.append(_listed(settings, keys.topic[f"{GROUPS}[]"], keys.group(GROUPS)))
    topic, group = (np.concatenate(column) for column in zip(*parts, strict=True))
    named = topic >= 0
    topic, group = topic[named], group[named]
    return _Interests.from_pairs(keys.key_of(keys.cluster_of[group], topic), group)


def _listed(lists: pa.ListArray, codes: Ints, group: Ints) -> tuple[Ints, Ints]:
    """Return the topic codes in the lists of rows that have a group, and the group of each code."""
    lengths = pc.fill_null(pc.list_value_length(lists), 0).to_numpy()
    of = np.repeat(group, lengths)
    return codes[of >= 0], of[of >= 0]


def _with_retry_topics(topics: _Interests, keys: _Keys) -> _Interests:
    """Return the interests, extended by the retry topic of every group that has a topic."""
    names = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, keys.groups, "")
    group = segments.distinct(topics.group)
    retry = keys.key_of(keys.cluster_of, keys.topic_codes(names))[group]
    has_retry = retry >= 0
    return _Interests.from_pairs(
        np.concatenate([topics.key, retry[has_retry]]),
        np.concatenate([topics.group, group[has_retry]]),
    )


def _event_rows(rows: pa.Table, keys: _Keys, topics: _Interests) -> Pairs:
    """Return (row, group) for events: the group's own, and those about its topics and their
    brokers.
    """
    of_group, of_topic = keys.is_type(*events.GROUP_EVENTS), keys.is_type(*events.TOPIC_EVENTS)
    named = np.where(of_group, keys.group(EVENTS), -1)
    own_rows = np.flatnonzero(named >= 0)
    topic_key = keys.topic_key(EVENTS)
    of_topics = topics.groups_of(np.where(of_topic & ~of_group, topic_key, -1))
    brokers = keys.cluster[EVENTS] * max(1, len(keys.brokers)) + keys.broker
    brokers = np.where(keys.broker < 0, -1, brokers)
    configured = np.flatnonzero(keys.is_type(events.TOPIC_CONFIG) & (brokers >= 0))
    topic, broker = distinct_pairs(topic_key[configured], brokers[configured])
    place, group = topics.groups_of(topic)
    hosts = _Interests.from_pairs(broker[place], group)
    of_brokers = hosts.groups_of(np.where(of_topic | of_group, -1, brokers))
    parts = ((own_rows, named[own_rows]), of_topics, of_brokers)
    row, group = (np.concatenate(column) for column in zip(*parts, strict=True))
    return row, group


def distinct_pairs(first: Ints, second: Ints) -> tuple[Ints, Ints]:
    """Return the distinct pairs of two non-negative codes, sorted.

    >>> distinct_pairs(np.array([7, 0, 7]), np.array([1, 2, 1]))
    (array([0, 7]), array([2, 1]))
    """
    count = int(second.max(initial=0)) + 1
    pairs = segments.distinct(first * count + second)
    return pairs // count, pairs % count


def _flat(column: pa.ChunkedArray | pa.Array) -> pa.Array:
    return column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
