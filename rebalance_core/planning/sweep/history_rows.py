"""The rows of whole groups and clusters as every history has them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts.table import TABLE
from rebalance_core.engine.fan_out import GROUP, group_starts
from rebalance_core.planning.variants import HistoryEdits

EVENTS, GROUPS = "cluster_events", "consumer_groups"
CLUSTER, WARNING = "_cluster", "_warning"
"""Rows that are no table's: one for each cluster, and what an edit could not do."""
NO_GROUP = ""
"""Consumer group of the rows of a cluster itself; no group has an empty name."""

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class _Unit:
    """Consecutive rows of a group, or of a cluster itself (None)."""

    first: int
    rows: int
    cluster: str
    group: str | None


class HistoryRows:
    """The rows of a chunk of units in every history.

    Args:
        chunk: Rows of cluster_events and consumer_groups, told apart by ``_table``, those of a unit
            together; events of brokers and topics have the group `NO_GROUP`. Every cluster has a
            row of the table `CLUSTER`: an edit may give events to one that has none of its own.
        edits: What each history changes.
    """

    def __init__(self, chunk: pa.Table, edits: HistoryEdits) -> None:
        self._chunk = chunk
        self._edits = edits
        self._units = list(_units(chunk))
        self._recorded: dict[_Unit, list[Row]] = {}

    def of(self, history: int) -> pa.Table:
        """The rows of one history, and what its edits could not do as rows of `WARNING`.

        Columns as the chunk has them; a cluster's own rows have no group. The text of a warning is
        in ``source``.

        Raises:
            InputRefused: As `HistoryEdits.edited`.
        """
        lacking, added = self.changes(history)
        kept = np.ones(self._chunk.num_rows, np.bool_)
        kept[lacking] = False
        recorded = self._chunk.filter(pa.array(kept))
        recorded = recorded.filter(pc.not_equal(recorded[TABLE], CLUSTER))
        return pa.concat_tables([_without_no_group(recorded), added])

    def changes(self, history: int) -> tuple[list[int], pa.Table]:
        """What is different in a history: positions of rows that it lacks, and its new rows.

        The new rows, columns and errors are as `of` says; a row that an edit changes is in both.
        """
        lacking: list[int] = []
        added: list[Row] = []
        for unit in self._units:
            if self._edits.touches(history, unit.cluster, unit.group):
                stay, new = self._edited(history, unit)
                rows = range(unit.first, unit.first + unit.rows)
                lacking += sorted(set(rows).difference(stay))
                added += new
        return lacking, _without_no_group(pa.Table.from_pylist(added, self._chunk.schema))

    def _edited(self, history: int, unit: _Unit) -> tuple[list[int], list[Row]]:
        """Positions of the rows that stay, and the new ones."""
        rows = self._recorded.get(unit)
        if rows is None:
            rows = self._chunk.slice(unit.first, unit.rows).to_pylist()
            self._recorded[unit] = rows
        events = {
            (row["event_ms"], row["sequence"]): unit.first + place
            for place, row in enumerate(rows)
            if row[TABLE] == EVENTS
        }
        given = [row for row in rows if row[TABLE] == EVENTS]
        settings = [place for place, row in enumerate(rows) if row[TABLE] == GROUPS]
        group_row = rows[settings[0]] if settings else None
        edited = self._edits.edited(history, unit.cluster, unit.group, given, group_row)
        stay = [events[row["event_ms"], row["sequence"]] for row in edited.kept]
        stay += [unit.first + place for place in settings]
        new = [row | {TABLE: EVENTS} for row in edited.added]
        new += [
            {"cluster": unit.cluster, TABLE: WARNING, "source": text} for text in edited.warnings
        ]
        return stay, new


def _without_no_group(rows: pa.Table) -> pa.Table:
    """The rows, with null for `NO_GROUP`."""
    group = rows["consumer_group"]
    group = pc.if_else(pc.equal(group, NO_GROUP), pa.scalar(None, pa.string()), group)
    return rows.set_column(rows.column_names.index("consumer_group"), "consumer_group", group)


def _units(chunk: pa.Table) -> Iterator[_Unit]:
    if not chunk.num_rows:
        return
    starts = group_starts(chunk)
    names = chunk.select(GROUP).take(pa.array(starts))
    lengths = np.diff(starts, append=chunk.num_rows)
    columns = (names[name].to_pylist() for name in GROUP)
    for first, rows, cluster, group in zip(
        starts.tolist(), lengths.tolist(), *columns, strict=True
    ):
        yield _Unit(first, rows, cluster, group or None)
