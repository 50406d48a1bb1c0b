"""Rows of a table's entities as Arrow batches."""

from collections.abc import Iterable, Iterator

import pyarrow as pa

from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.contracts.table import batch_of_columns, batch_of_rows
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.table_parts import PARTS, Part, PartRows

ROWS_PER_BATCH = 20_000  # pieces are not split, so a batch may be larger


def fleet_batches(
    plan: FleetPlan, task: int = 0, tasks: int = 1
) -> Iterator[tuple[str, pa.RecordBatch]]:
    """Yield rows of every table, with its name; each of several tasks makes every n-th entity.

    Args:
        plan: What to make.
        task: The number of the task, from 0 on.
        tasks: The number of tasks.
    """
    for name, parts in PARTS.items():
        for part in parts:
            numbers = range(task, part.entities(plan), tasks)
            for batch in arrow_batches(plan, INPUT_TABLES[name], part, numbers):
                yield name, batch


def arrow_batches(
    plan: FleetPlan, table: Table, part: Part, numbers: Iterable[int]
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of these entities as batches with the table's columns."""
    waiting: list[pa.RecordBatch] = []
    rows = 0
    for piece in (piece for number in numbers for piece in part.rows(plan, number)):
        batch = arrow_batch(table, piece)
        if batch.num_rows:
            waiting.append(batch)
            rows += batch.num_rows
        if rows >= ROWS_PER_BATCH:
            yield _joined(waiting)
            waiting, rows = [], 0
    if waiting:
        yield _joined(waiting)


def arrow_batch(table: Table, rows: PartRows) -> pa.RecordBatch:
    """Return a piece as a batch with all the table's columns; missing columns are null."""
    return batch_of_rows(table, rows) if isinstance(rows, list) else batch_of_columns(table, rows)


def _joined(batches: list[pa.RecordBatch]) -> pa.RecordBatch:
    return pa.Table.from_batches(batches).combine_chunks().to_batches()[0]
