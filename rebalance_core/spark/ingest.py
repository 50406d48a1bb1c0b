"""Ingest on a cluster: tasks read the files, others combine what they say of each group and
topic.
"""

from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.packed_rows import by_bucket, pack, unpack
from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.ingest.clock_offsets import ClockShifts, clock_shifts, offset_findings
from rebalance_core.ingest.clock_zones import Shifts, corrected, in_step, zone_findings, zone_shifts
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.ingest.coverage import coverage_rows
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.evidence import Evidence
from rebalance_core.ingest.evidence_table import COUNTED, REFUSED, pieces_of, stats_of
from rebalance_core.ingest.file_findings import file_findings
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.group_tables import of_cluster, once, rejected_row, sequenced, tables_of
from rebalance_core.ingest.in_process import (
    context_of,
    given_groups,
    is_of,
    total_stats,
    whole_refusals,
)
from rebalance_core.ingest.observed_facts import cluster_facts
from rebalance_core.ingest.rows import ORDER, Row, Tables
from rebalance_core.process.ingest import IngestCounts, IngestWritten
from rebalance_core.spark.collection_evidence import (
    DRIVER,
    collection_evidence,
    evidence_of_buckets,
    long_lines,
)
from rebalance_core.spark.older_sparks import by_number
from rebalance_core.spark.own_pieces import in_tasks
from rebalance_core.spark.routed_rows import ROUTED_DDL, ROUTED_SCHEMA, routed_batch, routed_tables
from rebalance_core.spark.sources import cores_of, frame_of, rows_of
from rebalance_core.spark.task_tables import TableRows, kept_tables, task_tables

# What tasks make of evidence: rows on groups and topics, then tables in their final form.
#
# In between rows are shuffled: an event gets its sequence where all events of its moment are.

Batches = Iterable[pa.RecordBatch]

_EVENTS = "cluster_events"
_ROWS_AT_ONCE = 20_000


@dataclass(frozen=True, slots=True)
class Assembling:
    """From evidence to rows that lack only the sequence of events; they stay in their bucket.

    Attributes:
        context: Of the cluster.
        buckets: How many there are.
        whole: Files that were refused as a whole: their lines make no rows of ``rejected``.
        shifts: What has to be added to the times of files, by file.
        clocks: The same, of hosts whose clocks are off.
    """

    context: ClusterContext
    buckets: int
    whole: frozenset[str] = frozenset()
    shifts: Shifts = field(default_factory=dict)
    clocks: ClockShifts = field(default_factory=ClockShifts)

    def __call__(self, batches: Batches) -> Iterator[pa.RecordBatch]:
        """The rows of all groups and topics of a task, as `ROUTED_DDL`."""
        for bucket, keys in evidence_of_buckets(batches):
            waiting: Tables = {}
            for part, key, evidence in keys:
                pieces = corrected(evidence, self.shifts) if self.shifts else evidence
                pieces = self.clocks.corrected(pieces) if self.clocks else pieces
                if part == REFUSED and self.whole:
                    pieces = (piece for piece in evidence if not is_of(piece.source, self.whole))
                for name, rows in tables_of(part, key, pieces, self.context).items():
                    waiting.setdefault(name, []).extend(rows)
                if sum(map(len, waiting.values())) >= _ROWS_AT_ONCE:
                    yield from self.routed(waiting, bucket)
                    waiting = {}
            yield from self.routed(waiting, bucket)

    def routed(self, tables: Tables, bucket: int) -> Iterator[pa.RecordBatch]:
        """Rows of whole groups and topics, as `ROUTED_DDL`; events in the bucket of their second.

        Args:
            tables: By name.
            bucket: Of all other rows.
        """
        for name, rows in once(tables).items():
            for begin in range(0, len(rows), _ROWS_AT_ONCE):
                some = of_cluster(name, rows[begin : begin + _ROWS_AT_ONCE], self.context.cluster)
                made = pa.Table.from_batches([batch_of_rows(INGESTED_TABLES[name], some)])
                if name != _EVENTS:
                    yield routed_batch(bucket, name, pack(made))
                    continue
                for number, part in self._by_second(made, some):
                    yield routed_batch(number, name, pack(part))

    def _by_second(self, events: pa.Table, rows: list[Row]) -> Iterator[tuple[int, pa.Table]]:
        orders = pa.array([row.get(ORDER, 0) for row in rows], pa.int32())
        seconds = np.asarray(pc.divide(events["event_ms"], 1_000))
        yield from by_bucket(events.append_column(ORDER, orders), seconds % self.buckets)


