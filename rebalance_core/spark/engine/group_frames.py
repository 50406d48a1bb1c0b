"""Every input row to exactly the groups it concerns: one frame, keyed by cluster and group.

Consumer events, request modes and commits name their group. A topic event or a queue's offsets
concern the groups that ever subscribe the topic; a broker event those with a topic ever configured
on that broker. Nothing is collected: these frames are lazy. A run that writes has `routed_rows`.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.contracts.technical_columns import RAW, SOURCE, TABLE
from rebalance_core.engine.units import GROUP
from rebalance_core.model import events
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX

_NAME, _OF_TOPIC = "_name", "_of_topic"
"""The topic or broker that an event or a group's interest is about."""


def fan_out(tables: Mapping[str, DataFrame], group_pattern: str | None = None) -> DataFrame:
    """The rows of all tables with ``cluster``, ``consumer_group`` and ``_table``.

    Rows of groups without events are among them: whoever uses them joins them with the groups that
    have some (`work_units`, `of_groups_with_events`).

    Args:
        tables: the used rows by table name; only cluster_events must be there.
        group_pattern: SQL LIKE pattern of the groups wanted; None: all.
    """
    parts = [member_rows(tables, group_pattern), *_offset_rows(tables, group_pattern)]
    return reduce(_union, parts)


def member_rows(tables: Mapping[str, DataFrame], group_pattern: str | None = None) -> DataFrame:
    """`fan_out` of events and settings alone: all that ownership depends on."""
    own = _wanted(tables["cluster_events"].where(_of_group()), group_pattern)
    parts = [
        _tagged(own, "cluster_events"),
        _tagged(_shared(tables, group_pattern), "cluster_events"),
    ]
    if "consumer_groups" in tables:
        settings = _wanted(tables["consumer_groups"], group_pattern)
        parts.append(_tagged(settings, "consumer_groups"))
    return reduce(_union, parts)


def of_groups_with_events(rows: DataFrame, tables: Mapping[str, DataFrame]) -> DataFrame:
    """The rows of the groups that have events of their own."""
    groups = tables["cluster_events"].where(_of_consumer()).select(*GROUP)
    return rows.join(groups, on=list(GROUP), how="left_semi")


def group_topics(tables: Mapping[str, DataFrame], group_pattern: str | None = None) -> DataFrame:
    """(cluster, consumer_group, topic) ever subscribed; arguments as `fan_out`."""
    subscribing = sf.col("event_type").isin(events.CONSUMER_JOIN, events.SUBSCRIBE)
    named = sf.coalesce("subscriptions", sf.array("topic"))
    own = _wanted(tables["cluster_events"].where(subscribing), group_pattern)
    topics = own.select(*GROUP, sf.explode(named).alias("topic"))
    if "consumer_groups" in tables:
        settings = _wanted(tables["consumer_groups"], group_pattern)
        topics = topics.unionByName(
            settings.select(*GROUP, sf.explode("subscriptions").alias("topic"))
        )
    return topics.where(sf.col("topic").isNotNull()).distinct()


def _offset_rows(tables: Mapping[str, DataFrame], group_pattern: str | None) -> list[DataFrame]:
    parts = []
    if "queue_offsets" in tables:
        retry = sf.concat(sf.lit(RETRY_TOPIC_PREFIX), sf.col("consumer_group"))
        topics = group_topics(tables, group_pattern).select(
            *GROUP, sf.explode(sf.array("topic", retry)).alias("topic")
        )
        read = tables["queue_offsets"].join(topics.distinct(), on=["cluster", "topic"], how="inner")
        parts.append(_tagged(read, "queue_offsets"))
    if "committed_offsets" in tables:
        committed = _wanted(tables["committed_offsets"], group_pattern)
        parts.append(_tagged(committed, "committed_offsets"))
    return parts


def _shared(tables: Mapping[str, DataFrame], group_pattern: str | None) -> DataFrame:
    """Topic and broker events once for each group that has an interest in them."""
    shared = tables["cluster_events"].where(~_of_group()).drop("consumer_group")
    topics = group_topics(tables, group_pattern)
    configured = shared.where(sf.col("event_type") == events.TOPIC_CONFIG)
    brokers = configured.select("cluster", "topic", "broker_name").join(
        topics, on=["cluster", "topic"], how="inner"
    )
    interests = topics.select(*GROUP, sf.col("topic").alias(_NAME), sf.lit(True).alias(_OF_TOPIC))
    interests = interests.unionByName(
        brokers.select(
            *GROUP, sf.col("broker_name").alias(_NAME), sf.lit(False).alias(_OF_TOPIC)
        ).distinct()
    )
    of_topic = sf.col("event_type").isin(*events.TOPIC_EVENTS)
    name = sf.when(of_topic, sf.col("topic")).otherwise(sf.col("broker_name"))
    addressed = shared.select("*", name.alias(_NAME), of_topic.alias(_OF_TOPIC))
    return addressed.join(interests, on=["cluster", _NAME, _OF_TOPIC], how="inner").drop(
        _NAME, _OF_TOPIC
    )


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)


def _of_group() -> Column:
    return sf.col("event_type").isin(*events.GROUP_EVENTS)


def _of_consumer() -> Column:
    return sf.col("event_type").isin(*events.CONSUMER_EVENTS)


def _wanted(rows: DataFrame, pattern: str | None) -> DataFrame:
    """The rows of the groups wanted."""
    return rows if pattern is None else rows.where(sf.col("consumer_group").like(pattern))


def _tagged(frame: DataFrame, table: str) -> DataFrame:
    # The text of a row is only wanted for an event that names an unknown member.
    kept = frame if table == "cluster_events" else frame.drop(RAW, SOURCE)
    return kept.withColumn(TABLE, sf.lit(table))
