"""Everything on one group in one place: the rows of many tables, judged group by group.

What a fleet has most of, offsets, is thinned first: of a queue the first and the last observation,
of its commits the first two, the last and those at which the offset fell.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import pyarrow as pa
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from rebalance_core.contracts import OBSERVED_TABLES, SIMULATED_TABLES, Table
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.engine.units import GROUP
from rebalance_core.model import events
from rebalance_core.model.queue import POP_RETRY_MARKS, RETRY_TOPIC_PREFIX
from rebalance_core.spark.engine.group_frames import group_topics

Rows = Mapping[str, list[dict[str, Any]]]
Judge = Callable[[str, str, Rows], Rows]

JUDGED_DDL = "cluster STRING, table_name STRING, row STRING"
_JUDGED = pa.schema([("cluster", pa.string()), ("table_name", pa.string()), ("row", pa.string())])
_QUEUE = ("topic", "broker_name", "queue_id")
_TOPIC_STATE = ("event_type", "read_queue_nums", "write_queue_nums", "perm", "source")


def judge_groups(tables: Mapping[str, DataFrame], judge: Judge) -> DataFrame:
    """What ``judge`` makes of each group, as rows of JSON with the name of their table.

    Args:
        tables: the input tables, the ledger, the observed tables and findings, by name.
        judge: from cluster, group and the group's rows by table to rows by table; it travels.
    """
    return _union(case_frames(tables)).groupBy(*GROUP).applyInArrow(_body(judge), JUDGED_DDL)


def case_frames(tables: Mapping[str, DataFrame]) -> dict[str, DataFrame]:
    """The frames of which a group's case is made; each has cluster and consumer_group."""
    own = tables["cluster_events"].where(sf.col("event_type").isin(*events.GROUP_EVENTS))
    frames = {"cluster_events": own}
    if "consumer_groups" in tables:
        frames["consumer_groups"] = tables["consumer_groups"]
    if "committed_offsets" in tables:
        frames["committed_offsets"] = turning_commits(tables["committed_offsets"])
    topics = topics_of_groups(tables)
    frames["topics"] = topic_states(tables["cluster_events"]).join(
        topics, on=["cluster", "topic"], how="inner"
    )
    if "queue_offsets" in tables:
        ends = ends_of_queues(tables["queue_offsets"])
        frames["queue_offsets"] = ends.join(topics, on=["cluster", "topic"], how="inner")
    for name in (*SIMULATED_TABLES, *OBSERVED_TABLES, "findings"):
        frames[name] = tables[name].where(sf.col("consumer_group").isNotNull())
    if PROPAGATION.name in tables:
        frames[PROPAGATION.name] = tables[PROPAGATION.name]
    routes = missing_routes(tables["observed_facts"], topics)
    frames["observed_facts"] = frames["observed_facts"].unionByName(routes)
    return frames


def topics_of_groups(tables: Mapping[str, DataFrame]) -> DataFrame:
    """(cluster, consumer_group, topic) subscribed or committed on, and each group's retry topic."""
    topics = group_topics(tables)
    if "committed_offsets" in tables:
        committed = tables["committed_offsets"].select(*GROUP, "topic")
        topics = topics.unionByName(committed)
    retry = sf.concat(sf.lit(RETRY_TOPIC_PREFIX), sf.col("consumer_group"))
    return topics.unionByName(topics.select(*GROUP, retry.alias("topic"))).distinct()


def missing_routes(observed_facts: DataFrame, topics: DataFrame) -> DataFrame:
    """MISSING_ROUTE facts on the pop retry topics of groups, which name no group, with their group.

    Args:
        observed_facts: the facts.
        topics: of `topics_of_groups`.
    """
    facts = observed_facts.where(
        (sf.col("kind") == "MISSING_ROUTE") & sf.col("consumer_group").isNull()
    )
    prefix = sf.concat(sf.lit(RETRY_TOPIC_PREFIX), sf.col("consumer_group"))
    names = sf.array(
        *(sf.concat(prefix, sf.lit(mark), sf.col("topic")) for mark in POP_RETRY_MARKS)
    )
    of_groups = topics.select(*GROUP, sf.explode(names).alias("topic"))
    joined = facts.drop("consumer_group").join(of_groups, on=["cluster", "topic"], how="inner")
    return joined.select(*observed_facts.columns)


