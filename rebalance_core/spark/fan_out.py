"""Every input row to exactly the groups it concerns: one frame, keyed by cluster and group.

Consumer events and commits name their group. A topic event or a queue's offsets concern the groups
that ever subscribe the topic; a broker event those with a topic ever configured on that broker.
Nothing is collected.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import reduce

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.model import events
from rebalance_core.model.queue import RETRY_TOPIC_PREFIX
from rebalance_core.spark.conform import RAW, SOURCE

GROUP = ("cluster", "consumer_group")
TABLE = "_table"
"""Which input table a row of the frame comes from."""


def fan_out(tables: Mapping[str, DataFrame], group_pattern: str | None = None) -> DataFrame:
    """The rows of all tables with ``cluster``, ``consumer_group`` and ``_table``.

    Args:
        tables: the used rows by table name; only cluster_events must be there.
        group_pattern: SQL LIKE pattern of the groups wanted; None: all.
    """
    parts = [member_rows(tables, group_pattern), *_offset_rows(tables, group_pattern)]
    return reduce(_union, parts)


def member_rows(tables: Mapping[str, DataFrame], group_pattern: str | None = None) -> DataFrame:
    """`fan_out` of events and settings alone: all that ownership depends on."""
    own = _own(tables["cluster_events"], group_pattern)
    shared = tables["cluster_events"].where(~_of_consumer()).drop("consumer_group")
    topics = group_topics(tables, group_pattern)
    parts = [_tagged(own, "cluster_events"), _tagged(_shared(shared, topics), "cluster_events")]
    if "consumer_groups" in tables:
        parts.append(_tagged(_of_groups(tables["consumer_groups"], own), "consumer_groups"))
    return reduce(_union, parts)


def _offset_rows(tables: Mapping[str, DataFrame], group_pattern: str | None) -> list[DataFrame]:
    own = _own(tables["cluster_events"], group_pattern)
    parts = []
    if "queue_offsets" in tables:
        name = sf.concat(sf.lit(RETRY_TOPIC_PREFIX), sf.col("consumer_group"))
        retry = own.select(*GROUP).distinct().withColumn("topic", name)
        topics = group_topics(tables, group_pattern).unionByName(retry).distinct()
        read = tables["queue_offsets"].join(topics, on=["cluster", "topic"], how="inner")
        parts.append(_tagged(read, "queue_offsets"))
    if "committed_offsets" in tables:
        parts.append(_tagged(_of_groups(tables["committed_offsets"], own), "committed_offsets"))
    return parts


def _union(one: DataFrame, other: DataFrame) -> DataFrame:
    return one.unionByName(other, allowMissingColumns=True)


def _of_groups(frame: DataFrame, own: DataFrame) -> DataFrame:
    """The rows of the groups that have events."""
    return frame.join(own.select(*GROUP).distinct(), on=list(GROUP), how="left_semi")


def _of_consumer() -> Column:
    return sf.col("event_type").isin(*events.CONSUMER_EVENTS)


def _own(cluster_events: DataFrame, pattern: str | None) -> DataFrame:
    """The events that name their group, of the groups wanted."""
    own = cluster_events.where(_of_consumer())
    return own if pattern is None else own.where(sf.col("consumer_group").like(pattern))


def _tagged(frame: DataFrame, table: str) -> DataFrame:
    # The text of a row is only wanted for an event that names an unknown member.
    kept = frame if table == "cluster_events" else frame.drop(RAW, SOURCE)
    return kept.withColumn(TABLE, sf.lit(table))


def group_topics(tables: Mapping[str, DataFrame], group_pattern: str | None = None) -> DataFrame:
    """(cluster, consumer_group, topic) ever subscribed; arguments as `fan_out`."""
    own = _own(tables["cluster_events"], group_pattern)
    consumer_groups = tables.get("consumer_groups")
    joined = own.select(*GROUP, sf.explode("subscriptions").alias("topic"))
    later = own.where(sf.col("event_type") == events.SUBSCRIBE).select(*GROUP, "topic")
    topics = joined.unionByName(later)
    if consumer_groups is not None:
        given = consumer_groups.select(*GROUP, sf.explode("subscriptions").alias("topic"))
        groups = own.select(*GROUP).distinct()
        topics = topics.unionByName(given.join(groups, on=list(GROUP), how="left_semi"))
    return topics.distinct()


def _shared(shared: DataFrame, topics: DataFrame) -> DataFrame:
    """Topic and broker events once for each group concerned."""
    of_topic = sf.col("event_type").isin(*events.TOPIC_EVENTS)
    configured = shared.where(sf.col("event_type") == events.TOPIC_CONFIG)
    brokers = (
        configured.select("cluster", "topic", "broker_name")
        .distinct()
        .join(topics, on=["cluster", "topic"], how="inner")
        .select(*GROUP, "broker_name")
        .distinct()
    )
    by_topic = shared.where(of_topic).join(topics, on=["cluster", "topic"], how="inner")
    by_broker = shared.where(~of_topic).join(brokers, on=["cluster", "broker_name"], how="inner")
    return by_topic.unionByName(by_broker)
