"""A collection to input and observed tables: files and groups spread over the cluster.

The same functions as `rebalance_core.ingest.in_process` calls in one process. The driver collects
only what grows with files and brokers: counts, and what the whole cluster has to know.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Self

import pyarrow as pa
from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf
from pyspark.sql.window import Window

from rebalance_core.contracts import INGESTED_TABLES, Table
from rebalance_core.contracts.fact_declaration import CLUSTER, COMMIT, GROUP, TOPIC
from rebalance_core.ingest.cluster_context import ClusterContext
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.events.broker_timeline import broker_tables
from rebalance_core.ingest.events.commit_rows import commit_row
from rebalance_core.ingest.events.complete_tables import REJECTED_TABLE, rejected_row
from rebalance_core.ingest.events.topic_timeline import topic_tables
from rebalance_core.ingest.evidence.evidence import Evidence, thinning_of
from rebalance_core.ingest.evidence.evidence_table import COUNTED, REFUSED, pieces_of
from rebalance_core.ingest.file_reader import FileStats
from rebalance_core.ingest.group_tables import group_tables
from rebalance_core.ingest.in_process import context_of, given_groups, total_stats
from rebalance_core.ingest.observed.cluster_facts import cluster_facts
from rebalance_core.ingest.observed.file_findings import file_findings
from rebalance_core.ingest.rows import ORDER, RANK, Row, Tables
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.ingest.assembled_rows import (
    ROWS_DDL,
    ROWS_SCHEMA,
    Assemble,
    assembling,
    row_batches,
)
from rebalance_core.spark.ingest.collection_evidence import collection_evidence


@dataclass(frozen=True, eq=False)
class IngestedCollection:
    """The tables, lazy, and how each file was understood. A context manager.

    ``tables`` has every table of `INGESTED_TABLES` with the contract's columns. ``kept``, what they
    are computed from, stays in memory and on disk until it is closed.
    """

    tables: dict[str, DataFrame]
    stats: tuple[FileStats, ...]
    kept: tuple[DataFrame, ...] = ()

    def close(self) -> None:
        """Release what is kept."""
        for frame in self.kept:
            frame.unpersist()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self.close()


def ingest(
    spark: SparkSession, collection: Collection, assumed: Assumptions | None = None
) -> IngestedCollection:
    """Read every file of a collection once and put together what they say.

    Evidence is kept once read, because every table is made of it; `IngestedCollection.close`
    releases it.
    """
    assumed = assumed or Assumptions()
    evidence = collection_evidence(spark, collection, assumed).persist()
    stats = total_stats(collection, _counts(evidence))
    given, wrong = given_groups(collection)
    cluster = _cluster_pieces(evidence)
    context = context_of(collection, cluster, stats, given, assumed)
    of_brokers = broker_tables(cluster, context)
    of_brokers["observed_facts"] = cluster_facts(collection, stats, cluster, context)
    of_brokers["findings"] += file_findings(collection, stats, assumed, context)
    rows = (
        _by_key(evidence, GROUP, assembling(group_tables, context))
        .unionByName(_by_key(evidence, TOPIC, assembling(topic_tables, context)))
        .unionByName(_from_driver(spark, of_brokers))
        .persist()
    )
    refused = [rejected_row(piece) for piece in (*collection.refused, *wrong)]
    parsed = {name: _parsed(rows, table, context) for name, table in INGESTED_TABLES.items()}
    tables = parsed | {
        "cluster_events": _sequenced(parsed["cluster_events"]),
        "queue_offsets": _newest(parsed["queue_offsets"], INGESTED_TABLES["queue_offsets"]),
        "committed_offsets": _commits(evidence, context),
        "rejected": _rejected(spark, evidence, refused),
    }
    return IngestedCollection(
        {name: tables[name].select(*table.column_names) for name, table in INGESTED_TABLES.items()},
        tuple(stats),
        (evidence, rows),
    )


def _counts(evidence: DataFrame) -> list[FileStats]:
    counts = rows_of(evidence.where(sf.col("part") == COUNTED).select("fields"))
    return [FileStats(**json.loads(row["fields"])) for row in counts]


def _cluster_pieces(evidence: DataFrame) -> list[Evidence]:
    """What the cluster's context is made of; what repeats comes to the driver thinned."""
    return list(pieces_of(thinned(evidence, CLUSTER).toArrow().to_batches()))


def _by_key(evidence: DataFrame, part: str, assemble: Assemble) -> DataFrame:
    return thinned(evidence, part).groupBy("key").applyInArrow(assemble, ROWS_DDL)


