"""Work units of lazy frames, assigned to tasks by weight: a group, or a range of a giant's queues.

A group's weight is about the cells it has, its queues times its consumer events: what the kernels
go through. The units of each cluster are ranked by falling weight and assigned in turn, so that
every task gets about the same, however skewed the groups are.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as sf

from rebalance_core.contracts.technical_columns import RAW, SOURCE
from rebalance_core.engine.routing import GIANT_CELLS
from rebalance_core.engine.units import GROUP, PART, PARTS
from rebalance_core.model import events
from rebalance_core.spark.engine.group_frames import fan_out, group_topics, member_rows
from rebalance_core.spark.engine.packing import packed

SLOT = "_slot"
ROWS_PER_TASK = 100_000


def work_units(
    tables: Mapping[str, DataFrame], topics_of_groups: DataFrame, giant_cells: int
) -> DataFrame:
    """One row for each unit: cluster, consumer_group, ``_part`` of ``_parts``, ``_slot``.

    Args:
        tables: the used rows; only cluster_events matters.
        topics_of_groups: as `group_topics` gives them.
        giant_cells: the most cells of a unit.
    """
    cluster_events = tables["cluster_events"]
    members = cluster_events.where(sf.col("event_type").isin(*events.CONSUMER_EVENTS))
    counted = members.groupBy(*GROUP).agg(sf.count(sf.lit(1)).alias("events"))
    per_broker = (
        cluster_events.where(sf.col("event_type") == events.TOPIC_CONFIG)
        .groupBy("cluster", "topic", "broker_name")
        .agg(sf.max("read_queue_nums").alias("queues"))
    )
    per_topic = per_broker.groupBy("cluster", "topic").agg(sf.sum("queues").alias("queues"))
    read = topics_of_groups.join(per_topic, on=["cluster", "topic"], how="inner")
    queues = read.groupBy(*GROUP).agg(sf.sum("queues").alias("queues"))
    weighed = counted.join(queues, on=list(GROUP), how="left").select(
        *GROUP,
        (sf.col("events") * (sf.coalesce("queues", sf.lit(0)) + 1)).alias("weight"),
    )
    parted = weighed.withColumn(PARTS, sf.ceil(sf.col("weight") / giant_cells).cast("INT"))
    ranges = parted.select("*", sf.explode(sf.sequence(sf.lit(0), sf.col(PARTS) - 1)).alias(PART))
    rank = Window.partitionBy("cluster").orderBy(
        sf.desc(sf.col("weight") / sf.col(PARTS)), "consumer_group", PART
    )
    turn = sf.row_number().over(rank) - 1
    # clusters begin at different slots, so that many small ones spread, too
    return ranges.select(*GROUP, PART, PARTS, (turn + sf.crc32("cluster") % 4096).alias(SLOT))


@dataclass(frozen=True, eq=False)
class AssignedRows:
    """Rows of `fan_out` with ``_part`` and ``_parts``, each unit whole and in one task.

    ``members`` are the rows of `member_rows`, packed and kept once computed: every table but one
    needs no more. ``everything`` has the offsets, too.
    """

    members: DataFrame
    everything: DataFrame


def assign_to_tasks(
    tables: Mapping[str, DataFrame],
    group_pattern: str | None,
    partitions: int | None,
    giant_cells: int = GIANT_CELLS,
    pack: Callable[[DataFrame], DataFrame] = packed,
) -> AssignedRows:
    """Fan the tables out and assign their rows to tasks.

    Args:
        tables: the used rows by table name.
        group_pattern: SQL LIKE pattern of the groups wanted; None: all.
        partitions: how many tasks; None: Spark joins small ones by size.
        giant_cells: the most cells of a unit.
        pack: from the rows of members to what is kept of them: chunks of the rows themselves, or
            what `prepared_rows` makes of them.
    """
    units = work_units(tables, group_topics(tables, group_pattern), giant_cells)
    return AssignedRows(
        pack(_assign(member_rows(tables, group_pattern), units, partitions)).persist(),
        _assign(fan_out(tables, group_pattern).drop(SOURCE, RAW), units, partitions),
    )


def _assign(rows: DataFrame, units: DataFrame, partitions: int | None) -> DataFrame:
    """The rows of every unit together and in the order of units, after one shuffle."""
    joined = rows.join(units, on=list(GROUP), how="inner")
    if partitions is None:
        spread = joined.repartition(SLOT)
    else:
        spread = joined.repartitionById(partitions, sf.pmod(SLOT, sf.lit(partitions)).cast("INT"))
    return spread.sortWithinPartitions(*GROUP, PART).drop(SLOT)


def task_count(rows: int, cores: int) -> int:
    """Tasks for so many rows: one a core at least; few, as a Python task takes 25 ms to start."""
    return max(cores, -(-rows // ROWS_PER_TASK))
