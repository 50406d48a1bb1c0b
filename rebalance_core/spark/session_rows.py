"""Rows of frames on the driver, and how many tasks work gets."""

from __future__ import annotations

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts.table import rows_of_arrow

# Rows of frames on the driver.
#
# `DataFrame.collect` ends early, without an error, where the JVM fails while it hands rows over,
# for want of memory for one; `toArrow` waits for it and raises.


def rows_of(frame: DataFrame) -> list[dict[str, Any]]:
    """The rows as dicts, structs as well, in the frame's order; only for what is known to be few.

    Raises:
        PySparkException: Not all of them came.
    """
    return rows_of_arrow(frame.toArrow())


# How many tasks work gets: as many as there are cores, more where a task had too much to do.

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
