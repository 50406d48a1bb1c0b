"""Lines of text files, each with the file and line it came from."""

from __future__ import annotations

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.reading.lines import number_lines
from rebalance_core.contracts.technical_columns import RAW, SOURCE


def numbered_lines(spark: SparkSession, path: str, header: str | None = None) -> DataFrame:
    """The lines of text files that are not blank: ``_source``, ``_raw`` and ``_utf8`` (was valid).

    ``_source`` is ``file:line``; a large file is read in splits, and where a line of a later split
    stands is not known to the task that reads it: those have ``file@byte`` of the split. With a
    ``header``, the first line of every file must be that line and is left out.
    """
    text = spark.read.option("recursiveFileLookup", True).text(path)
    lines = text.select(
        sf.make_valid_utf8("value").alias(RAW),
        sf.is_valid_utf8("value").alias("_utf8"),
        sf.concat_ws("@", "_metadata.file_path", "_metadata.file_block_start").alias("split"),
    )
    numbered = lines.mapInArrow(
        lambda batches: number_lines(batches, header),
        f"{SOURCE} STRING, {RAW} STRING, _utf8 BOOLEAN",
    )
    return numbered.where(sf.col(RAW).rlike(r"\S"))
