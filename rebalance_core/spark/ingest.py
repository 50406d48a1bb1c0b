"""Ingest on a cluster: tasks read files (logs in splits, compressed logs and documents whole),
others combine what they say of each group and cluster.
"""

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from itertools import groupby, pairwise
from operator import itemgetter
from pathlib import Path
from typing import cast
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.packed_rows import bucket_of, by_bucket, by_key, pack, unpack
from rebalance_core.checks.text_rows import as_text
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.fact_declaration import CLUSTER
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.ingest import in_process
from rebalance_core.ingest.collection import GIVEN_GROUPS, Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.evidence_table import (
    COUNTED,
    REFUSED,
    Pieces,
    evidence_batches,
    pieces_of,
    stats_of,
)
from rebalance_core.ingest.fact import Unread, unread
from rebalance_core.ingest.file_reader import FileReader, FileStats
from rebalance_core.ingest.group_tables import of_cluster, once, sequenced
from rebalance_core.ingest.parse import log_lines
from rebalance_core.ingest.renamed_groups import other_names
from rebalance_core.ingest.rows import ORDER, Event, Tables, by_name, merged
from rebalance_core.ingest.whole_cluster import KeyedEvidence, WholeCluster
from rebalance_core.process.ingested_rows import IngestCounts
from rebalance_core.process.runtime import Part, TableRows
from rebalance_core.spark.older_sparks import by_number
from rebalance_core.spark.own_pieces import in_tasks
from rebalance_core.spark.routed_rows import ROUTED_DDL, ROUTED_SCHEMA, routed_batch, routed_tables
from rebalance_core.spark.sources import cores_of, frame_of, rows_of
from rebalance_core.spark.task_tables import kept_tables

# Files of a collection to evidence: logs in splits, compressed logs and documents whole.

# Evidence on its way to the task that puts it together: packed, with the number of its bucket.

CHUNKS_DDL = "bucket INT, chunk BINARY"
DRIVER = -1
"""The bucket of what the driver has to know: evidence on the cluster, and counts."""

_ROWS_OF_ITS_OWN = 512
"""A group or topic with as many in a batch has a chunk of its own."""

_SCHEMA = pa.schema([("bucket", pa.int32()), ("chunk", pa.binary())])


def evidence_chunks(pieces: Pieces, buckets: int) -> Iterator[pa.RecordBatch]:
    """The pieces as `CHUNKS_DDL`; all that concerns one group or topic has the same bucket.

    Args:
        pieces: What a task read.
        buckets: How many there are.
    """
    for batch in evidence_batches(pieces):
        parts, keys, sources = (batch[name].to_pylist() for name in ("part", "key", "source"))
        often = {key for key, times in Counter(keys).items() if times >= _ROWS_OF_ITS_OWN}
        numbers: dict[tuple[int, str], int] = {}
        number = []
        for part, key, source in zip(parts, keys, sources, strict=True):
            chunk = _bucket(part, key, source, buckets), f"{part} {key}" if key in often else ""
            number.append(numbers.setdefault(chunk, len(numbers)))
        rows = by_bucket(pa.Table.from_batches([batch]), np.array(number))
        columns = [bucket for bucket, _ in numbers], [pack(part) for _, part in rows]
        arrays = [pa.array(c, f.type) for c, f in zip(columns, _SCHEMA, strict=True)]
        yield pa.RecordBatch.from_arrays(arrays, schema=_SCHEMA)


def _bucket(part: str, key: str, source: str, buckets: int) -> int:
    if part in (CLUSTER, COUNTED):
        return DRIVER
    return bucket_of((part, source if part == REFUSED else key), buckets)


def evidence_of_buckets(
    batches: Iterable[pa.RecordBatch],
) -> Iterator[tuple[int, Iterator[tuple[str, str, Iterator[Evidence]]]]]:
    """Each bucket in a task, and part, key and evidence of each group and topic in it.

    A bucket is unpacked when its first key is asked for.
    """
    chunks = sorted(
        (row for batch in batches for row in batch.to_pylist()), key=itemgetter("bucket")
    )
    for bucket, of_bucket in groupby(chunks, key=itemgetter("bucket")):
        yield bucket, _by_key(row["chunk"] for row in of_bucket)


