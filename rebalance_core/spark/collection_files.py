"""Files of a collection to evidence: logs in splits, compressed logs and documents whole.

The folder is mounted by driver and executors alike.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote

import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.text_lines import as_text
from rebalance_core.contracts.opening_state import EVIDENCE
from rebalance_core.ingest import in_process
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import GIVEN_GROUPS, CollectedFile, Collection
from rebalance_core.ingest.evidence_table import COUNTED, Pieces, pieces_of, stats_of
from rebalance_core.ingest.fact import Unread, unread
from rebalance_core.ingest.file_reader import FileReader, FileStats
from rebalance_core.ingest.opening_evidence import ContinuedCollection
from rebalance_core.ingest.parse import log_blocks
from rebalance_core.spark.evidence_chunks import (
    CHUNKS_DDL,
    evidence_chunks,
)
from rebalance_core.spark.read_tables import read_table

_LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop skips a line of this many bytes or more, end included, and only logs that it did."""
_GLOB = re.compile(r"([\\*?\[\]{}^])")


@dataclass(frozen=True)
class FileReaders:
    """Makes the reader of a file on any machine, by its path or its URI as Spark shows it."""

    readers: Mapping[str, FileReader]

    def reader(self, uri: str) -> FileReader:
        """Return a fresh reader: counts and clocks are those of one file or split."""
        reader = self.readers[uri if uri in self.readers else _path(uri)]
        return FileReader(reader.file, reader.zone, reader.brokers, reader.group_names)


def collection_evidence(
    spark: SparkSession, collection: Collection, assumed: Assumptions, buckets: int
) -> DataFrame:
    """Return evidence, refusals and counts of all files, as `CHUNKS_DDL`; lazy.

    A large log is read in splits: a line of a later split has ``file@byte`` of the split for its
    source. The state of an earlier run is included.
    """
    split: dict[str, FileReader] = {}
    whole: dict[str, FileReader] = {}
    for file in collection.own_files:
        if file.kind != GIVEN_GROUPS:
            readers = split if _is_split(file) else whole
            readers[str(collection.path_of(file))] = in_process.reader_of(collection, file, assumed)
    evidence = _whole_files(spark, FileReaders(whole), buckets)
    if isinstance(collection, ContinuedCollection):
        evidence = evidence.unionAll(_opening(spark, collection, buckets))
    return evidence.unionAll(_split_logs(spark, FileReaders(split), buckets)) if split else evidence


def _is_split(file: CollectedFile) -> bool:
    """Return True for a log that Spark splits; one task seeks to where an earlier run ended."""
    return file.is_log and not (file.gzipped or file.wrapping or file.begins_at)


def _opening(spark: SparkSession, collection: ContinuedCollection, buckets: int) -> DataFrame:
    """Return the evidence of an earlier run."""
    rows = read_table(spark, EVIDENCE, f"{collection.opening.place}/{EVIDENCE.name}")

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        pieces = pieces_of(collection.rows(batches))
        stated = (stats_of(piece) if piece.part == COUNTED else piece for piece in pieces)
        return evidence_chunks(stated, buckets)

    return rows.conformed.select(*EVIDENCE.column_names).mapInArrow(run, CHUNKS_DDL)


def long_lines(collection: Collection, stats: Iterable[FileStats]) -> Iterator[Unread]:
    """Yield the refusal of each file that lost a line in a split; its count gets it, too.

    Args:
        collection: what was read.
        stats: the stats of all its files, in order.
    """
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
    # a carriage return alone does not end a line, here as in the other reader
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


def _whole_files(spark: SparkSession, readers: FileReaders, buckets: int) -> DataFrame:
    """Read by the tasks themselves: a compressed log streams, whatever it unpacks to."""
    paths = spark.createDataFrame([(path,) for path in sorted(readers.readers)], "path STRING")
    return paths.mapInArrow(
        lambda batches: evidence_chunks(read_whole_files(batches, readers), buckets), CHUNKS_DDL
    )


def read_splits(batches: Iterable[pa.RecordBatch], readers: FileReaders) -> Pieces:
    """Yield the evidence of splits of logs; the lines of a split are consecutive and in order.

    Args:
        batches: columns line (octets), path and start (byte at which the split begins).
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
    """Return the rows at which another split begins."""
    if batch.num_rows < 2:
        return []
    changed = pc.or_(
        pc.not_equal(batch["path"].slice(1), batch["path"].slice(0, batch.num_rows - 1)),
        pc.not_equal(batch["start"].slice(1), batch["start"].slice(0, batch.num_rows - 1)),
    )
    return [int(row) + 1 for row in pc.indices_nonzero(changed).to_pylist()]


def read_whole_files(batches: Iterable[pa.RecordBatch], readers: FileReaders) -> Pieces:
    """Yield the evidence of compressed logs and of documents.

    Args:
        batches: column path.
        readers: the readers of the files.
    """
    for batch in batches:
        for path in batch["path"].to_pylist():
            reader = readers.reader(path)
            yield from in_process.read_file(reader, Path(path))
            yield reader.stats


def _locations(readers: FileReaders) -> list[str]:
    """Return paths as Spark's readers take them: local, with characters of globs escaped."""
    return ["file://" + _GLOB.sub(r"\\\1", path) for path in sorted(readers.readers)]


def _path(uri: str) -> str:
    return unquote(re.sub(r"^file:/+", "/", uri))
