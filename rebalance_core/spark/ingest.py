"""Turns a collection into input and observed tables, with files and groups distributed over the
cluster.

It calls the same functions as `rebalance_core.ingest.in_process`. Tasks read the files. The driver
gets the evidence about the whole cluster, which grows only with files and brokers. The task that
has all evidence about a group or topic makes its rows.
"""

from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.packed_rows import unpack
from rebalance_core.contracts import COLLECTED_TABLES
from rebalance_core.ingest import in_process
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection, open_collection
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.evidence_table import (
    COUNTED,
    pieces_of,
    stats_of,
)
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.renamed_groups import other_names
from rebalance_core.ingest.whole_cluster import WholeCluster
from rebalance_core.process.ingested_rows import IngestCounts
from rebalance_core.process.runtime import TableRows
from rebalance_core.process.stage_rows import RowsSeen
from rebalance_core.spark.assembled_rows import AssembleTask, Batches, completing
from rebalance_core.spark.collection_files import (
    UNPACKED,
    collection_evidence,
    long_lines,
    refuse_unread,
)
from rebalance_core.spark.evidence_chunks import DRIVER
from rebalance_core.spark.hadoop_folder import HadoopPlace
from rebalance_core.spark.plugins import in_tasks
from rebalance_core.spark.routed_rows import ROUTED_DDL, ROUTED_SCHEMA, routed_tables
from rebalance_core.spark.sources import cores_of, frame_of, rows_of
from rebalance_core.spark.spark_versions import by_number
from rebalance_core.spark.stages import described
from rebalance_core.spark.task_tables import kept_tables
from rebalance_core.storage.place import is_direct

_BYTES_A_BUCKET = 64 << 20


@dataclass(frozen=True)
class ReadHere:
    """The files of a collection, after reading on Spark.

    Attributes:
        rows: The lazy rows from which `completing` makes the tables.
        evidence: The kept facts in the files, as `evidence_chunks.CHUNKS_DDL`.
        stats: How each file was understood.
        end_ms: The end of the collection.
        left_out: Ignored files that belong to others.
    """

    rows: DataFrame
    evidence: DataFrame
    stats: tuple[FileStats, ...]
    end_ms: int
    left_out: frozenset[str]


@contextmanager
def ingest(
    spark: SparkSession, collection: Collection, assumed: Assumptions, *, progress: bool = True
) -> Iterator[ReadHere]:
    """Read every file of a collection once, keeping the facts until the block ends.

    ``progress`` states whether `queue_progress` is among the tables.

    Raises:
        InputRefused: as in `in_process.refuse_other_names`.
    """
    own = collection.own_files
    size = sum(file.size * (UNPACKED if file.gzipped else 1) for file in own)
    buckets = max(cores_of(spark), -(-size // _BYTES_A_BUCKET))
    evidence = collection_evidence(spark, collection, assumed, buckets).persist()
    try:
        pieces, stats = _known_to_driver(evidence, collection)
        names = () if collection.other_names else other_names(stats)
        if names:  # the bucket of a group's name has all evidence about it
            in_process.refuse_other_names(collection, names)
            evidence.unpersist()
            collection = replace(collection, other_names=names)
            evidence = collection_evidence(spark, collection, assumed, buckets).persist()
            pieces, stats = _known_to_driver(evidence, collection)
        too_long = [*long_lines(collection, stats)]
        of_cluster = (piece for piece in pieces if piece.part != COUNTED)
        cluster = WholeCluster.from_files(collection, stats, of_cluster, assumed, too_long)
        assembling = AssembleTask(cluster.keyed, buckets, progress)
        of_keys = by_number(evidence.where(sf.col("bucket") != DRIVER), buckets, "bucket")
        of_driver = pa.Table.from_batches(assembling.routed(cluster.tables, 0), ROUTED_SCHEMA)
        rows = of_keys.mapInArrow(in_tasks(assembling), ROUTED_DDL).unionAll(
            frame_of(spark, of_driver, ROUTED_DDL)
        )
        made = by_number(rows, buckets, "bucket")
        keyed = cluster.keyed
        yield ReadHere(made, evidence, cluster.stats, keyed.context.end_ms, keyed.strangers)
    finally:
        evidence.unpersist()


def _known_to_driver(
    evidence: DataFrame, collection: Collection
) -> tuple[list[Evidence], list[FileStats]]:
    """Return the evidence about the cluster, and how each file was understood."""
    with described(evidence.sparkSession, f"read {len(collection.own_files):,} files"):
        pieces = _pieces_of_driver(evidence)
    counts = [stats_of(p) for p in pieces if p.part == COUNTED]
    refuse_unread(collection, {count.name for count in counts})
    return pieces, in_process.total_stats(collection, counts)


def _pieces_of_driver(evidence: DataFrame) -> list[Evidence]:
    chunks = rows_of(evidence.where(sf.col("bucket") == DRIVER).select("chunk"))
    tables = (unpack(row["chunk"]) for row in chunks)
    return list(pieces_of(batch for table in tables for batch in table.to_batches()))


def collection_at(spark: SparkSession, location: str) -> Collection:
    """Return the collection at a path or URL, through Hadoop if nothing else reaches it.

    Raises:
        InputRefused: as for `open_collection`.
        UsageError: only Hadoop reaches it, and the session is Spark Connect.
    """
    return open_collection(location if is_direct(location) else HadoopPlace(location, spark))


@contextmanager
def ingested_tables(
    session: SparkSession, collection: Collection, assumed: Assumptions | None = None
) -> Iterator[dict[str, DataFrame]]:
    """Yield the lazy tables of a collection with the contract's columns, kept until the block
    ends.
    """

    def complete(batches: Batches, counts: IngestCounts, seen: RowsSeen) -> TableRows:
        return completing(seen.taken(routed_tables(batches)), counts)

    with (
        ingest(session, collection, assumed or Assumptions(), progress=False) as read,
        closing(kept_tables(read.rows, complete, IngestCounts)) as kept,
    ):
        yield {name: kept.rows(name) for name in COLLECTED_TABLES}
