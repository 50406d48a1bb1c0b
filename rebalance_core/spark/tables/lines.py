"""Lines of text files, each with the file and line it came from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts.technical_columns import RAW, SOURCE
from rebalance_core.model.errors import InputRefused


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


_NUMBERED = pa.schema([(SOURCE, pa.string()), (RAW, pa.string()), ("_utf8", pa.bool_())])


def number_lines(
    batches: Iterable[pa.RecordBatch], header: str | None = None
) -> Iterator[pa.RecordBatch]:
    """Number the lines of each ``split``; the lines of one must be consecutive and in order."""
    open_split, line = None, 0
    for batch in batches:
        runs = pc.run_end_encode(batch["split"].cast(pa.string()))
        begin = 0
        for split, end in zip(runs.values.to_pylist(), runs.run_ends.to_pylist(), strict=True):
            line = line if split == open_split else 0
            path, byte = split.rsplit("@", 1)
            name = unquote(path.rsplit("/", 1)[-1])
            raw = batch[RAW].slice(begin, end - begin).cast(pa.string())
            utf8 = batch["_utf8"].slice(begin, end - begin)
            if byte == "0":
                numbers = pa.array(np.arange(line + 1, line + 1 + len(raw))).cast(pa.string())
                source = pc.binary_join_element_wise(name, numbers, ":")
            else:
                source = pa.repeat(pa.scalar(f"{name}@{byte}"), len(raw))
            skipped = 0
            if header is not None and line == 0 and byte == "0":
                _check_header(name, raw[0].as_py(), header)
                skipped = 1
            columns = [column.slice(skipped) for column in (source, raw, utf8)]
            yield pa.RecordBatch.from_arrays(columns, schema=_NUMBERED)
            line += end - begin
            open_split, begin = split, end


def _check_header(name: str, line: str, header: str) -> None:
    if line.lstrip("\ufeff") != header:
        raise InputRefused(
            f"{name}: the header is {line[:200]!r}, in the other files {header[:200]!r}; "
            "all parts of a table need the same header"
        )
