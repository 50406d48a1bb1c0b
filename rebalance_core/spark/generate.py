"""Generates a synthetic fleet as input tables, with entities distributed over the executors by
number.
"""

from collections.abc import Iterator
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import INPUT_TABLES, Table
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.fleet_batches import arrow_batches
from rebalance_core.synthetic.table_parts import PARTS, Part


def generate(spark: SparkSession, plan: FleetPlan, *, partitions: int | None = None) -> InputTables:
    """Return the fleet of a plan as the tables that `simulate` reads.

    The frames are lazy and compute their rows on each use. An entity's rows depend only on the plan
    and its number, so partitions affect only the order of rows.

    Args:
        spark: any session (notebook, Connect).
        plan: what to generate.
        partitions: the number of tasks per kind of entity; None for Spark's default parallelism. A
            Python worker holds one batch at a time.
    """
    frames: dict[str, Any] = {
        name: reduce(
            lambda first, second: first.unionByName(second),
            [_frame(spark, plan, INPUT_TABLES[name], part, partitions) for part in parts],
        )
        for name, parts in PARTS.items()
    }
    return InputTables(**frames)


def _frame(
    spark: SparkSession, plan: FleetPlan, table: Table, part: Part, partitions: int | None
) -> DataFrame:
    def rows_of(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        numbers = (number for batch in batches for number in batch.column(0).to_pylist())
        return arrow_batches(plan, table, part, numbers)

    numbers = spark.range(0, part.entities(plan), 1, partitions)
    return numbers.mapInArrow(rows_of, table.plain_ddl)