def _by_key(chunks: Iterable[bytes]) -> Iterator[tuple[str, str, Iterator[Evidence]]]:
    """A group may have a million pieces: chunks of its own stay packed until they are its turn."""
    keys: dict[tuple[str, ...], list[bytes | pa.Table]] = {}
    for chunk in chunks:
        split = [*by_key(unpack(chunk), ("part", "key"))]
        for name, rows in split:
            keys.setdefault(name, []).append(chunk if len(split) == 1 else rows)
    for part, key in sorted(keys):
        yield part, key, pieces_of(_batches(keys.pop((part, key))))


def _batches(parts: list[bytes | pa.Table]) -> Iterator[pa.RecordBatch]:
    for part in parts:
        yield from (unpack(part) if isinstance(part, bytes) else part).to_batches()


# Files of a collection to evidence: logs in splits, compressed logs and documents whole.
#
# The folder is mounted by driver and executors alike.

_LONGEST_LINE = "mapreduce.input.linerecordreader.line.maxlength"
"""Hadoop passes over a line of as many bytes, its end among them, and says so in a log only."""
_GLOB = re.compile(r"([\\*?\[\]{}^])")


@dataclass(frozen=True)
class FileReaders:
    """Makes the reader of a file on any machine, by its path or its URI as Spark shows it."""

    readers: Mapping[str, FileReader]

    def of(self, uri: str) -> FileReader:
        """A fresh reader: counts and clocks are one file's, or one split's."""
        known = self.readers[uri if uri in self.readers else _path(uri)]
        return FileReader(known.file, known.zone, known.brokers, known.group_names)


def collection_evidence(
    spark: SparkSession, collection: Collection, assumed: Assumptions, buckets: int
) -> DataFrame:
    """Evidence, refusals and counts of all files, as `CHUNKS_DDL`. Lazy; nothing is collected.

    A large log is read in splits: a line of a later split has ``file@byte`` of the split for its
    source.
    """
    split: dict[str, FileReader] = {}
    whole: dict[str, FileReader] = {}
    for file in collection.files:
        if file.kind != GIVEN_GROUPS:
            readers = split if file.is_log and not file.gzipped and not file.wrapping else whole
            readers[str(collection.path_of(file))] = in_process.reader_of(collection, file, assumed)
    evidence = _whole_files(spark, FileReaders(whole), buckets)
    return evidence.unionAll(_split_logs(spark, FileReaders(split), buckets)) if split else evidence


def long_lines(collection: Collection, stats: Iterable[FileStats]) -> Iterator[Unread]:
    """The refusal of each file in splits of which a line was passed over; its count gets it, too.

    Args:
        collection: what was read.
        stats: of all its files, in order.
    """
    counts = {one.name: one for one in stats}
    for file in collection.files:
        one = counts.get(file.name)
        in_splits = file.is_log and not file.gzipped and not file.wrapping
        if one is not None and in_splits and file.size - one.line_bytes > log_lines.LINE_LIMIT:
            refusal = log_lines.long_line()
            one.rejected += 1
            one.codes[refusal.code] = one.codes.get(refusal.code, 0) + 1
            one.unreadable = refusal.code
            yield unread(file.name, file.name, refusal)


