"""Lines of text files as rows of a contract table, each with the file and line it came from."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.conform import conform
from rebalance_core.checks.reading.csv_rows import csv_rows
from rebalance_core.checks.reading.json_rows import ReadRows, json_rows
from rebalance_core.checks.reading.lines import UTF8, not_blank, number_lines
from rebalance_core.checks.reading.locations import unknown_names
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import RAW, SOURCE, TECHNICAL
from rebalance_core.spark.tables.sources import Batches, Read, Source

Parse = Callable[[pa.Array, pa.Array, pa.Array], ReadRows]
"""Lines that are not blank, their sources and whether they were UTF-8, to conformed rows."""


def json_source(spark: SparkSession, table: Table, path: str) -> Source:
    """The rows of JSON lines."""

    def parse(lines: pa.Array, source: pa.Array, utf8: pa.Array) -> ReadRows:
        return json_rows(table, lines, source, utf8)

    return Source(table, _lines(spark, path), _reading(parse), None)


def csv_source(
    spark: SparkSession, table: Table, path: str, header: str, names: Sequence[str]
) -> Source:
    """The rows of CSV.

    Args:
        spark: any session.
        table: the contract.
        path: of a file or folder.
        header: the first line of every file.
        names: of the header.
    """

    def parse(lines: pa.Array, source: pa.Array, utf8: pa.Array) -> ReadRows:
        rows = conform(table, csv_rows(table, names, lines, source, utf8))
        return ReadRows(rows, frozenset())

    unknown = unknown_names(table, names, TECHNICAL)
    return Source(table, _lines(spark, path), _reading(parse, header), unknown)


def _lines(spark: SparkSession, path: str) -> DataFrame:
    """The lines of text files.

    ``split`` is ``file@byte``: a large file is read in splits, and where a line of a later split
    stands is not known to the task that reads it.
    """
    text = spark.read.option("recursiveFileLookup", True).text(path)
    return text.select(
        sf.make_valid_utf8("value").alias(RAW),
        sf.is_valid_utf8("value").alias(UTF8),
        sf.concat_ws("@", "_metadata.file_path", "_metadata.file_block_start").alias("split"),
    )


def _reading(parse: Parse, header: str | None = None) -> Read:
    """The rows that ``parse`` makes of `_lines`.

    ``_source`` is ``file:line``, or ``file@byte`` of a later split. With a ``header``, the first
    line of every file must be that line and is left out.
    """

    def read(batches: Batches) -> Iterator[ReadRows]:
        for numbered in number_lines(batches, header):
            batch = numbered.filter(not_blank(numbered[RAW]))
            if batch.num_rows:
                yield parse(batch[RAW], batch[SOURCE], batch[UTF8])

    return read
