"""Which rows go to which task: every group whole into one bucket, a giant one into several.

A group's weight is about the cells it has, its queues times its consumer events: what the kernels
go through. Groups are ranked by falling weight and dealt out in turn, so that every bucket gets
about the same, however skewed they are. A row that concerns groups of several buckets goes to each
of these once; inside a bucket `fan_out` takes it to its groups.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.packed_rows import by_bucket
from rebalance_core.engine.fan_out import without_text
from rebalance_core.engine.interests import Interests
from rebalance_core.kernels.codes.codes import EVENTS, OFFSETS
from rebalance_core.kernels.segments import Ints, pointers, ranges
from rebalance_core.model import events
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX

GIANT_CELLS = 1 << 26
"""A group with more cells than this is divided: seconds of work, not minutes, a unit."""

UNDIVIDED = 1 << 62
"""More cells than any group has."""

Part = tuple[int, int]
"""The i-th of n ranges of a group's queues."""


@dataclass(frozen=True, eq=False)
class Lookup:
    """Buckets by key.

    Attributes:
        keys: Distinct.
        first: Where the buckets of each key begin, and the end; shape (keys + 1,).
        buckets: Those of one key together, each once.
    """

    keys: pa.StringArray
    first: Ints
    buckets: Ints

    @classmethod
    def of(cls, keys: pa.StringArray, buckets: Ints) -> Lookup:
        """Of pairs, repeated ones among them."""
        pairs = pa.table({"key": keys, "bucket": buckets})
        pairs = pairs.group_by(["key", "bucket"], use_threads=False).aggregate([])
        encoded = pairs["key"].combine_chunks().dictionary_encode()
        code = np.asarray(encoded.indices)
        order = np.argsort(code, kind="stable")
        count = np.bincount(code, minlength=len(encoded.dictionary))
        return cls(encoded.dictionary, pointers(count), np.asarray(pairs["bucket"])[order])

    def rows_of(self, keys: pa.StringArray) -> tuple[Ints, Ints]:
        """Numbers of the rows with these keys, and a bucket of each; null is no key."""
        code = np.asarray(pc.fill_null(pc.index_in(keys, self.keys), -1)).astype(np.int64)
        there = np.flatnonzero(code >= 0)
        first = self.first[code[there]]
        count = self.first[code[there] + 1] - first
        return np.repeat(there, count), self.buckets[ranges(first, count)]


