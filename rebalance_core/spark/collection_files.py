"""Reads the files of a collection into evidence: logs in splits, compressed logs and documents as a
whole.

A local folder is mounted on the driver and on all executors. Tasks read object stores, and write to
them, with the driver's credentials. Spark reads what only Hadoop can reach.
"""

from __future__ import annotations

import heapq
import re
from collections.abc import Collection as AnyCollection
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import PurePosixPath
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.text_lines import as_text
from rebalance_core.contracts.opening_state import EVIDENCE
from rebalance_core.contracts.paths import hidden, is_local
from rebalance_core.ingest import in_process
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import GIVEN_GROUPS, CollectedFile, Collection
from rebalance_core.ingest.evidence_table import COUNTED, Pieces, pieces_of, stats_of
from rebalance_core.ingest.fact import Unread, Unreadable, unread
from rebalance_core.ingest.file_reader import FileReader, FileStats
from rebalance_core.ingest.opening_evidence import ContinuedCollection
from rebalance_core.ingest.parse import log_blocks
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.evidence_chunks import (
    CHUNKS_DDL,
    evidence_chunks,
)
from rebalance_core.spark.framed_lines import FramedLines, read_lines
from rebalance_core.spark.hadoop_folder import HadoopPlace
from rebalance_core.spark.read_tables import read_table
from rebalance_core.spark.sources import frame_of
from rebalance_core.spark.spark_versions import by_number
from rebalance_core.storage.access import HadoopAccess
from rebalance_core.storage.files_to_read import FolderToRead
from rebalance_core.storage.place import Place, object_store

_LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop skips a line of at least this many bytes, its end included, and only logs that it did."""
_FILE_WEIGHT = 32 << 10
"""Number of bytes that can be read in the time it takes to open a file."""
_GLOB = re.compile(r"([\\*?\[\]{}^])")


_RANGE_BYTES = 64 << 20
"""Number of bytes of a log in an object store that one task reads at a time."""
UNPACKED = 10
"""The approximate size of a log, as a multiple of its .gz."""


@dataclass(frozen=True)
class FileReaders:
    """Makes the reader of a file on any machine, given its path or its URI as Spark shows it.

    Attributes:
        readers: By `storage.place.Place.url` of the file.
        root: The collection's folder, if tasks can reach it; it holds the credentials for its
            files.
    """

    readers: Mapping[str, FileReader]
    root: Place | None = None

    def place(self, url: str) -> Place:
        """Return the place of a file."""
        if self.root is None:
            raise AssertionError(f"tasks do not reach {url}")
        return self.root / url.removeprefix(f"{self.root.url.rstrip('/')}/")

    def reader(self, uri: str) -> FileReader:
        """Return a new reader, whose counts and clocks belong to one file or split."""
        reader = self.readers[uri if uri in self.readers else _path(uri)]
        return FileReader(reader.file, reader.zone, reader.brokers, reader.group_names)


def collection_evidence(
    spark: SparkSession, collection: Collection, assumed: Assumptions, buckets: int
) -> DataFrame:
    """Return evidence, refusals and counts of all files, as `CHUNKS_DDL`; lazy.

    A large log is read in splits; the source of a line in a later split is the split's
    ``file@byte``. The state of an earlier run is included.
    """
    root = collection.root
    if isinstance(root, FramedLines):
        return _framed(root, collection, assumed, buckets)
    by_spark = not (isinstance(root, Place) and object_store(root))
    in_tasks = not by_spark or root.is_local
    limit = int(spark.conf.get(_WHOLE_LIMIT, None) or _WHOLE_MOST)
    split: dict[str, FileReader] = {}
    whole: dict[str, FileReader] = {}
    refused: list[Unread | FileStats] = []
    for file in collection.own_files:
        if file.kind == GIVEN_GROUPS:
            continue
        reader = in_process.reader_of(collection, file, assumed)
        refusal = None if in_tasks else _refusal(file, limit)
        if refusal is not None:
            refused += [reader.refuse(refusal), reader.stats]
            continue
        readers = split if by_spark and _is_split(file) else whole
        readers[_qualified(spark, collection.path_of(file))] = reader
    if in_tasks and isinstance(root, Place):
        evidence = _files(spark, FileReaders(whole, root), buckets)
    else:
        evidence = _files_of_hadoop(spark, FileReaders(whole), buckets)
    if refused:
        rows = pa.Table.from_batches(evidence_chunks(refused, buckets))
        evidence = evidence.unionAll(frame_of(spark, rows, CHUNKS_DDL))
    if isinstance(collection, ContinuedCollection):
        evidence = evidence.unionAll(_opening(spark, collection, buckets))
    if split:
        evidence = evidence.unionAll(_split_logs(spark, FileReaders(split), buckets))
    return evidence


def _framed(
    root: FramedLines, collection: Collection, assumed: Assumptions, buckets: int
) -> DataFrame:
    """Return the evidence of lines that are rows; all lines of a file are in one task."""
    readers = {
        file.name: in_process.reader_of(collection, file, assumed)
        for file in collection.own_files
        if file.kind != GIVEN_GROUPS
    }
    rows = root.lines.repartition(buckets, "file").sortWithinPartitions("file", "number")
    return rows.mapInArrow(
        lambda batches: evidence_chunks(read_lines(batches, readers), buckets), CHUNKS_DDL
    )


def _qualified(spark: SparkSession, place: FolderToRead) -> str:
    """Return the path of a local file, or the URL that identifies its rows."""
    if isinstance(place, HadoopPlace):
        return place.qualified
    if isinstance(place, Place) and isinstance(place.access, HadoopAccess):
        return HadoopPlace(place.url, spark).qualified
    return place.url


def _is_split(file: CollectedFile) -> bool:
    """Return True for a log that Spark splits: not one that continues where an earlier run ended,
    nor one whose name makes Spark skip it.
    """
    whole = file.gzipped or file.wrapping or file.begins_at or _is_skipped(file)
    return file.is_log and not whole


def _is_skipped(file: CollectedFile) -> bool:
    return hidden(PurePosixPath(file.name).name)


_WHOLE_LIMIT = "spark.sql.sources.binaryFile.maxLength"
_WHOLE_MOST = (1 << 31) - 1
"""Its default."""


def _refusal(file: CollectedFile, limit: int) -> Unreadable | None:
    """Return why Spark cannot read a file through Hadoop, or None if it can.

    Args:
        file: of any kind.
        limit: the maximum size in bytes of a file that Spark reads as a whole.
    """
    if _is_skipped(file):
        why = "cannot be read: Spark skips names that begin with _ or .; rename the file"
        return Unreadable("UNREADABLE_FILE", why)
    if file.size > limit and not _is_split(file):
        why = f"has {file.size} bytes; Spark reads at most {limit} whole ({_WHOLE_LIMIT})"
        return Unreadable("TOO_LARGE", why)
    return None


def _in_ranges(readers: FileReaders, file: CollectedFile) -> bool:
    """Return True for a log in an object store that tasks read in parts."""
    return readers.root is not None and not readers.root.is_local and _is_split(file)


def _opening(spark: SparkSession, collection: ContinuedCollection, buckets: int) -> DataFrame:
    """Return the evidence of an earlier run."""
    rows = read_table(spark, EVIDENCE, f"{collection.opening.place}/{EVIDENCE.name}")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = pieces_of(collection.rows(batches))
        stated = (stats_of(piece) if piece.part == COUNTED else piece for piece in pieces)
        return evidence_chunks(stated, buckets)

    return rows.conformed.select(*EVIDENCE.column_names).mapInArrow(run, CHUNKS_DDL)


def refuse_unread(collection: Collection, read: AnyCollection[str]) -> None:
    """Raise `InputRefused` if Spark returned nothing from a file that is not empty.

    Args:
        collection: the collection.
        read: names of the files whose counts came back.
    """
    for file in collection.own_files:
        long_line = _is_split(file) and file.size > log_blocks.LINE_LIMIT  # see `long_lines`
        if file.size and file.kind != GIVEN_GROUPS and file.name not in read and not long_line:
            raise InputRefused(
                f"{collection.path_of(file)} has {file.size} bytes, and Spark returned none: see "
                "spark.sql.files.ignoreCorruptFiles and spark.sql.files.ignoreMissingFiles"
            )


def long_lines(collection: Collection, stats: Iterable[FileStats]) -> Iterator[Unread]:
    """Yield the refusal of each file that lost a line in a split, adding it to the file's count.

    Args:
        collection: the collection.
        stats: the stats of all its files, in order.
    """
    root = collection.root
    if isinstance(root, FramedLines) or (isinstance(root, Place) and object_store(root)):
        return  # its lines are counted where they are read
    counts = {file_stats.name: file_stats for file_stats in stats}
    for file in collection.own_files:
        file_stats = counts.get(file.name)
        if (
            file_stats is not None
            and _is_split(file)
            and file.size - file_stats.line_bytes > log_blocks.LINE_LIMIT
        ):
            refusal = log_blocks.long_line()
            file_stats.rejected += 1
            file_stats.codes[refusal.code] = file_stats.codes.get(refusal.code, 0) + 1
            file_stats.unreadable = refusal.code
            yield unread(file.name, file.name, refusal)


def _split_logs(spark: SparkSession, readers: FileReaders, buckets: int) -> DataFrame:
    # as in the other reader, a lone carriage return does not end a line
    reader = spark.read.option("lineSep", "\n").option(_LONGEST_LINE, log_blocks.LINE_LIMIT + 2)
    text = reader.text(_locations(readers))
    lines = text.select(
        sf.col("value").cast("BINARY").alias("line"),
        sf.col("_metadata.file_path").alias("path"),
        sf.col("_metadata.file_block_start").alias("start"),
    )
    return lines.mapInArrow(
        lambda batches: evidence_chunks(read_splits(batches, readers), buckets), CHUNKS_DDL
    )


def _files(spark: SparkSession, readers: FileReaders, buckets: int) -> DataFrame:
    """Read files in the tasks; a compressed log is streamed, whatever its unpacked size."""
    dealt = spark.createDataFrame(
        [(part, *piece) for part, piece in dealt_out(readers, buckets)],
        "part INT, path STRING, start BIGINT, bytes BIGINT",
    )
    return by_number(dealt, buckets, "part").mapInArrow(
        lambda batches: evidence_chunks(read_files(batches, readers), buckets), CHUNKS_DDL
    )


def _files_of_hadoop(spark: SparkSession, readers: FileReaders, buckets: int) -> DataFrame:
    """Read files through Spark, each as one row."""
    if not readers.readers:
        return spark.createDataFrame([], CHUNKS_DDL)
    files = spark.read.format("binaryFile").load(_locations(readers))
    rows = files.select(sf.col("_metadata.file_path").alias("path"), "content")
    return rows.mapInArrow(
        lambda batches: evidence_chunks(_read_contents(batches, readers), buckets), CHUNKS_DDL
    )


def _read_contents(batches: Iterable[pa.RecordBatch], readers: FileReaders) -> Pieces:
    for batch in batches:
        for path, content in zip(batch["path"].to_pylist(), batch["content"], strict=True):
            reader = readers.reader(path)
            yield from in_process.read_file(reader, in_process.Content(content.as_py()))
            yield reader.stats


def dealt_out(readers: FileReaders, parts: int) -> list[tuple[int, tuple[str, int, int | None]]]:
    """Return parts of equal work: each piece, largest first, goes to the part with the least work.

    Args:
        readers: Of the files.
        parts: The number of parts.

    Returns:
        For each piece, the number of its part, the file's URL, the byte at which it begins, and its
        number of bytes; None for a whole file.
    """
    pieces: list[tuple[int, tuple[str, int, int | None]]] = []
    for url, reader in readers.readers.items():
        file = reader.file
        if not _in_ranges(readers, file):
            pieces.append((_weight(file), (url, 0, None)))
            continue
        for start in range(0, file.size, _RANGE_BYTES):
            size = min(_RANGE_BYTES, file.size - start)
            pieces.append((size, (url, start, size)))
    loads = [(0, part) for part in range(parts)]
    dealt = []
    for weight, piece in sorted(pieces, key=lambda each: (-each[0], each[1][:2])):
        load, part = heapq.heappop(loads)
        heapq.heappush(loads, (load + weight + _FILE_WEIGHT, part))
        dealt.append((part, piece))
    return dealt


def _weight(file: CollectedFile) -> int:
    """Return the approximate number of bytes that a file unpacks to, without those skipped."""
    if file.gzipped:  # an earlier run's bytes are counted unpacked, and are unpacked again
        return file.size * UNPACKED
    return max(0, file.size - (file.begins_at - file.left_out))


def read_splits(batches: Iterable[pa.RecordBatch], readers: FileReaders) -> Pieces:
    """Yield the evidence of splits of logs; the lines of a split are consecutive and in order.

    Args:
        batches: columns line (bytes), path and start (byte at which the split begins).
        readers: the readers of the files.
    """
    split: tuple[str, int] | None = None
    reader: FileReader | None = None
    done = 0
    for batch in batches:
        starts = [0, *_changes(batch), batch.num_rows]
        for begin, end in pairwise(starts):
            if begin == end:
                continue
            current = (batch["path"][begin].as_py(), batch["start"][begin].as_py())
            if current != split or reader is None:
                if reader is not None:
                    yield reader.stats
                split, reader, done = current, readers.reader(current[0]), 0
                reader.stats.begins = current[1]
            lines, _ = as_text(batch["line"].slice(begin, end - begin))
            reader.stats.line_bytes += len(lines) + (pc.sum(pc.binary_length(lines)).as_py() or 0)
            yield from reader.read_lines(lines, done, current[1])
            done += len(lines)
    if reader is not None:
        yield reader.stats


def _changes(batch: pa.RecordBatch) -> list[int]:
    """Return the rows at which a new split begins."""
    if batch.num_rows < 2:
        return []
    changed = pc.or_(
        pc.not_equal(batch["path"].slice(1), batch["path"].slice(0, batch.num_rows - 1)),
        pc.not_equal(batch["start"].slice(1), batch["start"].slice(0, batch.num_rows - 1)),
    )
    return [int(row) + 1 for row in pc.indices_nonzero(changed).to_pylist()]


def read_files(batches: Iterable[pa.RecordBatch], readers: FileReaders) -> Pieces:
    """Yield the evidence in files and in parts of logs.

    Args:
        batches: columns path, start and bytes, as from `dealt_out`.
        readers: the readers of the files.
    """
    for batch in batches:
        for path, start, size in zip(*(batch[name].to_pylist() for name in _PIECE), strict=True):
            reader = readers.reader(path)
            place = readers.place(path)
            if size is None:
                yield from in_process.read_file(reader, place)
            else:
                yield from in_process.read_range(reader, place, start, size)
            yield reader.stats


_PIECE = ("path", "start", "bytes")


def _locations(readers: FileReaders) -> list[str]:
    """Return paths as Spark's readers expect them, with glob characters escaped."""
    escaped = (_GLOB.sub(r"\\\1", path) for path in sorted(readers.readers))
    return [f"file://{path}" if is_local(path) else path for path in escaped]


def _path(uri: str) -> str:
    return unquote(re.sub(r"^file:/+", "/", uri))
