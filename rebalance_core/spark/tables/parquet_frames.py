"""Parquet files as Spark reads them, each row with the file and row it came from."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import conform, refuse_missing_columns
from rebalance_core.checks.reading.json_rows import ReadRows
from rebalance_core.checks.reading.locations import unknown_names
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import SOURCE, TECHNICAL
from rebalance_core.spark.tables.sources import Batches, Source

_FILE, _ROW = "_source_file", "_source_row"
"""Where a row of a Parquet file stands."""


def parquet_frame(spark: SparkSession, table: Table, path: str) -> Source:
    """The rows of Parquet files that only Spark reaches."""
    rows = spark.read.parquet(path)
    names = [name for name in rows.columns if name not in TECHNICAL]
    columns = [sf.col(f"`{name}`") for name in names]
    place = [sf.col("_metadata.file_name").alias(_FILE), sf.col("_metadata.row_index").alias(_ROW)]
    refuse_missing_columns(table, [*names, SOURCE])

    def read(batches: Batches) -> Iterator[ReadRows]:
        for batch in batches:
            given = pa.Table.from_batches([batch]).drop_columns([_FILE, _ROW])
            numbered = given.append_column(SOURCE, _places(batch[_FILE], batch[_ROW]))
            yield ReadRows(conform(table, numbered), frozenset())

    unknown = unknown_names(table, names, TECHNICAL)
    return Source(table, rows.select(*columns, *place), read, unknown)


def _places(files: pa.Array, rows: pa.Array) -> pa.Array:
    """``file:row`` from the parts of Spark's ``_metadata``, where names are as in a URI."""
    of_files = files.dictionary_encode()
    names = pa.array([unquote(name) for name in of_files.dictionary.to_pylist()], pa.string())
    number = pc.add(rows, 1).cast(pa.string())
    return pc.binary_join_element_wise(names.take(of_files.indices), number, ":")
