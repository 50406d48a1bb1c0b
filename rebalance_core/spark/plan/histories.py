"""Many histories out of one: the rows of every group and cluster, edited, under one name each.

A history is known by its number; its rows carry it behind the name of their cluster, so that
everything that works by cluster (fan-out, units, the engine) takes them for clusters of their own.
Rows of a group, or those a cluster has of its own, go to Python once for all histories together.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model import events
from rebalance_core.spark.engine.fan_out import GROUP, TABLE
from rebalance_core.spark.engine.packing import PART
from rebalance_core.spark.plan.edit_task import (
    CLUSTER,
    EVENTS,
    GROUPS,
    NOBODY,
    WARNING,
    Edits,
    EditTask,
)
from rebalance_core.spark.plan.history_names import SEPARATOR

OFFSETS, COMMITS = "queue_offsets", "committed_offsets"
_NUMBER = "_number"


def event_ends(cluster_events: DataFrame) -> dict[str, int]:
    """The last event of every cluster, epoch ms; clusters are few."""
    ends = cluster_events.groupBy("cluster").agg(sf.max("event_ms").alias("end_ms"))
    return {row["cluster"]: row["end_ms"] for row in ends.collect()}


@dataclass(frozen=True, eq=False)
class Histories:
    """The input tables of all histories, and what edits could not do (column ``warning``)."""

    tables: Mapping[str, DataFrame]
    warnings: DataFrame


def histories(
    tables: Mapping[str, DataFrame],
    count: int,
    edits: Edits,
    ends: Mapping[str, int],
    first_ms: Mapping[str, int],
) -> Histories:
    """Every history's rows of every table; those of events and settings are kept once computed.

    Args:
        tables: the used rows by table name.
        count: histories are numbered from 0.
        edits: what happens to the rows in each.
        ends: `event_ends` of the tables.
        first_ms: by cluster of a history (`cluster_of`): its first edit. Of older commits only the
            last one of each queue stays, as no step that counts needs the others.
    """
    edited = _edit(tables, count, edits, ends).persist()
    made = {
        name: edited.where(sf.col(TABLE) == name).select(*INPUT_TABLES[name].column_names)
        for name in (EVENTS, GROUPS)
        if name in tables
    }
    session = tables[EVENTS].sparkSession
    for name in (OFFSETS, COMMITS):
        if name in tables:
            made[name] = _copies(tables[name], name, count)
    if COMMITS in tables:
        made[COMMITS] = _needed(made[COMMITS], first_edits(session, first_ms))
    warnings = edited.where(sf.col(TABLE) == WARNING).select(sf.col("source").alias("warning"))
    return Histories(made, warnings.distinct())


def _edit(
    tables: Mapping[str, DataFrame], count: int, edits: Edits, ends: Mapping[str, int]
) -> DataFrame:
    """One pass over the events and settings of whole groups."""
    of_group = sf.col("event_type").isin(*events.GROUP_EVENTS)
    group = sf.when(of_group, sf.col("consumer_group")).otherwise(NOBODY)
    own = tables[EVENTS].select(*INPUT_TABLES[EVENTS].column_names)
    rows = own.withColumn("consumer_group", group).withColumn(TABLE, sf.lit(EVENTS))
    if GROUPS in tables:
        settings = tables[GROUPS].select(*INPUT_TABLES[GROUPS].column_names)
        rows = rows.unionByName(settings.withColumn(TABLE, sf.lit(GROUPS)), True)
    # a cluster without a row of its own may get some
    session = tables[EVENTS].sparkSession
    clusters = session.createDataFrame(
        [(cluster, NOBODY, CLUSTER) for cluster in ends],
        f"cluster STRING, consumer_group STRING, {TABLE} STRING",
    )
    rows = rows.unionByName(clusters, True).withColumn(PART, sf.lit(0))
    together = rows.repartition(*GROUP).sortWithinPartitions(*GROUP)
    task = EditTask(edits, count, tuple(name for name in rows.columns if name != PART))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    return together.mapInArrow(run, rows.drop(PART).schema)


def first_edits(session: SparkSession, first_ms: Mapping[str, int]) -> DataFrame:
    """``first_ms`` as a frame: cluster (a history's), first_ms."""
    return session.createDataFrame(list(first_ms.items()), "cluster STRING, first_ms BIGINT")


def _copies(table: DataFrame, name: str, count: int) -> DataFrame:
    """A table under every history."""
    columns = INPUT_TABLES[name].column_names
    numbers = sf.explode(sf.sequence(sf.lit(0), sf.lit(count - 1))).alias(_NUMBER)
    copies = table.select(*columns).select("*", numbers)
    return copies.withColumn("cluster", sf.concat_ws(SEPARATOR, "cluster", _NUMBER)).drop(_NUMBER)


def _needed(commits: DataFrame, first_edits: DataFrame) -> DataFrame:
    """Commits without those that a later one makes old before any step that counts.

    Queues' offsets have no such: CONSUME_FROM_TIMESTAMP looks far back.
    """
    table = INPUT_TABLES["committed_offsets"]
    marked = commits.join(sf.broadcast(first_edits), on="cluster", how="left")
    old = sf.col("observed_ms") < sf.col("first_ms")
    kept = marked.where(sf.coalesce(~old, sf.lit(True))).select(*table.column_names)
    row = sf.struct(*table.column_names)
    queue = [name for name in table.key if name != "observed_ms"]
    last = marked.where(old).groupBy(*queue).agg(sf.max_by(row, "observed_ms").alias("row"))
    return kept.unionByName(last.select("row.*"))
