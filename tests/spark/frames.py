"""Frames compared as frames, by chispa."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from chispa import assert_df_equality
from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql.types import StructType


@dataclass(frozen=True)
class Collected:
    """The part of a frame that chispa reads; its rows are sorted here, not by a job of Spark's."""

    frame: DataFrame

    @property
    def schema(self) -> StructType:
        return self.frame.schema

    def collect(self) -> list[Row]:
        return sorted(self.frame.collect(), key=repr)


def assert_same_rows(found: DataFrame, expected: DataFrame) -> None:
    """Equal columns, types and rows.

    The order of rows does not count, nor does what may be null, at any depth: a plan says of a
    literal that it never is, of what a UDF gives that it always may be.
    """
    assert_df_equality(
        _nullable(found),
        _nullable(expected),
        transforms=[Collected],
        ignore_metadata=True,
        allow_nan_equality=True,
    )


def frame_of(spark: SparkSession, rows: Iterable[Mapping[str, Any]], ddl: str) -> DataFrame:
    """The rows as a frame of these columns; a column that a row does not name is null."""
    names = spark.createDataFrame([], ddl).columns
    return spark.createDataFrame([tuple(row.get(name) for name in names) for row in rows], ddl)


def _nullable(frame: DataFrame) -> DataFrame:
    """The frame with a schema in which everything may be null: so it is parsed from a text."""
    columns = [f"`{field.name}` {field.dataType.simpleString()}" for field in frame.schema]
    return frame.to(frame.sparkSession.createDataFrame([], ", ".join(columns)).schema)
