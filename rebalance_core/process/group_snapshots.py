"""Brings together the rows of many tables that concern a group."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.audit.group_snapshot import snapshot_rows
from rebalance_core.contracts import (
    OBSERVED_TABLES,
    SIMULATED_TABLES,
)
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import TECHNICAL, rows_of_arrow
from rebalance_core.engine.fan_out import (
    GROUP,
    ROWS_PER_CHUNK,
    GroupedRows,
    of_types,
    topics_of_groups,
)
from rebalance_core.kernels import segments
from rebalance_core.kernels.codes import encode
from rebalance_core.kernels.segments import Bools, Ints, pointers
from rebalance_core.model import events
from rebalance_core.model.queue import POP_RETRY_MARKS, RETRY_TOPIC_PREFIX
from rebalance_core.process.queue_progress import queue_progress
from rebalance_core.process.topic_states import topic_states

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import SnapshotRows


GroupKeyedRows = tuple[str, str, "SnapshotRows"]

_TOPIC = ("cluster", "topic")
_QUEUE = ("topic", "broker_name", "queue_id")
_QUEUE_END = ("cluster", *_QUEUE, "observed_ms", "min_offset", "max_offset", "head_cached")


def names_of(grouped: GroupedRows, begin: int, end: int) -> list[tuple[str, str]]:
    """Return the cluster and name of each group in a range."""
    of_range = slice(begin, end)
    clusters, groups = grouped.clusters[of_range], grouped.groups[of_range]
    return list(zip(clusters.to_pylist(), groups.to_pylist(), strict=True))


def snapshots_of(grouped: GroupedRows) -> Iterator[GroupKeyedRows]:
    """Yield the rows of each group of `by_group`, holding only a few groups in memory as dicts."""
    for begin, end in grouped.chunks(ROWS_PER_CHUNK):
        tables = grouped.tables_of(begin, end)
        # a giant group's rows are large, so each table is freed once it is converted to dicts
        rows: dict[str, list[Mapping[str, object]]] = {}
        for name in [*tables]:
            rows[name] = rows_of_arrow(tables.pop(name))
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
    numbers = segments.distinct(np.concatenate(keys))
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


def missing_routes(observed_facts: pa.Table, topics: pa.Table) -> pa.Table:
    """Return MISSING_ROUTE facts about groups' pop retry topics, adding the group, which the facts
    do not name.

    Args:
        observed_facts: the facts.
        topics: the topics from `topics_of_groups`.
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
    """Return the first and last observation of every queue, and those around a drop in its end
    offset.
    """
    order, new = _in_order(queue_offsets, ("cluster", *_QUEUE), ("observed_ms", "max_offset"))
    end = queue_offsets["max_offset"].to_numpy()[order]
    falls = ~new & (np.roll(end, 1) > end)
    kept = new | np.roll(new, -1) | falls | np.roll(falls, -1)
    return queue_offsets.select(_QUEUE_END).take(pa.array(order[kept]))


def thinned_commits(committed_offsets: pa.Table) -> pa.Table:
    """Keep each queue's first two commits, the last of each client, and those around a drop."""
    order, new = _in_order(
        committed_offsets, (*GROUP, *_QUEUE), ("observed_ms", "committed_offset")
    )
    offset = committed_offsets["committed_offset"].to_numpy()[order]
    falls = ~new & (np.roll(offset, 1) > offset)  # below the previous commit
    second = np.roll(new, 1) & ~new
    kept = np.zeros(len(order), np.bool_)
    kept[order] = new | second | np.roll(new, -1) | falls | np.roll(falls, -1)
    order, new = _in_order(committed_offsets, (*GROUP, *_QUEUE, "client_id"), ("observed_ms",))
    kept[order] |= np.roll(new, -1)
    places = np.flatnonzero(kept)
    return committed_offsets.take(pa.array(places))


def _in_order(table: pa.Table, key: tuple[str, ...], by: tuple[str, ...]) -> tuple[Ints, Bools]:
    """Return the order of the rows by key and then by the given columns, and where each key begins.

    The first row also begins a key, so values rolled by one are correct at both ends.
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
    """Return each row about a topic once per group that uses the topic."""
    return table.join(topics, keys=list(_TOPIC), join_type="inner")