def topic_states(cluster_events: DataFrame) -> DataFrame:
    """The last event of every topic on every broker; a deletion on all brokers is one on each.

    ``deleted_ms``: when it was deleted there last. ``source``: where the last event is from, as
    a name server may still route what a broker deleted.
    """
    of_topics = cluster_events.where(sf.col("event_type").isin(*events.TOPIC_EVENTS))
    deleted = sf.col("event_type") == events.TOPIC_DELETED
    moment = sf.struct("event_ms", "sequence")
    everywhere = (
        of_topics.where(sf.col("broker_name").isNull())
        .groupBy("cluster", "topic")
        .agg(sf.max(moment).alias("_gone"))
    )
    last = (
        of_topics.where(sf.col("broker_name").isNotNull())
        .groupBy("cluster", "topic", "broker_name")
        .agg(
            sf.max_by(sf.struct("event_ms", "sequence", *_TOPIC_STATE), moment).alias("last"),
            sf.max(sf.when(deleted, sf.col("event_ms"))).alias("_deleted_ms"),
        )
        .join(everywhere, on=["cluster", "topic"], how="left")
    )
    gone = sf.col("_gone") > sf.struct("last.event_ms", "last.sequence")
    kind = sf.when(gone, sf.lit(events.TOPIC_DELETED)).otherwise(sf.col("last.event_type"))
    at = sf.when(gone, sf.col("_gone.event_ms")).otherwise(sf.col("last.event_ms"))
    return last.select(
        "cluster",
        "topic",
        "broker_name",
        at.alias("event_ms"),
        kind.alias("event_type"),
        *(f"last.{name}" for name in _TOPIC_STATE[1:]),
        sf.greatest("_deleted_ms", "_gone.event_ms").alias("deleted_ms"),
    )


def ends_of_queues(queue_offsets: DataFrame) -> DataFrame:
    """The first and the last observation of every queue."""
    names = ("observed_ms", "min_offset", "max_offset", "head_cached")
    row = sf.struct(*names)
    ends = queue_offsets.groupBy("cluster", *_QUEUE).agg(
        sf.array_distinct(
            sf.array(sf.min_by(row, "observed_ms"), sf.max_by(row, "observed_ms"))
        ).alias("ends")
    )
    return ends.select("cluster", *_QUEUE, sf.explode("ends").alias("end")).select(
        "cluster", *_QUEUE, "end.*"
    )


def turning_commits(committed_offsets: DataFrame) -> DataFrame:
    """Of every queue's commits the first two and the last, and those before and after a fall."""
    window = Window.partitionBy(*GROUP, *_QUEUE).orderBy("observed_ms", "committed_offset")
    offset = sf.col("committed_offset")
    before, after = sf.lag(offset).over(window), sf.lead(offset).over(window)
    first = sf.row_number().over(window) <= 2
    kept = first | after.isNull() | (after < offset) | (before > offset)
    return committed_offsets.select("*", kept.alias("_kept")).where("_kept").drop("_kept")


def _union(frames: Mapping[str, DataFrame]) -> DataFrame:
    whole = {"ignoreNullFields": "false"}
    parts = [
        frame.select(
            *GROUP,
            sf.lit(name).alias("table_name"),
            sf.to_json(
                sf.struct(*(c for c in frame.columns if not c.startswith("_"))), whole
            ).alias("row"),
        )
        for name, frame in frames.items()
    ]
    return reduce(DataFrame.unionByName, parts)


def _body(judge: Judge) -> Callable[[pa.Table], pa.Table]:
    def one_group(table: pa.Table) -> pa.Table:
        return judged_rows(table, judge)

    return one_group


def judged_rows(table: pa.Table, judge: Judge) -> pa.Table:
    """The judged rows of one group, from its rows as `case_frames` gives them in JSON."""
    cluster, group = table["cluster"][0].as_py(), table["consumer_group"][0].as_py()
    by_table: dict[str, list[dict[str, Any]]] = {}
    names, texts = table["table_name"].to_pylist(), table["row"].to_pylist()
    for name, text in zip(names, texts, strict=True):
        by_table.setdefault(name, []).append(json.loads(text))
    rows = [
        (cluster, name, json.dumps(row))
        for name, judged in judge(cluster, group, by_table).items()
        for row in judged
    ]
    return pa.Table.from_pylist(
        [dict(zip(_JUDGED.names, row, strict=True)) for row in rows], _JUDGED
    )


def table_rows(rows: DataFrame, table: Table) -> DataFrame:
    """The judged rows of one table, with its columns."""
    parsed = sf.from_json("row", table.struct_type()).alias("parsed")
    of_table = rows.where(sf.col("table_name") == table.name).select("cluster", parsed)
    return of_table.select(
        *(
            sf.col("cluster") if name == "cluster" else sf.col(f"parsed.{name}").alias(name)
            for name in table.column_names
        )
    )
