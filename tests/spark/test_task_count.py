"""How many tasks work gets, in every kind of session."""

import gzip
from pathlib import Path
from typing import cast

import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.expected_values import MAX_QUEUE_NUMS
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.spark import checks, sources
from rebalance_core.spark.read_tables import read_table
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


def tasks_of(source: sources.Source) -> int:
    """In how many tasks rows are checked by their keys; none is read."""
    chunks = checks.checked_chunks({source.table.name: source}, MAX_QUEUE_NUMS, checks.KeyTask(()))
    return int(chunks.rdd.getNumPartitions())


@pytest.mark.parametrize("packed", [False, True])
def test_rows_are_checked_in_tasks_by_the_size_of_their_files(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(sources, "ROWS_PER_TASK", 10)
    size = 100 * 200  # a hundred rows, about
    text = gzip.compress(bytes(size), 0)[: size // 10] if packed else b" " * size
    path = tmp_path / ("e.jsonl.gz" if packed else "e.jsonl")
    path.write_bytes(text)
    source = read_table(spark, INPUT_TABLES["cluster_events"], f"file://{path}")
    assert source.about_rows == 100
    assert tasks_of(source) == 10


def test_a_frame_of_unknown_size_has_the_tasks_of_a_shuffle(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = INPUT_TABLES["cluster_events"]
    source = sources.source_of(table, spark.createDataFrame([], table.plain_ddl))
    spark.conf.set("spark.sql.shuffle.partitions", "5")
    try:
        assert tasks_of(source) == 5
    finally:
        spark.conf.set("spark.sql.shuffle.partitions", "2")
