"""Queries of an audit: what goes to the driver, and which findings are counted, kept and shown."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Any

from pyspark.sql import Column, DataFrame, SparkSession, Window
from pyspark.sql import functions as sf

from rebalance_core.audit.clusters import BROKER_EVENT_COLUMNS, ClusterRows, cluster_rows
from rebalance_core.audit.selection import ACCEPTED_BY, KEPT_FIRST, SAME_FINDING
from rebalance_core.audit.verdict import Count
from rebalance_core.contracts import ALL_TABLES, AUDITED_TABLES
from rebalance_core.engine.units import GROUP
from rebalance_core.model import events
from rebalance_core.model.severities import ERROR, INFO, WORST_FIRST
from rebalance_core.model.verdicts import UNKNOWN
from rebalance_core.spark.audit.group_cases import table_rows
from rebalance_core.spark.driver_rows import rows_of

Row = dict[str, Any]


def read_cluster_rows(
    tables: Mapping[str, DataFrame], kinds: Iterable[str]
) -> Mapping[str, ClusterRows]:
    """What concerns each cluster as a whole, by its name."""
    cluster_events, facts = tables["cluster_events"], tables["observed_facts"]
    span = [sf.min("event_ms").alias("first_ms"), sf.max("event_ms").alias("last_ms")]
    of_brokers = cluster_events.where(
        sf.col("event_type").isin(*events.BROKER_EVENTS, *events.MASTER_EVENTS)
    )
    return cluster_rows(
        rows_of(cluster_events.groupBy("cluster").agg(*span)),
        rows_of(facts.where(sf.col("kind").isin(*kinds))),
        rows_of(_newest_dumps(tables)),
        rows_of(of_brokers.select(*BROKER_EVENT_COLUMNS)),
    )


def _newest_dumps(tables: Mapping[str, DataFrame]) -> DataFrame:
    """By command and broker; observed rows of other origin are dumps as well."""
    facts = tables["observed_facts"].where(sf.col("kind") == "DUMP")
    dumps = facts.select(
        "cluster", "broker_name", sf.col("details")["command"].alias("command"), "last_ms"
    )
    held = tables["observed_ownership"].select(
        "cluster",
        sf.lit(None).cast("STRING").alias("broker_name"),
        sf.lit("consumerStatus").alias("command"),
        sf.col("observed_ms").alias("last_ms"),
    )
    listed = tables["observed_members"].select(
        "cluster",
        sf.col("asked_broker").alias("broker_name"),
        sf.lit("consumerConnection").alias("command"),
        sf.col("observed_ms").alias("last_ms"),
    )
    every = dumps.unionByName(held).unionByName(listed)
    return every.groupBy("cluster", "broker_name", "command").agg(
        sf.max("last_ms").alias("last_ms"), sf.min("last_ms").alias("first_ms")
    )


def judged_tables(judged: DataFrame) -> tuple[DataFrame, DataFrame]:
    """``findings`` and ``group_verdicts`` of what `group_cases.judge_groups` gives."""
    findings, verdicts = (
        table_rows(judged, AUDITED_TABLES[name]) for name in ("findings", "group_verdicts")
    )
    return findings, verdicts


def findings_frame(spark: SparkSession, rows: Iterable[Row]) -> DataFrame:
    """Rows made on the driver as a frame."""
    table = AUDITED_TABLES["findings"]
    whole = [tuple(row.get(name) for name in table.column_names) for row in rows]
    return spark.createDataFrame(whole, table.plain_ddl)


def count_findings(findings: DataFrame) -> list[Count]:
    """How many there are by rule, severity and acceptance, in this order."""
    accepted = sf.col("accepted").isNotNull().alias("accepted")
    counted = (
        findings.groupBy("rule_id", "severity", accepted)
        .agg(sf.count(sf.lit(1)).alias("findings"))
        .orderBy("rule_id", "severity", "accepted")
    )
    return [Count(**row) for row in rows_of(counted)]


def findings_by_rule(findings: DataFrame) -> dict[str, int]:
    """How many findings there are of each rule."""
    return {row["rule_id"]: row["count"] for row in rows_of(findings.groupBy("rule_id").count())}


def open_findings(findings: DataFrame) -> DataFrame:
    """Findings above INFO that are not accepted."""
    return findings.where(sf.col("accepted").isNull() & (sf.col("severity") != INFO))


def to_accept(findings: DataFrame) -> list[Row]:
    """`ACCEPTED_BY` of the open findings, each once."""
    return rows_of(open_findings(findings).select(*ACCEPTED_BY).distinct())


def worst_first() -> tuple[Column, Column]:
    """The order of findings: open ones first, then by severity."""
    rank = sf.array_position(sf.array(*map(sf.lit, WORST_FIRST)), sf.col("severity"))
    return sf.col("accepted").isNotNull(), rank


def capped(findings: DataFrame, rows_of_a_rule: int) -> DataFrame:
    """At most so many findings of each rule: open ones first, then the worst."""
    window = Window.partitionBy("cluster", "rule_id").orderBy(*worst_first(), *KEPT_FIRST)
    numbered = findings.withColumn("_number", sf.row_number().over(window))
    return numbered.where(sf.col("_number") <= rows_of_a_rule).drop("_number")


def unknown_groups(verdicts: DataFrame, shown: int) -> Mapping[str, tuple[list[Row], int]]:
    """By cluster the groups with something missing, and how many groups were compared.

    A row has verdict, reason, unasked, groups (how many) and names, the first of them.
    """
    compared = {
        row["cluster"]: row["count"]
        for row in rows_of(verdicts.where(sf.col("looks") > 0).groupBy("cluster").count())
    }
    missing = verdicts.where((sf.size("unasked") > 0) | (sf.col("verdict") == UNKNOWN))
    names = sf.slice(sf.sort_array(sf.collect_set("consumer_group")), 1, shown)
    unasked = sf.when(sf.size("unasked") > 0, sf.lit("unasked")).alias("unasked")
    counted = missing.groupBy("cluster", "verdict", "reason", unasked).agg(
        sf.count(sf.lit(1)).alias("groups"), names.alias("names")
    )
    by_cluster: dict[str, tuple[list[Row], int]] = {}
    for row in rows_of(counted):
        rows, _ = by_cluster.setdefault(row["cluster"], ([], compared.get(row["cluster"], 0)))
        rows.append(row)
    return by_cluster


def changed_since(
    findings: DataFrame, previous: DataFrame, truncated: Collection[str] = ()
) -> tuple[DataFrame, DataFrame, DataFrame]:
    """Open findings above INFO that are new, gone, and still there.

    Args:
        findings: all of this run.
        previous: as the earlier run kept them. Those that are accepted now do not count as gone.
        truncated: rules of which that run did not keep all: none of theirs is called new.
    """
    key = sf.to_json(sf.struct(*SAME_FINDING), {"ignoreNullFields": "false"}).alias("_key")
    now, before = (
        frame.where(sf.col("severity") != INFO).select("*", key)
        for frame in (findings, previous.where(sf.col("accepted").isNull()))
    )
    still_open = now.where(sf.col("accepted").isNull())
    return (
        still_open.where(~sf.col("rule_id").isin(*truncated))
        .join(before.select("_key"), on="_key", how="left_anti")
        .drop("_key"),
        before.join(now.select("_key"), on="_key", how="left_anti").drop("_key"),
        still_open.join(before.select("_key"), on="_key", how="left_semi").drop("_key"),
    )


def worst_groups(findings: DataFrame, groups: int) -> list[tuple[str, str]]:
    """(cluster, consumer_group) of the groups with the worst open findings above INFO."""
    of_groups = open_findings(findings).where(sf.col("consumer_group").isNotNull())
    errors = sf.sum((sf.col("severity") == ERROR).cast("INT"))
    ranked = of_groups.groupBy(*GROUP).agg(
        errors.alias("errors"), sf.count(sf.lit(1)).alias("findings")
    )
    worst = ranked.orderBy(sf.col("errors").desc(), sf.col("findings").desc(), *GROUP).limit(groups)
    return [(row["cluster"], row["consumer_group"]) for row in rows_of(worst)]


def of_groups(
    frame: DataFrame, table: str, groups: Iterable[tuple[str, str]], time: str, rows: int
) -> list[Row]:
    """The rows of these few groups, of each at most so many, the newest.

    Args:
        frame: a table.
        table: its name.
        groups: (cluster, consumer_group) of those wanted.
        time: the column that says what is new.
        rows: how many rows of a group are wanted.
    """
    wanted = frame.sparkSession.createDataFrame(
        list(groups) or [("", "")], "cluster STRING, consumer_group STRING"
    )
    key = (name for name in ALL_TABLES[table].key if name not in GROUP)
    window = Window.partitionBy(*GROUP).orderBy(sf.col(time).desc(), *key)
    few = (
        frame.join(sf.broadcast(wanted), on=list(GROUP), how="left_semi")
        .withColumn("_number", sf.row_number().over(window))
        .where(sf.col("_number") <= rows)
        .drop("_number")
    )
    return rows_of(few)