@dataclass(frozen=True, eq=False)
class Routing:
    """Where rows go.

    Attributes:
        buckets: How many there are.
        clusters: Those that have groups.
        groups: By cluster and group.
        topics: By cluster and topic.
        brokers: By cluster and broker.
        giants: By bucket: the parts of divided groups that it makes, by cluster and group.
    """

    buckets: int
    clusters: pa.StringArray
    groups: Lookup
    topics: Lookup
    brokers: Lookup
    giants: dict[int, dict[tuple[str, str], list[Part]]]

    def split(self, table: str, rows: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """The buckets that used rows of an input table go to, and the rows of each."""
        number, bucket = self._buckets(table, rows)
        # The text of a row is only wanted for an event that names an unknown member.
        yield from by_bucket(rows if table == EVENTS else without_text(rows), bucket, number)

    def _buckets(self, table: str, rows: pa.Table) -> tuple[Ints, Ints]:
        """Row numbers, and a bucket of each."""
        if table == OFFSETS:
            return self.topics.rows_of(_keys(self.clusters, rows, "topic"))
        groups = _keys(self.clusters, rows, "consumer_group")
        if table != EVENTS:
            return self.groups.rows_of(groups)
        of_group = pc.is_in(rows["event_type"], pa.array(events.GROUP_EVENTS)).combine_chunks()
        of_topic = pc.is_in(rows["event_type"], pa.array(events.TOPIC_EVENTS)).combine_chunks()
        nothing = pa.scalar(None, pa.string())
        topics = _keys(self.clusters, rows, "topic")
        brokers = _keys(self.clusters, rows, "broker_name")
        parts = (
            self.groups.rows_of(pc.if_else(of_group, groups, nothing)),
            self.topics.rows_of(pc.if_else(of_topic, topics, nothing)),
            self.brokers.rows_of(pc.if_else(pc.or_(of_group, of_topic), nothing, brokers)),
        )
        row, bucket = (np.concatenate(column) for column in zip(*parts, strict=True))
        return row, bucket


def routing_of(
    interests: Interests,
    buckets: int,
    group_pattern: str | None = None,
    giant_cells: int = GIANT_CELLS,
) -> Routing:
    """Deal the groups out.

    Args:
        interests: Of all rows.
        buckets: How many; more than there are units stay empty.
        group_pattern: SQL LIKE pattern of the groups wanted; None: all.
        giant_cells: The most cells of a unit.
    """
    groups = interests.groups.sort_by([("cluster", "ascending"), ("consumer_group", "ascending")])
    if group_pattern is not None:
        groups = groups.filter(pc.match_like(groups["consumer_group"], group_pattern))
    groups = groups.combine_chunks()
    clusters = pc.unique(groups["cluster"])
    of_group, topics = _read_by(interests, clusters, groups)
    weight = _weights(interests, clusters, groups, of_group, topics)
    parts = np.maximum(1, -(-weight // giant_cells))
    unit_group = np.repeat(np.arange(len(groups)), parts)
    turn = np.argsort(-(weight / parts)[unit_group], kind="stable")
    bucket = np.empty(len(unit_group), np.int64)
    bucket[turn] = np.arange(len(turn)) % buckets
    first = pointers(parts)
    group_keys = _keys(clusters, groups, "consumer_group")
    count = parts[of_group]
    topic_keys = topics.take(pa.array(np.repeat(np.arange(len(topics)), count)))
    topic_buckets = bucket[ranges(first[of_group], count)]
    by_topic = Lookup.of(topic_keys, topic_buckets)
    place, broker_buckets = by_topic.rows_of(_keys(clusters, interests.queues, "topic"))
    brokers = _keys(clusters, interests.queues, "broker_name").take(pa.array(place))
    reading = np.unique(of_group)
    retry = _retry_keys(clusters, groups).take(pa.array(np.repeat(reading, parts[reading])))
    retry_buckets = bucket[ranges(first[reading], parts[reading])]
    return Routing(
        buckets,
        clusters,
        Lookup.of(group_keys.take(pa.array(unit_group)), bucket),
        Lookup.of(
            pa.concat_arrays([topic_keys, retry]), np.concatenate([topic_buckets, retry_buckets])
        ),
        Lookup.of(brokers, broker_buckets),
        _giants(groups, parts, first, bucket),
    )


def _keys(clusters: pa.StringArray, rows: pa.Table, name: str) -> pa.StringArray:
    """Cluster and name as one text; null without a name, or in a cluster without groups."""
    cluster = pc.index_in(rows["cluster"], clusters).cast(pa.string())
    keys = pc.binary_join_element_wise(cluster, rows[name], ":")
    return keys.combine_chunks() if isinstance(keys, pa.ChunkedArray) else keys


def _retry_keys(clusters: pa.StringArray, groups: pa.Table) -> pa.StringArray:
    topics = pc.binary_join_element_wise(RETRY_TOPIC_PREFIX, groups["consumer_group"], "")
    return _keys(clusters, groups.append_column("topic", topics), "topic")


def _read_by(
    interests: Interests, clusters: pa.StringArray, groups: pa.Table
) -> tuple[Ints, pa.StringArray]:
    """Pairs of a group, by its number, and the key of a topic that it reads."""
    wanted = _keys(clusters, groups, "consumer_group")
    found = pc.index_in(_keys(clusters, interests.topics, "consumer_group"), wanted)
    topics = _keys(clusters, interests.topics, "topic").filter(found.is_valid())
    return np.asarray(found.drop_null()).astype(np.int64), topics


def _weights(
    interests: Interests,
    clusters: pa.StringArray,
    groups: pa.Table,
    of_group: Ints,
    topics: pa.StringArray,
) -> Ints:
    """Consumer events times queues of each group."""
    keys = _keys(clusters, interests.queues, "topic")
    configured = pa.table({"topic": keys, "queues": interests.queues["queues"]})
    sums = configured.group_by("topic", use_threads=False).aggregate([("queues", "sum")])
    place = pc.index_in(topics, sums["topic"].combine_chunks())
    of_topic = np.asarray(pc.fill_null(sums["queues_sum"].take(place), 0))
    queues = np.bincount(of_group, weights=of_topic, minlength=len(groups)).astype(np.int64)
    weights: Ints = np.asarray(groups["events"]) * (queues + 1)
    return weights


def _giants(
    groups: pa.Table, parts: Ints, first: Ints, bucket: Ints
) -> dict[int, dict[tuple[str, str], list[Part]]]:
    found: dict[int, dict[tuple[str, str], list[Part]]] = {}
    for group in np.flatnonzero(parts > 1).tolist():
        name = (groups["cluster"][group].as_py(), groups["consumer_group"][group].as_py())
        for part in range(int(parts[group])):
            of_bucket = found.setdefault(int(bucket[first[group] + part]), {})
            of_bucket.setdefault(name, []).append((part, int(parts[group])))
    return found