def thinned(evidence: DataFrame, part: str) -> DataFrame:
    """The evidence of one part; of what logs repeat the first statements, as `Thinning` says."""
    of_part = evidence.where(sf.col("part") == part)
    thinning = thinning_of(part)
    if not thinning:
        return of_part
    kind = sf.col("kind")
    per_place = [name for name, how in thinning.items() if how.per_place]
    place = sf.when(kind.isin(*per_place), sf.col("place"))
    window = sf.lit(None).cast("BIGINT")
    for window_ms in sorted({how.window_ms for how in thinning.values() if how.window_ms}):
        kinds = [name for name, how in thinning.items() if how.window_ms == window_ms]
        window = sf.when(kind.isin(*kinds), sf.floor(sf.col("at_ms") / window_ms)).otherwise(window)
    first = sf.min_by(sf.struct("*"), sf.struct("at_ms", "place", "position", "source"))
    repeated = kind.isin(*thinning)
    kept = (
        of_part.where(repeated)
        .groupBy("key", "kind", "fields", place.alias("_place"), window.alias("_window"))
        .agg(first.alias("first"))
        .select("first.*")
    )
    return of_part.where(~repeated).unionByName(kept)


def _from_driver(spark: SparkSession, tables: Tables) -> DataFrame:
    rows = pa.Table.from_batches(row_batches(tables), ROWS_SCHEMA)
    return spark.createDataFrame(rows.to_pylist(), ROWS_DDL)


def _parsed(rows: DataFrame, table: Table, context: ClusterContext) -> DataFrame:
    """The rows of one table, with its columns."""
    parsed = sf.from_json("row", table.struct_type()).alias("parsed")
    of_table = rows.where(sf.col("table_name") == table.name).select(ORDER, parsed)
    names = [name for name in table.column_names if name != "cluster"]
    if "cluster" not in table.column_names:
        return of_table.select(ORDER, "parsed.*")
    columns = [sf.col(f"parsed.{name}").alias(name) for name in names]
    return of_table.select(sf.lit(context.cluster).alias("cluster"), ORDER, *columns)


def _sequenced(events: DataFrame) -> DataFrame:
    """Sequences as `rows.event_order` orders the events of one instant."""
    names = ("topic", "broker_name", "client_id", "channel_id")
    rank = sf.coalesce(
        sf.element_at(sf.create_map(*_literals(RANK)), sf.col("event_type")), sf.lit(len(RANK))
    )
    within = Window.partitionBy("cluster", "event_ms").orderBy(
        rank,
        sf.coalesce("consumer_group", sf.lit("")),
        ORDER,
        *(sf.coalesce(name, sf.lit("")) for name in names),
        "event_type",
        "source",
    )
    return events.withColumn("sequence", sf.row_number().over(within).cast("BIGINT") - 1)


def _literals(ranks: dict[str, int]) -> list[Column]:
    return [sf.lit(part) for item in ranks.items() for part in item]


def _newest(offsets: DataFrame, table: Table) -> DataFrame:
    """One row for each key: of several observations of one instant the one furthest on."""
    best = sf.max_by(sf.struct(*table.column_names), sf.struct("max_offset", "min_offset"))
    return offsets.groupBy(*table.key).agg(best.alias("best")).select("best.*")


def _commits(evidence: DataFrame, context: ClusterContext) -> DataFrame:
    table = INGESTED_TABLES["committed_offsets"]
    schema = pa.schema([(f.name, f.type) for f in table.arrow_struct()])

    def rows(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            pieces = pieces_of([batch])
            commits = [row for row in (commit_row(p, context) for p in pieces) if row is not None]
            named = [{"cluster": context.cluster} | row for row in commits]
            yield pa.RecordBatch.from_pylist(named, schema=schema)

    observed = evidence.where(sf.col("part") == COMMIT).mapInArrow(
        rows, table.ddl.replace(" NOT NULL", "")
    )
    value = sf.max("committed_offset").alias("committed_offset")
    return observed.groupBy(*table.key).agg(value)


def _rejected(spark: SparkSession, evidence: DataFrame, refused: list[Row]) -> DataFrame:
    table = INGESTED_TABLES["rejected"]
    ddl = table.ddl.replace(" NOT NULL", "")
    text = sf.from_json("fields", "raw STRING, message STRING")
    of_files = (
        evidence.where(sf.col("part") == REFUSED)
        .withColumn("text", text)
        .select(
            sf.lit(REJECTED_TABLE).alias("table_name"),
            "source",
            sf.col("text.raw").alias("raw"),
            sf.array(
                sf.struct(sf.col("kind").alias("code"), sf.col("text.message").alias("message"))
            ).alias("issues"),
        )
    )
    return of_files.unionByName(spark.createDataFrame(refused, ddl))
