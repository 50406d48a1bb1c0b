"""A synthetic fleet as input tables: entities by number, spread over the executors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import reduce

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.engine.written import FleetWritten
from rebalance_core.spark.engine.summary import count_by
from rebalance_core.spark.tables.read import InputTables
from rebalance_core.spark.tables.write import write_table
from rebalance_core.spark.tables.written import read_written
from rebalance_core.synthetic.arrow import arrow_batches
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.table_parts import PARTS, Part


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
    frames = {
        name: reduce(
            DataFrame.unionByName,
            [_frame(spark, plan, INPUT_TABLES[name], part, partitions) for part in parts],
        )
        for name, parts in PARTS.items()
    }
    return InputTables(
        cluster_events=frames["cluster_events"],
        consumer_groups=frames["consumer_groups"],
        queue_offsets=frames["queue_offsets"],
        committed_offsets=frames["committed_offsets"],
    )


def generate_and_write(
    session: SparkSession,
    plan: FleetPlan,
    output: str,
    *,
    before_writing: Callable[[], object] | None = None,
) -> FleetWritten:
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
    folder = output.rstrip("/")
    frames = generate(session, plan).tables()
    written = {name: write_table(frame, folder, name) for name, frame in frames.items()}
    events = read_written(session, folder, "cluster_events")
    return FleetWritten(written, count_by(events, "event_type"))


def _frame(
    spark: SparkSession, plan: FleetPlan, table: Table, part: Part, partitions: int | None
) -> DataFrame:
    numbers = spark.range(0, part.entities(plan), 1, partitions)
    return numbers.mapInArrow(_rows_of(plan, table, part), table.ddl.replace(" NOT NULL", ""))


def _rows_of(
    plan: FleetPlan, table: Table, part: Part
) -> Callable[[Iterator[pa.RecordBatch]], Iterator[pa.RecordBatch]]:
    """The UDF's body; it captures plain values and functions of modules only."""

    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        return arrow_batches(plan, table, part, numbers)

    return rows_of