def _split_logs(spark: SparkSession, readers: FileReaders, buckets: int) -> DataFrame:
    # a carriage return alone ends no line, here as in the other way of reading
    reader = spark.read.option("lineSep", "\n").option(_LONGEST_LINE, log_lines.LINE_LIMIT + 2)
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
    """Evidence of splits of logs; the lines of one are consecutive and in order.

    Args:
        batches: columns line (octets), path and start (byte at which the split begins).
        readers: of the files.
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
                split, reader, done = current, readers.of(current[0]), 0
                reader.stats.begins = current[1]
            lines, _ = as_text(batch["line"].slice(begin, end - begin))
            reader.stats.line_bytes += len(lines) + (pc.sum(pc.binary_length(lines)).as_py() or 0)
            yield from reader.read_lines(lines, done, current[1])
            done += len(lines)
    if reader is not None:
        yield reader.stats


def _changes(batch: pa.RecordBatch) -> list[int]:
    """Rows at which another split begins."""
    if batch.num_rows < 2:
        return []
    changed = pc.or_(
        pc.not_equal(batch["path"].slice(1), batch["path"].slice(0, batch.num_rows - 1)),
        pc.not_equal(batch["start"].slice(1), batch["start"].slice(0, batch.num_rows - 1)),
    )
    return [int(row) + 1 for row in pc.indices_nonzero(changed).to_pylist()]


def read_whole_files(batches: Iterable[pa.RecordBatch], readers: FileReaders) -> Pieces:
    """Evidence of compressed logs and of documents.

    Args:
        batches: column path.
        readers: of the files.
    """
    for batch in batches:
        for path in batch["path"].to_pylist():
            reader = readers.of(path)
            yield from in_process.read_file(reader, Path(path))
            yield reader.stats


def _locations(readers: FileReaders) -> list[str]:
    """Paths as Spark's readers take them: local, with what a glob would read otherwise escaped."""
    return ["file://" + _GLOB.sub(r"\\\1", path) for path in sorted(readers.readers)]


def _path(uri: str) -> str:
    return unquote(re.sub(r"^file:/+", "/", uri))


# Ingest on a cluster: tasks read the files, others combine what they say of each group and topic.

# What tasks make of evidence: rows on groups and topics, then tables in their final form.
#
# In between rows are shuffled: an event gets its sequence where all events of its moment are.

Batches = Iterable[pa.RecordBatch]

_EVENTS = "cluster_events"
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class AssembleTask:
    """From evidence to rows that lack only the sequence of events; they stay in their bucket.

    Attributes:
        keyed: What becomes of the evidence.
        buckets: How many there are.
    """

    keyed: KeyedEvidence
    buckets: int

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The rows of all groups and topics of a task, as `ROUTED_DDL`."""
        for bucket, keys in evidence_of_buckets(batches):
            waiting: list[Tables] = []
            rows = 0
            for part, key, evidence in keys:
                waiting.append(self.keyed.tables(part, key, evidence))
                rows += sum(map(len, by_name(waiting[-1]).values()))
                if rows >= _ROWS_AT_ONCE:
                    yield from self.routed(merged(*waiting), bucket)
                    waiting, rows = [], 0
            yield from self.routed(merged(*waiting), bucket)

    def routed(self, tables: Tables, bucket: int) -> Iterator[pa.RecordBatch]:
        """Rows of whole groups and topics, as `ROUTED_DDL`; events in the bucket of their second.

        Args:
            tables: By name.
            bucket: Of all other rows.
        """
        for name, rows in by_name(once(tables)).items():
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                some = of_cluster(
                    name, rows[begin : begin + _ROWS_AT_ONCE], self.keyed.context.cluster
                )
                made = pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], some)])
                if name != _EVENTS:
                    yield routed_batch(bucket, name, pack(made))
                    continue
                for number, part in self._by_second(made, some):
                    yield routed_batch(number, name, pack(part))

    def _by_second(
        self, events: pa.Table, rows: list[dict[str, object]]
    ) -> Iterator[tuple[int, pa.Table]]:
        orders = pa.array([row.get(ORDER, 0) for row in rows], pa.int32())
        seconds = np.asarray(pc.divide(events["event_ms"], 1_000))
        yield from by_bucket(events.append_column(ORDER, orders), seconds % self.buckets)


def completing(parts: Iterable[Part], counts: IngestCounts) -> TableRows:
    """`Work`: the tables of a task's rows; its facts count them."""
    for _, tables in parts:
        for name, rows in tables.items():
            for batch in rows.to_batches():
                counts.add(name, batch)
            if name == _EVENTS:
                events = sequenced(cast("list[Event]", rows_of_arrow(rows)))
                yield name, batch_of_rows(INGESTED_TABLES[name], events)
            else:
                yield from ((name, batch) for batch in rows.to_batches())


