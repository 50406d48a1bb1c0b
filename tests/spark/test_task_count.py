"""How many tasks work gets, in every kind of session."""

from typing import cast

from pyspark.sql import SparkSession

from rebalance_core.spark.sources import ROWS_PER_TASK, cores_of, task_count


class WithoutContext:
    """A session as Spark Connect has it: nothing but frames."""

    def __init__(self, session: SparkSession) -> None:
        self.range = session.range


def test_cores_are_known_without_a_context(spark: SparkSession) -> None:
    cores = spark.sparkContext.defaultParallelism
    assert cores_of(spark) == cores
    assert cores_of(cast(SparkSession, WithoutContext(spark))) == cores > 1


def test_many_rows_get_more_tasks_than_cores(spark: SparkSession) -> None:
    cores = cores_of(spark)
    assert task_count(1, spark) == cores
    assert task_count(cores * ROWS_PER_TASK + 1, spark) == cores + 1
