"""Many strategies over many histories: the rows are distributed once, every table is one pass."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.technical_columns import TABLE
from rebalance_core.engine.group_history import by_table, history_of
from rebalance_core.engine.prepared import prepare
from rebalance_core.engine.units import GROUP, PART, chunks, split_units
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.planning.hypothetical import OWNERSHIP
from rebalance_core.planning.sweep.history_rows import EVENTS, GROUPS
from rebalance_core.planning.sweep.passes import (
    LEDGER_OF,
    NUMBER,
    STARTS,
    Sweep,
    ddl_of,
    hypothetical_rows,
    pass_rows,
)
from rebalance_core.planning.sweep.popped_groups import popped_groups
from rebalance_core.planning.sweep.transitions import TRANSITIONS, transition_table
from rebalance_core.replay.history import GroupHistory
from rebalance_core.spark.engine.packing import unpacked
from rebalance_core.spark.engine.table_pass import ROWS_PER_BATCH, Task
from rebalance_core.spark.engine.work_units import AssignedRows


def swept(made: str, assigned: AssignedRows, sweep: Sweep) -> DataFrame:
    """One pass: ``steps``, ``ownership`` (intervals) or ``starts`` (sums for each group).

    Columns as `schema_of` has them, with the number of the strategy; the cluster is a history's.
    """
    task = SweepTask(made, sweep)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    rows = assigned.everything if made in WITH_OFFSETS else assigned.members
    return rows.mapInArrow(run, f"{ddl_of(made)}, {NUMBER} INT")


WITH_OFFSETS = (STARTS, TRANSITIONS)
"""Passes that need the rows of offsets."""


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One task of a pass."""

    made: str
    sweep: Sweep

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all strategies."""
        for chunk in chunks(batches) if self.made in WITH_OFFSETS else unpacked(batches):
            wanted = self._wanted(chunk)
            if not wanted.num_rows:
                continue
            for number, rows in self._chunk(wanted):
                numbers = pa.array(np.full(rows.num_rows, number, np.int32))
                numbered = rows.append_column(NUMBER, numbers)
                yield from numbered.to_batches(max_chunksize=ROWS_PER_BATCH)

    def _chunk(self, chunk: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        """(number of the strategy, its rows)."""
        if self.made == TRANSITIONS:
            yield from self._transitions(chunk)
            return
        given = _given(chunk)
        first_ms = self.sweep.first_ms
        for number, text in self.sweep.strategies:
            options = replace(self.sweep.options, strategy_override=text)
            ledger = _ledger(LEDGER_OF[self.made], chunk, options)
            yield number, pass_rows(self.made, ledger, first_ms, given)
        for number, mode in self.sweep.popped if self.made != STARTS else ():
            popped = popped_groups(given, mode)
            options = replace(self.sweep.options, strategy_override=None)
            ledger = _ledger(LEDGER_OF[self.made], _as_chunk(popped.tables), options)
            made = pass_rows(self.made, ledger, first_ms, popped.tables, popped.cannot_pop)
            yield number, made
        if self.sweep.hypothetical.strategies and self.made != STARTS:
            yield from self._hypothetical_rows(chunk)

    def _transitions(self, chunk: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        sweep = self.sweep
        for history, _ in self._histories(chunk):
            if sweep.transitions.wants(history.cluster, history.consumer_group):
                rows = sweep.transitions.rows(history, sweep.strategies, sweep.first_ms)
                yield from ((number, transition_table([row])) for number, row in rows)

    def _histories(self, chunk: pa.Table) -> Iterator[tuple[GroupHistory, dict[str, pa.Table]]]:
        """Each group of a chunk, and its rows by table; every part of a giant group has them."""
        options = self.sweep.options
        for unit in split_units(chunk):
            if unit[PART][0].as_py():
                continue
            tables = by_table(unit)
            history = history_of(
                tables,
                queue_offsets_given=options.queue_offsets_given,
                committed_offsets_given=options.committed_offsets_given,
            )
            yield history, tables

    def _hypothetical_rows(self, chunk: pa.Table) -> Iterator[tuple[int, pa.Table]]:
        for history, tables in self._histories(chunk):
            for number, rows in self.sweep.hypothetical(self.made, history):
                yield number, hypothetical_rows(self.made, rows, self.sweep.first_ms, tables)

    def _wanted(self, chunk: pa.Table) -> pa.Table:
        groups = {
            OWNERSHIP: self.sweep.ownership_of,
            TRANSITIONS: self.sweep.transitions.groups,
        }.get(self.made)
        if groups is None:
            return chunk
        names = pa.array(["\x1e".join(pair) for pair in sorted(groups)], pa.string())
        cluster = pc.replace_substring_regex(chunk[GROUP[0]], "\x1f[0-9]+$", "")
        pairs = pc.binary_join_element_wise(cluster, chunk[GROUP[1]], "\x1e")
        return chunk.filter(pc.is_in(pairs, value_set=names))


def _given(chunk: pa.Table) -> dict[str, pa.Table]:
    """Events and settings of a chunk."""
    return {name: chunk.filter(pc.equal(chunk[TABLE], name)) for name in (EVENTS, GROUPS)}


def _as_chunk(tables: Mapping[str, pa.Table]) -> pa.Table:
    """The rows in one table again, those of a unit together."""
    keys = [(name, "ascending") for name in (*GROUP, PART)]
    return pa.concat_tables(tables.values()).sort_by(keys)


def _ledger(
    tables: tuple[str, ...], chunk: pa.Table, options: EngineOptions
) -> dict[str, pa.Table]:
    """Ledger tables of a chunk, whose events are followed once for all of them."""
    made = prepare(chunk, options, tables)
    return {
        table: pa.Table.from_batches(
            list(Task(table, options).rows_of(made)), LEDGER_TABLES[table].arrow_schema()
        )
        for table in tables
    }
