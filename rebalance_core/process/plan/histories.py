"""The input tables of every history of a plan, made one history at a time."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.technical_columns import RAW, SOURCE, TABLE
from rebalance_core.engine.units import GROUP, PART, chunks
from rebalance_core.model import events
from rebalance_core.planning.scenario.cluster_life import ClusterNames
from rebalance_core.planning.sweep.history_rows import (
    CLUSTER,
    EVENTS,
    GROUPS,
    NO_GROUP,
    WARNING,
    HistoryRows,
)
from rebalance_core.planning.variants import (
    HistoryEdits,
    Variants,
    first_edits,
    scenarios_of,
    unmatched_patterns,
)

COMMITS = "committed_offsets"
_COLUMNS = INPUT_TABLES[EVENTS].column_names
_NAMED = {"groups": "consumer_group", "topics": "topic", "brokers": "broker_name"}


@dataclass(frozen=True, eq=False)
class HistoryTables:
    """One history.

    Attributes:
        tables: Its input tables. Of the commits before the first edit only the last one of each
            queue is there: no counted step needs the others.
        first_ms: By cluster: its first edit.
        warnings: What edits could not do, in words.
    """

    tables: Mapping[str, pa.Table]
    first_ms: Mapping[str, int]
    warnings: frozenset[str]


class Histories:
    """All histories of a plan. Memory: the events twice, and those of the history in use.

    Args:
        tables: The used rows by table name, with ``_source`` and ``_raw``.
        variants: What to compute.
    """

    def __init__(self, tables: Mapping[str, pa.Table], variants: Variants) -> None:
        self._given = tables
        self._variants = variants
        self._ends = _event_ends(tables[EVENTS])
        self._edits = HistoryEdits(variants.histories, self._ends)
        changed = any(history.scenario is not None for history in variants.histories)
        self._rows = _by_unit(tables, self._ends) if changed else None

    def __len__(self) -> int:
        return len(self._variants.histories)

    def unmatched(self) -> tuple[str, ...]:
        """Patterns of scenarios that match nothing."""
        if not scenarios_of(self._variants):
            return ()
        return tuple(unmatched_patterns(self._variants, _names(self._given[EVENTS])))

    def warnings(self) -> set[str]:
        """What the edits of all histories could not do."""
        found: set[str] = set()
        for number in range(len(self)):
            found |= self.of(number).warnings
        return found

    def of(self, number: int) -> HistoryTables:
        """One history; without a scenario the rows as they are given.

        Raises:
            InputRefused: As `HistoryEdits.edited`.
        """
        history = self._variants.histories[number]
        if history.scenario is None or self._rows is None:
            return HistoryTables(self._given, {}, frozenset())
        first_ms = first_edits(history, self._ends)
        batches = self._rows.to_batches()
        parts = [HistoryRows(chunk, self._edits).of(number) for chunk in chunks(batches)]
        edited = pa.concat_tables(parts)
        tables = dict(self._given)
        for name in (EVENTS, GROUPS):
            if name in tables:
                tables[name] = _of_table(edited, name)
        if COMMITS in tables:
            tables[COMMITS] = _needed(tables[COMMITS], first_ms)
        warnings = edited.filter(pc.equal(edited[TABLE], WARNING))["source"].to_pylist()
        return HistoryTables(tables, first_ms, frozenset(warnings))


def first_groups(cluster_events: pa.Table, count: int) -> frozenset[tuple[str, str]]:
    """The first groups by name that have consumer events."""
    own = cluster_events.filter(_is_type(cluster_events, events.CONSUMER_EVENTS))
    groups = own.select(GROUP).group_by(list(GROUP), use_threads=False).aggregate([])
    first = groups.sort_by([(name, "ascending") for name in GROUP]).slice(0, count)
    return frozenset(zip(*(first[name].to_pylist() for name in GROUP), strict=True))


def _event_ends(cluster_events: pa.Table) -> dict[str, int]:
    """The last event of every cluster, epoch ms."""
    grouped = cluster_events.group_by("cluster", use_threads=False)
    ends = grouped.aggregate([("event_ms", "max")])
    return dict(zip(ends["cluster"].to_pylist(), ends["event_ms_max"].to_pylist(), strict=True))


def _names(cluster_events: pa.Table) -> dict[str, ClusterNames]:
    """What patterns of scenarios may match, by cluster."""
    clusters: dict[str, ClusterNames] = {}
    for what, column in _NAMED.items():
        pairs = cluster_events.group_by(["cluster", column], use_threads=False).aggregate([])
        known = pairs.filter(pc.is_valid(pairs[column]))
        for cluster, name in zip(
            known["cluster"].to_pylist(), known[column].to_pylist(), strict=True
        ):
            getattr(clusters.setdefault(cluster, ClusterNames()), what).add(name)
    return clusters


def _by_unit(tables: Mapping[str, pa.Table], clusters: Iterable[str]) -> pa.Table:
    """Events, settings and clusters as `HistoryRows` wants them, in the order of units."""
    given = tables[EVENTS]
    of_group = _is_type(given, events.GROUP_EVENTS)
    group = pc.if_else(of_group, given["consumer_group"], NO_GROUP)
    own = given.set_column(given.column_names.index("consumer_group"), "consumer_group", group)
    parts = [_tagged(own.select(_COLUMNS), EVENTS)]
    if GROUPS in tables:
        columns = INPUT_TABLES[GROUPS].column_names
        parts.append(_tagged(tables[GROUPS].select(columns), GROUPS))
    names = pa.table({"cluster": pa.array(list(clusters), pa.string())})
    alone = names.append_column("consumer_group", pa.repeat(NO_GROUP, len(names)))
    parts.append(_tagged(alone, CLUSTER))
    rows = pa.concat_tables(parts, promote_options="default")
    rows = rows.append_column(PART, pa.repeat(pa.scalar(0, pa.int32()), rows.num_rows))
    return rows.sort_by([(name, "ascending") for name in GROUP])


def _tagged(rows: pa.Table, table: str) -> pa.Table:
    return rows.append_column(TABLE, pa.repeat(table, rows.num_rows))


def _of_table(edited: pa.Table, name: str) -> pa.Table:
    """The rows of a table; nobody asks where rows of an edited history were read."""
    rows = edited.filter(pc.equal(edited[TABLE], name)).select(INPUT_TABLES[name].column_names)
    for column in (SOURCE, RAW):
        rows = rows.append_column(column, pa.nulls(rows.num_rows, pa.string()))
    return rows


def _needed(commits: pa.Table, first_ms: Mapping[str, int]) -> pa.Table:
    """Commits, without those that a later one replaces before the first counted step.

    Queues' offsets are all needed: CONSUME_FROM_TIMESTAMP looks far back.
    """
    clusters = pa.array(list(first_ms), pa.string())
    firsts = pa.array(list(first_ms.values()), pa.int64())
    first = firsts.take(pc.index_in(commits["cluster"].combine_chunks(), value_set=clusters))
    old = pc.fill_null(pc.less(commits["observed_ms"], first), False)
    before = commits.append_column("_row", pa.array(np.arange(commits.num_rows))).filter(old)
    queue = [name for name in INPUT_TABLES[COMMITS].key if name != "observed_ms"]
    last = before.sort_by("observed_ms").group_by(queue, use_threads=False)
    kept = np.asarray(pc.invert(old)).astype(np.bool_)
    kept[last.aggregate([("_row", "last")])["_row_last"].to_numpy()] = True
    return commits.filter(pa.array(kept))


def _is_type(cluster_events: pa.Table, types: Sequence[str]) -> pa.ChunkedArray:
    return pc.is_in(cluster_events["event_type"], value_set=pa.array(types, pa.string()))
