"""Makes the input tables of each history of a plan, one history at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, SOURCE, TABLE
from rebalance_core.engine.fan_out import GROUP, chunks, joining
from rebalance_core.engine.sharing_groups import groups_sharing_with, joins_of
from rebalance_core.model import events
from rebalance_core.planning.sweep.plan_edits import (
    EVENT_KEY,
    EVENTS,
    GROUPS,
    WARNING,
    ClusterEventChanges,
    EditPlan,
    HistoryRows,
    is_type,
)
from rebalance_core.planning.sweep.transitions import SharedCheckpoints
from rebalance_core.planning.variants import first_edits
from rebalance_core.timing.options import MS_US

COMMITS = "committed_offsets"
_COLUMNS = INPUT_TABLES[EVENTS].column_names


@dataclass(frozen=True, eq=False)
class HistoryTables:
    """The input tables of a history.

    Attributes:
        tables: Its input tables. Before the first edit, only the last commit of each queue is kept,
            because no counted step needs the others.
        first_ms: The first edit of each cluster.
        warnings: Messages about edits to groups that could not be applied.
    """

    tables: Mapping[str, pa.Table]
    first_ms: Mapping[str, int]
    warnings: frozenset[str]


class Histories:
    """All histories of a set of groups. Memory: the events twice, and those of the current history.

    Args:
        tables: All used rows that concern the groups in any history, by table name, with
            ``_source`` and ``_raw``.
        edits: What each history changes.
        group_pattern: SQL LIKE pattern of the groups to edit; None for all.
    """

    def __init__(
        self, tables: Mapping[str, pa.Table], edits: EditPlan, group_pattern: str | None = None
    ) -> None:
        self._given = tables
        self._edits = edits
        changed = any(history.scenario is not None for history in edits.edits.histories)
        self._rows = _by_group(tables, group_pattern) if changed else None
        of_group = is_type(tables[EVENTS], events.GROUP_EVENTS)
        self._shared = tables[EVENTS].filter(pc.invert(of_group)).select(_COLUMNS)

    def __len__(self) -> int:
        return len(self._edits.shared)

    def shared_checkpoints(self, numbers: range) -> SharedCheckpoints | None:
        """Return checkpoints that futures of these histories can share, or None for a single
        history.
        """
        if len(numbers) < 2:
            return None
        edits, cuts = self._edits.edits, dict[str, set[int]]()
        for number in numbers:
            for cluster, first_ms in first_edits(edits.histories[number], edits.ends).items():
                cuts.setdefault(cluster, set()).add(first_ms * MS_US)
        return SharedCheckpoints({cluster: sorted(times) for cluster, times in cuts.items()})

    def warnings(self) -> set[str]:
        """Return the warnings of all histories about edits to groups that could not be applied."""
        warnings: set[str] = set()
        for number in range(len(self)):
            warnings |= self.history(number).warnings
        return warnings

    def history(self, number: int) -> HistoryTables:
        """Return a history; without a scenario, its rows are unedited.

        Raises:
            InputRefused: As `planning.variants.EditsByHistory.edited`.
        """
        edits = self._edits.edits
        history = edits.histories[number]
        if history.scenario is None or self._rows is None:
            return HistoryTables(self._given, {}, frozenset())
        first_ms = first_edits(history, edits.ends)
        batches = self._rows.to_batches()
        parts = [HistoryRows(chunk, edits).rows_of(number) for chunk in chunks(batches)]
        edited = pa.concat_tables(parts or [self._rows])
        tables = dict(self._given)
        tables[EVENTS] = pa.concat_tables(
            [_of_table(edited, EVENTS), _unread(_shared(self._shared, self._edits.shared[number]))]
        )
        if GROUPS in tables:
            tables[GROUPS] = _of_table(edited, GROUPS)
        if COMMITS in tables:
            tables[COMMITS] = _needed(tables[COMMITS], first_ms)
        warnings = edited.filter(pc.equal(edited[TABLE], WARNING))["source"].to_pylist()
        return HistoryTables(tables, first_ms, frozenset(warnings))


def first_groups(rows: pa.Table, count: int) -> frozenset[tuple[str, str]]:
    """Return the first groups in order of name, given rows that each name a group."""
    groups = rows.select(GROUP).group_by(list(GROUP), use_threads=False).aggregate([])
    first = groups.sort_by([(name, "ascending") for name in GROUP]).slice(0, count)
    return frozenset(zip(*(first[name].to_pylist() for name in GROUP), strict=True))


def _by_group(tables: Mapping[str, pa.Table], pattern: str | None) -> pa.Table:
    """Return events and settings of groups for `HistoryRows`, in the order of units."""
    event_rows = tables[EVENTS]
    of_groups = event_rows.filter(is_type(event_rows, events.GROUP_EVENTS))
    parts = [_tagged(of_groups.select(_COLUMNS), EVENTS)]
    if GROUPS in tables:
        columns = INPUT_TABLES[GROUPS].column_names
        parts.append(_tagged(tables[GROUPS].select(columns), GROUPS))
    rows = pa.concat_tables(parts, promote_options="default")
    if pattern is not None:
        fits = pc.match_like(rows["consumer_group"], pattern)
        sharing_groups = chain.from_iterable(groups_sharing_with(joins_of(event_rows)).values())
        names = pa.array(sorted({name for _, name in sharing_groups}), pa.string())
        rows = rows.filter(pc.or_(fits, pc.is_in(rows["consumer_group"], value_set=names)))
    return rows.sort_by([(name, "ascending") for name in GROUP])


def _shared(recorded: pa.Table, edits: ClusterEventChanges) -> pa.Table:
    """Return the events of brokers and topics in a history."""
    if edits.lacking.num_rows:
        recorded = joining(recorded, edits.lacking.select(EVENT_KEY), "left anti")
    return pa.concat_tables([recorded, edits.added.select(_COLUMNS)])


def _tagged(rows: pa.Table, table: str) -> pa.Table:
    return rows.append_column(TABLE, pa.repeat(table, rows.num_rows))


def _of_table(edited: pa.Table, name: str) -> pa.Table:
    rows = edited.filter(pc.equal(edited[TABLE], name))
    return _unread(rows.select(INPUT_TABLES[name].column_names))


def _unread(rows: pa.Table) -> pa.Table:
    """Return the rows with source and raw text set to null, since an edited history does not need
    them.
    """
    for column in (SOURCE, RAW):
        rows = rows.append_column(column, pa.nulls(rows.num_rows, pa.string()))
    return rows


def _needed(commits: pa.Table, first_ms: Mapping[str, int]) -> pa.Table:
    """Return the commits, without those that a later commit replaces before the first counted step.

    All queue offsets are kept, because CONSUME_FROM_TIMESTAMP looks far back.
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