# A collection to input and observed tables: files and groups spread over the cluster.
#
# The same functions as `rebalance_core.ingest.in_process` calls in one process. Tasks read the
# files; the driver learns what the whole cluster has to know, which grows with files and brokers
# only; tasks that have all evidence on a group or topic make its rows.

_BYTES_A_BUCKET = 64 << 20
_UNPACKED = 10
"""A log is so many times as large as its .gz, about."""


@contextmanager
def ingest(
    spark: SparkSession, collection: Collection, assumed: Assumptions
) -> Iterator[tuple[DataFrame, tuple[FileStats, ...]]]:
    """Read every file of a collection once; what the files say is kept until the end.

    Gives the rows of which `completing` makes the tables, lazy, and how each file was understood.
    """
    size = sum(file.size * (_UNPACKED if file.gzipped else 1) for file in collection.files)
    buckets = max(cores_of(spark), -(-size // _BYTES_A_BUCKET))
    evidence = collection_evidence(spark, collection, assumed, buckets).persist()
    try:
        pieces, stats = _known_to_driver(evidence, collection)
        names = other_names(stats)
        if names:  # all evidence on a group has the bucket of its name
            evidence.unpersist()
            collection = replace(collection, other_names=names)
            evidence = collection_evidence(spark, collection, assumed, buckets).persist()
            pieces, stats = _known_to_driver(evidence, collection)
        too_long = [*long_lines(collection, stats)]
        of_cluster = (piece for piece in pieces if piece.part != COUNTED)
        cluster = WholeCluster.of(collection, stats, of_cluster, assumed, too_long)
        assembling = AssembleTask(cluster.keyed, buckets)
        of_keys = by_number(evidence.where(sf.col("bucket") != DRIVER), buckets, "bucket")
        of_driver = pa.Table.from_batches(assembling.routed(cluster.tables, 0), ROUTED_SCHEMA)
        rows = of_keys.mapInArrow(in_tasks(assembling), ROUTED_DDL).unionAll(
            frame_of(spark, of_driver, ROUTED_DDL)
        )
        yield by_number(rows, buckets, "bucket"), cluster.stats
    finally:
        evidence.unpersist()


def _known_to_driver(
    evidence: DataFrame, collection: Collection
) -> tuple[list[Evidence], list[FileStats]]:
    """Evidence on the cluster, and how each file was understood."""
    pieces = _pieces_of_driver(evidence)
    counts = (stats_of(p) for p in pieces if p.part == COUNTED)
    return pieces, in_process.total_stats(collection, counts)


def _pieces_of_driver(evidence: DataFrame) -> list[Evidence]:
    chunks = rows_of(evidence.where(sf.col("bucket") == DRIVER).select("chunk"))
    tables = (unpack(row["chunk"]) for row in chunks)
    return list(pieces_of(batch for table in tables for batch in table.to_batches()))


@contextmanager
def ingested_tables(
    session: SparkSession, collection: Collection, assumed: Assumptions | None = None
) -> Iterator[dict[str, DataFrame]]:
    """The tables of a collection, lazy, with the contract's columns; kept until the end."""

    def complete(batches: Batches, counts: IngestCounts) -> TableRows:
        return completing(routed_tables(batches), counts)

    with (
        ingest(session, collection, assumed or Assumptions()) as (rows, _),
        closing(kept_tables(rows, complete, IngestCounts)) as kept,
    ):
        yield {name: kept.rows(name) for name in INGESTED_TABLES}
