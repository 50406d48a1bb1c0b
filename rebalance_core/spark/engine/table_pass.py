"""One task of the engine: whole groups to the kernels, groups of a rare shape to the replay."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame

from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.ledger_pass import rows_of
from rebalance_core.engine.prepared import REPLAYED, Prepared, prepare
from rebalance_core.engine.units import chunks
from rebalance_core.kernels.codes.coded_groups import EngineOptions
from rebalance_core.spark.engine.prepared_frames import WITH_OFFSETS, prepared_chunks
from rebalance_core.spark.engine.work_units import AssignedRows

Batches = Iterator[pa.RecordBatch]

ROWS_PER_BATCH = 1 << 16
"""Output rows that travel at once."""
REPLAYED_DDL = "cluster STRING, consumer_group STRING, reason STRING"


def table_of(table: str, assigned: AssignedRows, options: EngineOptions) -> DataFrame:
    """One ledger table, a pass over the assigned rows.

    Args:
        table: name of a ledger table.
        assigned: with ``members`` as `prepared_rows` makes them.
        options: those they were prepared with.
    """
    rows = assigned.everything if table == WITH_OFFSETS else assigned.members
    return rows.mapInArrow(_task(table, options), LEDGER_TABLES[table].plain_ddl)


def replayed_groups(assigned: AssignedRows, options: EngineOptions) -> DataFrame:
    """The groups that take the replay path (cluster, consumer_group), and the reason."""
    return assigned.members.mapInArrow(_task(REPLAYED, options), REPLAYED_DDL)


def _task(table: str, options: EngineOptions) -> Callable[[Iterable[pa.RecordBatch]], Batches]:
    """The function for `mapInArrow`: Spark wants a plain one."""
    body = Task(table, options)

    def run(batches: Iterable[pa.RecordBatch]) -> Batches:
        yield from body(batches)

    return run


@dataclass(frozen=True, slots=True)
class Task:
    """What a task makes of its units; small, so that it travels.

    ``table`` is a ledger table, or `REPLAYED`: the groups that take the replay path, and why.
    """

    table: str
    options: EngineOptions

    def __call__(self, batches: Iterable[pa.RecordBatch]) -> Batches:
        """The table's rows of all units of the task; units come whole and in order."""
        if self.table == WITH_OFFSETS:
            batches_of_rows = (rows for chunk in chunks(batches) for rows in self.rows(chunk))
        else:
            batches_of_rows = (
                rows for made in prepared_chunks(batches) for rows in self.rows_of(made)
            )
        for rows in batches_of_rows:
            for start in range(0, rows.num_rows, ROWS_PER_BATCH):
                yield rows.slice(start, ROWS_PER_BATCH)

    def rows(self, chunk: pa.Table) -> Batches:
        """The rows of some units, given as rows of `fan_out` with ``_part`` and ``_parts``."""
        yield from self.rows_of(prepare(chunk, self.options, (self.table,)))

    def rows_of(self, made: Prepared) -> Batches:
        """The rows of units that are prepared."""
        for name, rows in rows_of(made, (self.table,)):
            if name == self.table:
                yield rows