def completing(batches: Batches, counts: IngestCounts) -> TableRows:
    """`Work` of `task_tables`: the tables of a task's rows; the note counts them."""
    for _, tables in routed_tables(batches):
        for name, rows in tables.items():
            for batch in rows.to_batches():
                counts.add(name, batch)
            if name == _EVENTS:
                events = sequenced(rows_of_arrow(rows))
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


@dataclass(frozen=True, eq=False)
class IngestedRows:
    """A collection that was read.

    Attributes:
        rows: What `completing` makes the tables of; lazy.
        stats: How each file was understood.
    """

    rows: DataFrame
    stats: tuple[FileStats, ...]


@contextmanager
def ingest(
    spark: SparkSession, collection: Collection, assumed: Assumptions | None = None
) -> Iterator[IngestedRows]:
    """Read every file of a collection once; what the files say is kept until the end."""
    assumed = assumed or Assumptions()
    size = sum(file.size * (_UNPACKED if file.gzipped else 1) for file in collection.files)
    buckets = max(cores_of(spark), -(-size // _BYTES_A_BUCKET))
    evidence = collection_evidence(spark, collection, assumed, buckets).persist()
    try:
        pieces = _pieces_of_driver(evidence)
        stats = total_stats(collection, (stats_of(p) for p in pieces if p.part == COUNTED))
        too_long = [*long_lines(collection, stats)]
        shifts = zone_shifts(collection, stats)
        stats = in_step(stats, shifts)
        clocks = clock_shifts(collection, stats)
        stats = in_step(stats, clocks.heads)
        zoned = corrected((p for p in pieces if p.part != COUNTED), shifts)
        of_cluster = [*clocks.corrected(zoned)]
        given, wrong = given_groups(collection)
        context = context_of(collection, of_cluster, stats, given, assumed)
        tables = broker_tables(of_cluster, context)
        tables["observed_facts"] = cluster_facts(collection, stats, of_cluster, context)
        tables["findings"] += file_findings(collection, stats, assumed, context)
        tables["findings"] += [*zone_findings(collection, shifts), *offset_findings(clocks)]
        tables["coverage"] = coverage_rows(collection, stats, assumed, context, clocks)
        whole = whole_refusals(stats)
        refused = (*collection.refused, *too_long, *wrong, *whole.values())
        tables["rejected"] = [rejected_row(piece) for piece in refused]
        assembling = Assembling(context, buckets, frozenset(whole), shifts, clocks)
        of_keys = by_number(evidence.where(sf.col("bucket") != DRIVER), buckets, "bucket")
        of_driver = pa.Table.from_batches(assembling.routed(tables, 0), ROUTED_SCHEMA)
        rows = of_keys.mapInArrow(in_tasks(assembling), ROUTED_DDL).unionAll(
            frame_of(spark, of_driver, ROUTED_DDL)
        )
        yield IngestedRows(by_number(rows, buckets, "bucket"), tuple(stats))
    finally:
        evidence.unpersist()


def _pieces_of_driver(evidence: DataFrame) -> list[Evidence]:
    chunks = rows_of(evidence.where(sf.col("bucket") == DRIVER).select("chunk"))
    tables = (unpack(row["chunk"]) for row in chunks)
    return list(pieces_of(batch for table in tables for batch in table.to_batches()))


# A whole ingest: read a collection and write its tables, or make them without writing.


def ingest_and_write(
    session: SparkSession,
    collection: Collection,
    output: str,
    assumed: Assumptions | None = None,
    *,
    before_writing: Callable[[], object] | None = None,
) -> IngestWritten:
    """Read a collection and write its tables; what is kept meanwhile is released.

    Args:
        session: Any session.
        collection: `open_collection` of a folder that driver and executors mount.
        output: Path or URI of a folder, which gets the tables; none of them may be there.
        assumed: What is taken for granted where no file says it.
        before_writing: Called once every file is read, before the first table is written.

    Raises:
        OutputExists: A table is in the folder already.
    """
    with ingest(session, collection, assumed) as ingested:
        if before_writing is not None:
            before_writing()
        with task_tables(session, output, tuple(INGESTED_TABLES)) as tables:
            names = tuple(INGESTED_TABLES)
            counts = tables.make(ingested.rows, completing, IngestCounts, names)
            written = tables.finish()
    return IngestWritten(written, ingested.stats, counts)


@contextmanager
def ingested_tables(
    session: SparkSession, collection: Collection, assumed: Assumptions | None = None
) -> Iterator[dict[str, DataFrame]]:
    """The tables of a collection, lazy, with the contract's columns; kept until the end."""
    with (
        ingest(session, collection, assumed) as ingested,
        closing(kept_tables(ingested.rows, completing, IngestCounts)) as kept,
    ):
        yield {name: kept.rows(name) for name in INGESTED_TABLES}
