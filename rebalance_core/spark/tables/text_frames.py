"""Lines of text files as rows of a contract table, each with the file and line it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import conform
from rebalance_core.checks.reading.csv_rows import csv_rows
from rebalance_core.checks.reading.json_rows import json_rows
from rebalance_core.checks.reading.lines import UTF8, not_blank, number_lines
from rebalance_core.contracts import Table
from rebalance_core.contracts.technical_columns import RAW, SOURCE
from rebalance_core.spark.tables.conformed_frames import Batches, conformed_ddl

Parse = Callable[[pa.Array, pa.Array, pa.Array], pa.Table]
"""Lines that are not blank, their sources and whether they were UTF-8, to conformed rows."""


def json_frame(spark: SparkSession, table: Table, path: str) -> DataFrame:
    """The rows of JSON lines, conformed."""

    def parse(lines: pa.Array, source: pa.Array, utf8: pa.Array) -> pa.Table:
        return json_rows(table, lines, source, utf8).rows

    return _frame(spark, table, path, parse)


def csv_frame(
    spark: SparkSession, table: Table, path: str, header: str, names: Sequence[str]
) -> DataFrame:
    """The rows of CSV, conformed.

    Args:
        spark: any session.
        table: the contract.
        path: of a file or folder.
        header: the first line of every file.
        names: of the header.
    """

    def parse(lines: pa.Array, source: pa.Array, utf8: pa.Array) -> pa.Table:
        return conform(table, csv_rows(table, names, lines, source, utf8))

    return _frame(spark, table, path, parse, header)


def _frame(
    spark: SparkSession, table: Table, path: str, parse: Parse, header: str | None = None
) -> DataFrame:
    """The rows that ``parse`` makes of the lines of text files.

    ``_source`` is ``file:line``; a large file is read in splits, and where a line of a later split
    stands is not known to the task that reads it: those have ``file@byte`` of the split. With a
    ``header``, the first line of every file must be that line and is left out.
    """
    text = spark.read.option("recursiveFileLookup", True).text(path)
    lines = text.select(
        sf.make_valid_utf8("value").alias(RAW),
        sf.is_valid_utf8("value").alias(UTF8),
        sf.concat_ws("@", "_metadata.file_path", "_metadata.file_block_start").alias("split"),
    )

    def run(batches: Batches) -> Iterator[pa.RecordBatch]:
        for numbered in number_lines(batches, header):
            batch = numbered.filter(not_blank(numbered[RAW]))
            if batch.num_rows:
                rows = parse(batch[RAW], batch[SOURCE], batch[UTF8])
                yield from rows.combine_chunks().to_batches()

    return lines.mapInArrow(run, conformed_ddl(table))
