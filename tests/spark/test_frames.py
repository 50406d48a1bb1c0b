"""What `assert_same_rows` overlooks, and what it does not."""

from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from tests.spark.frames import assert_same_rows, frame_of

DDL = "a INT, b ARRAY<STRUCT<c: STRING, d: ARRAY<BIGINT>>>, e DOUBLE"
ROWS: list[dict[str, Any]] = [
    {"a": 1, "b": [("x", [1, None])], "e": float("nan")},
    {"a": None, "b": None, "e": 0.5},
    {"a": 1, "b": [], "e": None},
]


def test_order_and_nullability_do_not_count(spark: SparkSession) -> None:
    found, reverse = frame_of(spark, ROWS, DDL), frame_of(spark, ROWS[::-1], DDL)
    assert_same_rows(found, reverse)
    never_null = spark.range(1).select(
        sf.lit(1).alias("a"), sf.array(sf.struct(sf.lit("x").alias("c"))).alias("b")
    )
    assert not never_null.schema["a"].nullable
    assert_same_rows(
        never_null, spark.createDataFrame([(1, [("x",)])], "a INT, b ARRAY<STRUCT<c: STRING>>")
    )


@pytest.mark.parametrize(
    ("rows", "ddl"),
    [
        (ROWS[:2], DDL),
        ([*ROWS, ROWS[0]], DDL),
        ([*ROWS[:2], ROWS[1]], DDL),
        ([ROWS[0] | {"b": [("x", [1, 2])]}, *ROWS[1:]], DDL),
        ([ROWS[0] | {"e": None}, *ROWS[1:]], DDL),
        (ROWS, DDL.replace("a INT", "a BIGINT")),
        (ROWS, DDL.replace("e DOUBLE", "f DOUBLE")),
        (ROWS, DDL.replace("c:", "k:")),
    ],
)
def test_all_else_counts(spark: SparkSession, rows: list[dict[str, Any]], ddl: str) -> None:
    frames: list[DataFrame] = [frame_of(spark, ROWS, DDL), frame_of(spark, rows, ddl)]
    for found, expected in (frames, frames[::-1]):
        with pytest.raises(Exception, match=r"(?s).+") as raised:
            assert_same_rows(found, expected)
        assert type(raised.value).__name__ in ("DataFramesNotEqualError", "SchemasNotEqualError")
