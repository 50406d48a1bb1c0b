"""A collection to input and observed tables: files and groups spread over the cluster.

The same functions as `rebalance_core.ingest.in_process` calls in one process. Tasks read the files;
the driver learns what the whole cluster has to know, which grows with files and brokers only; tasks
that have all evidence on a group or topic make its rows.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.packed_rows import unpack
from rebalance_core.ingest.clock_zones import corrected, in_step, zone_findings, zone_shifts
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.collection.collection_settings import Assumptions
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.events.complete_tables import rejected_row
from rebalance_core.ingest.evidence.evidence import Evidence
from rebalance_core.ingest.evidence.evidence_table import COUNTED, pieces_of, stats_of
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.in_process import (
    context_of,
    given_groups,
    total_stats,
    whole_refusals,
)
from rebalance_core.ingest.observed.cluster_facts import cluster_facts
from rebalance_core.ingest.observed.file_findings import file_findings
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.engine.routed_rows import ROUTED_DDL, ROUTED_SCHEMA
from rebalance_core.spark.ingest.assembling_tasks import Assembling
from rebalance_core.spark.ingest.collection_evidence import collection_evidence, long_lines
from rebalance_core.spark.ingest.evidence_chunks import DRIVER
from rebalance_core.spark.task_count import cores_of

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
        of_cluster = [*corrected((p for p in pieces if p.part != COUNTED), shifts)]
        given, wrong = given_groups(collection)
        context = context_of(collection, of_cluster, stats, given, assumed)
        tables = broker_tables(of_cluster, context)
        tables["observed_facts"] = cluster_facts(collection, stats, of_cluster, context)
        tables["findings"] += file_findings(collection, stats, assumed, context)
        tables["findings"] += zone_findings(collection, shifts)
        whole = whole_refusals(stats)
        refused = (*collection.refused, *too_long, *wrong, *whole.values())
        tables["rejected"] = [rejected_row(piece) for piece in refused]
        assembling = Assembling(context, buckets, frozenset(whole), shifts)
        of_keys = (
            evidence.where(sf.col("bucket") != DRIVER)
            .repartitionById(buckets, sf.col("bucket"))
            .mapInArrow(assembling, ROUTED_DDL)
        )
        of_driver = pa.Table.from_batches(assembling.routed(tables, 0), ROUTED_SCHEMA)
        rows = of_keys.unionAll(spark.createDataFrame(of_driver, ROUTED_DDL))
        yield IngestedRows(rows.repartitionById(buckets, sf.col("bucket")), tuple(stats))
    finally:
        evidence.unpersist()


def _pieces_of_driver(evidence: DataFrame) -> list[Evidence]:
    chunks = rows_of(evidence.where(sf.col("bucket") == DRIVER).select("chunk"))
    tables = (unpack(row["chunk"]) for row in chunks)
    return list(pieces_of(batch for table in tables for batch in table.to_batches()))
