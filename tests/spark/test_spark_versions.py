"""What older Sparks lack, done in their words on this one; `make test-sparks` runs it on them."""

import pytest
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.spark import spark_versions
from rebalance_core.spark.sources import frame_of, rows_of
from rebalance_core.spark.spark_versions import by_number, key_of_task

NUMBERS = [*range(2_000), 2**31 - 1]


def test_the_hash_of_a_task_s_key_is_its_number(spark: SparkSession) -> None:
    keys = spark.createDataFrame([(key_of_task(number),) for number in NUMBERS], "key INT")
    assert [row["hash"] for row in rows_of(keys.select(sf.hash("key").alias("hash")))] == NUMBERS


@pytest.mark.parametrize("since", [(3, 5), (99, 0)], ids=["by id", "by hash"])
def test_rows_go_to_the_task_of_their_number(
    spark: SparkSession, monkeypatch: pytest.MonkeyPatch, since: tuple[int, int]
) -> None:
    if since == (3, 5) and spark.version < "4.1":
        pytest.skip("this Spark lacks repartitionById")
    monkeypatch.setattr(spark_versions, "_BY_ID", since)
    numbers = spark.range(0, 50, 1, 3).select(sf.col("id").cast("INT").alias("number"))
    placed = by_number(numbers, 7, "number").withColumn("task", sf.spark_partition_id())
    assert sorted((row["number"], row["task"]) for row in rows_of(placed)) == [
        (number, number % 7) for number in range(50)
    ]


def test_rows_of_the_driver_are_a_frame(spark: SparkSession) -> None:
    table = ALL_TABLES["findings"]
    rows = table.arrow_schema().empty_table()
    frame = frame_of(spark, rows, table.plain_ddl)
    assert frame.columns == list(table.column_names)
    assert rows_of(frame) == []
