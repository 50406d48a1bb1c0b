"""How many tasks work gets: as many as there are cores, more where a task had too much to do."""

from __future__ import annotations

from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from rebalance_core.spark.driver_rows import rows_of

ROWS_PER_TASK = 100_000
_MOST_CORES = 1 << 16
"""Rows of the range that `cores_of` has Spark divide."""


def cores_of(session: SparkSession) -> int:
    """The default parallelism of any session; under Spark Connect one small job."""
    context = getattr(session, "sparkContext", None)
    if context is not None:
        return int(context.defaultParallelism)
    # Connect has no context to ask, but divides a range among the cores.
    parts = session.range(_MOST_CORES).select(sf.spark_partition_id().alias("part"))
    (last,) = rows_of(parts.agg(sf.max("part").alias("part")))
    return int(last["part"]) + 1


def task_count(rows: int, session: SparkSession) -> int:
    """Tasks for so many rows: one a core at least; few, as a Python task takes 25 ms to start."""
    return max(cores_of(session), -(-rows // ROWS_PER_TASK))
