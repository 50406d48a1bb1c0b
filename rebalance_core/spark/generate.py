"""A synthetic fleet as input tables: entities by number, spread over the executors."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.engine.table_writer import Written
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.sources import cores_of
from rebalance_core.spark.task_tables import TableRows, task_tables
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.table_parts import PARTS, Part, arrow_batches, fleet_batches

_ENTITIES_PER_TASK = 2_000
"""Clusters, topics and groups: seconds of work."""


def generate(spark: SparkSession, plan: FleetPlan, *, partitions: int | None = None) -> InputTables:
    """The fleet of a plan as the tables that `simulate` reads.

    Lazy: nothing is made before a frame is used, and each use makes its rows anew. An entity's rows
    depend on the plan and its number only, so partitions change nothing but the order of rows.

    Args:
        spark: any session there is (notebook, Connect).
        plan: what to make.
        partitions: tasks for each kind of entity; None: Spark's default parallelism. A Python
            worker holds one batch at a time.
    """
    frames: dict[str, Any] = {
        name: reduce(
            lambda one, other: one.unionByName(other),
            [_frame(spark, plan, INPUT_TABLES[name], part, partitions) for part in parts],
        )
        for name, parts in PARTS.items()
    }
    return InputTables(**frames)


def generate_and_write(
    session: SparkSession,
    plan: FleetPlan,
    output: str,
    *,
    before_writing: Callable[[], object] | None = None,
) -> Written:
    """Make the fleet of a plan and write its tables.

    Args:
        session: any session there is.
        plan: what to make.
        output: path or URI of a folder, which gets the tables; none of them may be there.
        before_writing: called before the first table is written.

    Raises:
        OutputExists: a table is in the folder already.
    """
    if before_writing is not None:
        before_writing()
    entities = sum(part.entities(plan) for parts in PARTS.values() for part in parts)
    tasks = max(cores_of(session), entities // _ENTITIES_PER_TASK)
    numbers = session.range(0, tasks, 1, tasks)
    with task_tables(session, output, tuple(PARTS)) as tables:
        events = tables.make(numbers, _GenerateTask(plan, tasks), _EventCounts, tuple(PARTS))
        written = tables.finish()
    return Written(written, dict(sorted(events.items())))


class _EventCounts(Counter[str]):
    """Events by type."""

    merge = Counter.update


@dataclass(frozen=True, slots=True)
class _GenerateTask:
    """`Work` of `task_tables` over the numbers of tasks; its facts are `_EventCounts`."""

    plan: FleetPlan
    tasks: int

    def __call__(self, batches: Iterable[pa.RecordBatch], events: _EventCounts) -> TableRows:
        for task in (number for batch in batches for number in batch.column(0).to_pylist()):
            for name, batch in fleet_batches(self.plan, task, self.tasks):
                if name == "cluster_events":
                    events.update(batch["event_type"].to_pylist())
                yield name, batch


def _frame(
    spark: SparkSession, plan: FleetPlan, table: Table, part: Part, partitions: int | None
) -> DataFrame:
    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        return arrow_batches(plan, table, part, numbers)

    numbers = spark.range(0, part.entities(plan), 1, partitions)
    return numbers.mapInArrow(rows_of, table.plain_ddl)
