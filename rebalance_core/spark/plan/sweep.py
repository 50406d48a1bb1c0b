"""Many strategies over many histories: the rows are distributed once, every table is one pass.

A strategy costs no copy of the rows: it is the engine's override, and each task runs the engine on
its rows once per strategy. Under hypothetical strategies each group is replayed instead.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.planning import PLAN_STEPS
from rebalance_core.engine.group_rows import by_table, history_of
from rebalance_core.engine.prepared import prepare
from rebalance_core.engine.units import GROUP, PART, chunks, split_units
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.planning.hypothetical import OWNERSHIP, STEPS, HypotheticalStrategies
from rebalance_core.spark.engine.packing import unpacked
from rebalance_core.spark.engine.table_pass import ROWS_PER_BATCH, Task
from rebalance_core.spark.engine.work_units import AssignedRows
from rebalance_core.spark.plan.sweep_rows import counted, marked, start_sums, step_rows

NUMBER = "_strategy"
"""Which of the sweep's strategies a row is of."""
STARTS = "starts"

_STEP = [c for c in PLAN_STEPS.columns if c.name not in ("scenario", "strategy", "of_rocketmq",
                                                          "seed")]  # fmt: skip
_OWNED = LEDGER_TABLES["ownership"]


def _schema(table: str) -> tuple[pa.Schema, str]:
    """Arrow schema and DDL of what a pass yields."""
    number = pa.field(NUMBER, pa.int32())
    if table == STEPS:
        types = PLAN_STEPS.arrow_schema()
        fields = [types.field(column.name) for column in _STEP]
        ddl = ", ".join(f"`{column.name}` {column.type}" for column in _STEP)
    elif table == OWNERSHIP:
        fields, ddl = list(_OWNED.arrow_schema()), _OWNED.plain_ddl
    else:
        fields = [pa.field(name, pa.string()) for name in GROUP]
        fields += [pa.field(name, pa.int64()) for name in ("replayed_messages", "skipped_messages")]
        ddl = "cluster STRING, consumer_group STRING, replayed_messages BIGINT, "
        ddl += "skipped_messages BIGINT"
    return pa.schema([*fields, number]), f"{ddl}, {NUMBER} INT"


@dataclass(frozen=True)
class Sweep:
    """What is computed for every group; small enough to be sent to every task.

    Attributes:
        strategies: (number, text) of RocketMQ's; None keeps every member's own.
        hypothetical: the others.
        options: of the engine; its override is not used.
        first_ms: by cluster of a history: its first edit. The state before it is the last epoch
            that began earlier; without one it is the first epoch.
        ownership_of: (cluster, group) whose ownership is wanted; None: of all.
    """

    strategies: Sequence[tuple[int, str | None]]
    hypothetical: HypotheticalStrategies
    options: EngineOptions
    first_ms: Mapping[str, int]
    ownership_of: frozenset[tuple[str, str]] | None = None


def swept(table: str, assigned: AssignedRows, sweep: Sweep) -> DataFrame:
    """One pass: ``steps``, ``ownership`` (intervals) or ``starts`` (sums for each group).

    Columns as `_schema` has them, with the number of the strategy; the cluster is a history's.
    """
    task = SweepTask(table, sweep)

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    rows = assigned.everything if table == STARTS else assigned.members
    return rows.mapInArrow(run, _schema(table)[1])


@dataclass(frozen=True, slots=True)
class SweepTask:
    """One task of a pass."""

    table: str
    sweep: Sweep

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        """The rows of all strategies."""
        for chunk in chunks(batches) if self.table == STARTS else unpacked(batches):
            wanted = self._wanted(chunk)
            if not wanted.num_rows:
                continue
            for rows in self._chunk(wanted):
                yield from rows.to_batches(max_chunksize=ROWS_PER_BATCH)

    def _chunk(self, chunk: pa.Table) -> Iterator[pa.Table]:
        schema = _schema(self.table)[0]
        for number, text in self.sweep.strategies:
            rows = self._engine_rows(chunk, replace(self.sweep.options, strategy_override=text))
            numbers = pa.array(np.full(rows.num_rows, number, np.int32))
            yield rows.append_column(NUMBER, numbers).select(schema.names).cast(schema)
        if self.sweep.hypothetical.strategies and self.table != STARTS:
            yield from self._hypothetical_rows(chunk)

    def _engine_rows(self, chunk: pa.Table, options: EngineOptions) -> pa.Table:
        if self.table == STEPS:
            epochs, metrics = _ledger(("epochs", "group_metrics"), chunk, options)
            return marked(step_rows(epochs, metrics), self.sweep.first_ms)
        if self.table == OWNERSHIP:
            return _ledger(("ownership",), chunk, options)[0]
        starts = _ledger(("pull_starts",), chunk, options)[0]
        return start_sums(starts.filter(counted(starts, self.sweep.first_ms)))

    def _hypothetical_rows(self, chunk: pa.Table) -> Iterator[pa.Table]:
        schema, options = _schema(self.table)[0], self.sweep.options
        for unit in split_units(chunk):
            if unit[PART][0].as_py():
                continue
            history = history_of(
                by_table(unit),
                queue_offsets_given=options.queue_offsets_given,
                committed_offsets_given=options.committed_offsets_given,
            )
            for number, rows in self.sweep.hypothetical(self.table, history):
                table = pa.Table.from_pylist([row | {NUMBER: number} for row in rows], schema)
                if self.table == STEPS:
                    table = marked(table, self.sweep.first_ms).select(schema.names)
                yield table

    def _wanted(self, chunk: pa.Table) -> pa.Table:
        groups = self.sweep.ownership_of
        if self.table != OWNERSHIP or groups is None:
            return chunk
        names = pa.array(["\x1e".join(pair) for pair in sorted(groups)], pa.string())
        cluster = pc.replace_substring_regex(chunk[GROUP[0]], "\x1f[0-9]+$", "")
        pairs = pc.binary_join_element_wise(cluster, chunk[GROUP[1]], "\x1e")
        return chunk.filter(pc.is_in(pairs, value_set=names))


def _ledger(tables: tuple[str, ...], chunk: pa.Table, options: EngineOptions) -> list[pa.Table]:
    """Ledger tables of a chunk, whose events are replayed once for all of them."""
    made = prepare(chunk, options, tables)
    return [
        pa.Table.from_batches(
            list(Task(table, options).rows_of(made)), LEDGER_TABLES[table].arrow_schema()
        )
        for table in tables
    ]
