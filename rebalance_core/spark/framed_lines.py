"""A collection whose files are the lines of a frame, as from a log shipper or a table."""

from __future__ import annotations

import errno
from collections.abc import Iterable, Iterator
from io import BytesIO
from typing import BinaryIO

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf
from pyspark.sql.types import IntegralType, StringType

from rebalance_core.ingest import in_process
from rebalance_core.ingest.collection import SNIFFED
from rebalance_core.ingest.collection_settings import SETTINGS_NAME
from rebalance_core.ingest.evidence_table import Pieces
from rebalance_core.ingest.fact import Unreadable
from rebalance_core.ingest.file_reader import FileReader
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.sources import rows_of

COLUMNS = ("file", "number", "line")
_TYPES = ("a string", "an integer", "a string")


class FramedLines:
    """A folder of files whose lines are rows, or a file in it (`storage.files_to_read`).

    Attributes:
        url: A name for messages.
    """

    is_local = False

    def __init__(self, lines: DataFrame, settings: str, name: str = "") -> None:
        """Take the frame.

        Args:
            lines: ``file``, the path in the layout of a collection; ``number``, which orders the
                lines of a file; ``line``, without its end.
            settings: The text of ``collection.toml``.
            name: The path of a file; empty for the folder.

        Raises:
            InputRefused: A column is missing, appears twice or has a different type.
        """
        missing = [column for column in COLUMNS if column not in lines.columns]
        if missing:
            raise InputRefused(
                f"the lines lack the column(s) {', '.join(missing)}; they have "
                f"{', '.join(lines.columns)}"
            )
        for column, kind in zip(COLUMNS, _TYPES, strict=True):
            if lines.columns.count(column) > 1:
                raise InputRefused(f"the lines have the column {column} twice")
            has = lines.schema[column].dataType
            if not isinstance(has, IntegralType if column == "number" else StringType):
                raise InputRefused(f"{column} of the lines is {has.simpleString()}, not {kind}")
        self._settings, self.path = settings, name
        self.lines = lines.select(*COLUMNS).withColumn("number", sf.col("number").cast("bigint"))
        self.url = name or "lines"
        self._heads: dict[str, bytes] = {}

    def __str__(self) -> str:
        return self.url

    def __truediv__(self, name: str) -> FramedLines:
        """Return the file at that path."""
        file = FramedLines(self.lines, self._settings, name)
        file._heads = self._heads
        return file

    def sizes(self) -> list[tuple[str, int]]:
        """Return the path and size in bytes of every file, sorted; one pass sorts the lines of
        each.

        Raises:
            InputRefused: A line has no file or no number, or a number occurs twice in a file.
        """
        in_order = Window.partitionBy("file").orderBy("number")
        octets = sf.coalesce(sf.octet_length("line"), sf.lit(0)) + 1
        to_here = in_order.rowsBetween(Window.unboundedPreceding, Window.currentRow)
        placed = self.lines.select(
            "*",
            sf.sum(octets).over(to_here).alias("end"),
            sf.rank().over(in_order).alias("rank"),
        )
        head = sf.struct("end", sf.substring("line", 1, SNIFFED).alias("line"))
        of_files = placed.groupBy("file").agg(
            sf.max("end").alias("octets"),
            sf.collect_list(sf.when(sf.col("end") - octets < SNIFFED, head)).alias("first"),
            sf.count("*").alias("count"),
            sf.count("number").alias("numbers"),
            sf.sum("rank").alias("ranks"),
        )
        rows = rows_of(of_files)
        for row in rows:
            if row["file"] is None:
                raise InputRefused("a line has no file")
            count = row["count"]
            if row["numbers"] < count or row["ranks"] < count * (count + 1) // 2:
                raise InputRefused(
                    f"the lines of {row['file']} have no order: numbers are missing or repeated"
                )
            lines = [each["line"] for each in sorted(row["first"], key=lambda each: each["end"])]
            self._heads[row["file"]] = _joined(lines)
        return sorted((row["file"], int(row["octets"])) for row in rows)

    def head(self, size: int) -> bytes:
        """Return the first bytes of the file; raise `FileNotFoundError` without settings."""
        if self.path == SETTINGS_NAME:
            if not self._settings:
                raise FileNotFoundError(errno.ENOENT, "no such file", str(self))
            return self._settings.encode()[:size]
        return self._heads.get(self.path, b"")[:size]

    def read_bytes(self) -> bytes:
        """Return the bytes of a small file."""
        of_file = self.lines.where(sf.col("file") == self.path)
        lines = sorted(rows_of(of_file), key=lambda row: row["number"])
        return _joined([row["line"] for row in lines])

    def open(self, at: int = 0) -> BinaryIO:
        """Open the bytes of a small file, starting at the given byte."""
        return BytesIO(self.read_bytes()[at:])


def _joined(lines: Iterable[str | None]) -> bytes:
    return b"".join((line or "").encode() + b"\n" for line in lines)


def read_lines(batches: Iterable[pa.RecordBatch], reader_of: dict[str, FileReader]) -> Pieces:
    """Yield the evidence of files whose lines are consecutive and in order.

    Args:
        batches: Of `COLUMNS`.
        reader_of: The readers of the files; lines of other files are skipped.
    """
    file, reader, document, done = "", None, list[pa.Array](), 0
    for name, lines in _runs(batches):
        if name != file:
            yield from _ended(reader, document, done)
            file, reader, document, done = name, reader_of.get(name), [], 0
        if reader is None:
            continue
        if reader.file.is_log:
            try:
                yield from reader.read_lines(lines, done)
            except Unreadable as refusal:
                yield reader.refuse(refusal)
        else:
            document.append(lines)
        done += len(lines)
    yield from _ended(reader, document, done)


def _runs(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[str, pa.StringArray]]:
    """Yield runs of consecutive lines from one file."""
    for batch in batches:
        names = batch["file"].dictionary_encode()
        codes = names.indices.to_numpy(zero_copy_only=False)
        begins = [0, *(int(at) + 1 for at in (codes[1:] != codes[:-1]).nonzero()[0])]
        for begin, end in zip(begins, [*begins[1:], len(batch)], strict=True):
            if end > begin:
                lines = batch["line"].slice(begin, end - begin).fill_null("")
                yield batch["file"][begin].as_py(), lines.cast(pa.string())


def _ended(reader: FileReader | None, document: list[pa.Array], done: int) -> Pieces:
    if reader is None:
        return
    if reader.file.is_log:
        yield from reader.read_rest(done)
    else:
        text = _joined(line for lines in document for line in lines.to_pylist())
        yield from in_process.read_file(reader, in_process.Content(text))
    yield reader.stats
