"""One task of the edits: whole groups and clusters, each for all histories at once.

Rows that no edit concerns never become Python objects: Arrow copies them by their positions.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.technical_columns import TABLE
from rebalance_core.engine.units import GROUP, chunks, split_units
from rebalance_core.planning.variants import HistoryEdits
from rebalance_core.spark.plan.history_names import SEPARATOR

EVENTS, GROUPS = "cluster_events", "consumer_groups"
CLUSTER, WARNING = "_cluster", "_warning"
"""Rows that are no table's: one for each cluster, and what an edit could not do."""
NO_GROUP = ""
"""Consumer group of the rows of a cluster itself; no group has an empty name."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class EditTask:
    """What a task makes of the rows of whole groups; small enough to be sent to every task."""

    edits: HistoryEdits
    count: int
    columns: tuple[str, ...]

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all histories."""
        for chunk in chunks(batches):
            rows = chunk.select(self.columns)
            for number, histories in enumerate(self._chunk(chunk)):
                yield from self._named(histories.table(rows), number).to_batches()

    def _chunk(self, chunk: pa.Table) -> list[_HistoryRows]:
        histories = [_HistoryRows() for _ in range(self.count)]
        first = 0
        for unit in split_units(chunk):
            self._unit(unit, first, histories)
            first += unit.num_rows
        return histories

    def _unit(self, unit: pa.Table, first: int, histories: list[_HistoryRows]) -> None:
        cluster, group = unit[GROUP[0]][0].as_py(), unit[GROUP[1]][0].as_py() or None
        rows: list[Row] | None = None
        for number in range(self.count):
            if not self.edits.touches(number, cluster, group):
                histories[number].ranges.append((first, unit.num_rows))
                continue
            if rows is None:
                rows = unit.to_pylist()
                given = [row for row in rows if row[TABLE] == EVENTS]
                settings = next((row for row in rows if row[TABLE] == GROUPS), None)
                position = {(row["event_ms"], row["sequence"]): i for i, row in enumerate(rows)}
            edited = self.edits.edited(number, cluster, group, given, settings)
            kept = [position[row["event_ms"], row["sequence"]] for row in edited.kept]
            kept += [i for i, row in enumerate(rows) if row[TABLE] == GROUPS]
            histories[number].single += [first + i for i in kept]
            histories[number].added += [row | {TABLE: EVENTS} for row in edited.added]
            histories[number].added += [
                {"cluster": cluster, TABLE: WARNING, "source": text} for text in edited.warnings
            ]

    def _named(self, table: pa.Table, number: int) -> pa.Table:
        """Rows under the name of the history; a cluster's own rows have no group."""
        table = table.filter(pc.not_equal(table[TABLE], CLUSTER))
        suffix = pa.scalar(f"{SEPARATOR}{number}")
        named = pc.binary_join_element_wise(table["cluster"], suffix, "")
        group = table["consumer_group"]
        group = pc.if_else(pc.equal(group, NO_GROUP), pa.scalar(None, pa.string()), group)
        table = table.set_column(table.column_names.index("cluster"), "cluster", named)
        return table.set_column(table.column_names.index("consumer_group"), "consumer_group", group)


@dataclass(slots=True)
class _HistoryRows:
    """Rows of one history out of a chunk: ranges and single rows of the chunk, and new rows."""

    ranges: list[tuple[int, int]] = field(default_factory=list)
    single: list[int] = field(default_factory=list)
    added: list[Row] = field(default_factory=list)

    def table(self, rows: pa.Table) -> pa.Table:
        """The rows, with the columns of ``rows``."""
        parts = [np.arange(first, first + length) for first, length in self.ranges]
        parts.append(np.array(self.single, np.int64))
        taken = rows.take(pa.array(np.concatenate(parts)))
        if not self.added:
            return taken
        schema = rows.schema
        return pa.concat_tables([taken, pa.Table.from_pylist(self.added, schema)])
