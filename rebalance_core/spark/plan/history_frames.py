"""The rows of every history of a plan: the recorded rows, edited, under a cluster of their own.

Histories are numbered. The number stands behind the cluster's name in every row, so all that works
by cluster (fan-out, work units, the engine) treats each history as a cluster of its own. The rows
of a group, or of a cluster itself, go to Python once for all histories.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.technical_columns import TABLE
from rebalance_core.engine.units import GROUP, PART
from rebalance_core.model import events
from rebalance_core.planning.sweep.history_names import SEPARATOR
from rebalance_core.planning.sweep.history_rows import CLUSTER, EVENTS, GROUPS, NO_GROUP, WARNING
from rebalance_core.planning.variants import HistoryEdits
from rebalance_core.spark.plan.edit_task import EditTask

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
    edited: DataFrame
    """Events and settings of all histories; kept once computed."""

    def close(self) -> None:
        """Release what is kept."""
        self.edited.unpersist()


def histories(
    tables: Mapping[str, DataFrame],
    count: int,
    edits: HistoryEdits,
    ends: Mapping[str, int],
    first_ms: Mapping[str, int],
) -> Histories:
    """Every history's rows of every table; those of events and settings are kept once computed.

    Args:
        tables: the used rows by table name.
        count: histories are numbered from 0.
        edits: what each history changes.
        ends: `event_ends` of the tables.
        first_ms: by cluster of a history (`cluster_of`): its first edit. Of older commits only the
            last one of each queue stays: no counted step needs the others.
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
        made[COMMITS] = _needed(made[COMMITS], first_edit_rows(session, first_ms))
    warnings = edited.where(sf.col(TABLE) == WARNING).select(sf.col("source").alias("warning"))
    return Histories(made, warnings.distinct(), edited)


def _edit(
    tables: Mapping[str, DataFrame], count: int, edits: HistoryEdits, ends: Mapping[str, int]
) -> DataFrame:
    """One pass over the events and settings of whole groups."""
    of_group = sf.col("event_type").isin(*events.GROUP_EVENTS)
    group = sf.when(of_group, sf.col("consumer_group")).otherwise(NO_GROUP)
    own = tables[EVENTS].select(*INPUT_TABLES[EVENTS].column_names)
    rows = own.withColumn("consumer_group", group).withColumn(TABLE, sf.lit(EVENTS))
    if GROUPS in tables:
        settings = tables[GROUPS].select(*INPUT_TABLES[GROUPS].column_names)
        rows = rows.unionByName(settings.withColumn(TABLE, sf.lit(GROUPS)), True)
    # an edit may give rows to a cluster that has none of its own
    session = tables[EVENTS].sparkSession
    clusters = session.createDataFrame(
        [(cluster, NO_GROUP, CLUSTER) for cluster in ends],
        f"cluster STRING, consumer_group STRING, {TABLE} STRING",
    )
    rows = rows.unionByName(clusters, True).withColumn(PART, sf.lit(0))
    together = rows.repartition(*GROUP).sortWithinPartitions(*GROUP)
    task = EditTask(edits, count, tuple(name for name in rows.columns if name != PART))

    def run(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        yield from task(batches)

    return together.mapInArrow(run, rows.drop(PART).schema)


def first_edit_rows(session: SparkSession, first_ms: Mapping[str, int]) -> DataFrame:
    """``first_ms`` as a frame: cluster (a history's), first_ms."""
    return session.createDataFrame(list(first_ms.items()), "cluster STRING, first_ms BIGINT")


def _copies(table: DataFrame, name: str, count: int) -> DataFrame:
    """A table under every history."""
    columns = INPUT_TABLES[name].column_names
    numbers = sf.explode(sf.sequence(sf.lit(0), sf.lit(count - 1))).alias(_NUMBER)
    copies = table.select(*columns).select("*", numbers)
    return copies.withColumn("cluster", sf.concat_ws(SEPARATOR, "cluster", _NUMBER)).drop(_NUMBER)


def _needed(commits: DataFrame, first_edits: DataFrame) -> DataFrame:
    """Commits, without those that a later one replaces before the first counted step.

    Queues' offsets are all needed: CONSUME_FROM_TIMESTAMP looks far back.
    """
    table = INPUT_TABLES["committed_offsets"]
    marked = commits.join(sf.broadcast(first_edits), on="cluster", how="left")
    old = sf.col("observed_ms") < sf.col("first_ms")
    kept = marked.where(sf.coalesce(~old, sf.lit(True))).select(*table.column_names)
    row = sf.struct(*table.column_names)
    queue = [name for name in table.key if name != "observed_ms"]
    last = marked.where(old).groupBy(*queue).agg(sf.max_by(row, "observed_ms").alias("row"))
    return kept.unionByName(last.select("row.*"))
