"""What the summary of a plan shows, counted from the tables as they were written."""

from __future__ import annotations

from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.planning.sweep.scenario_figures import EXTREMES, SUMS, VARIANT, with_ratio


def scenario_rows(summary: DataFrame) -> list[dict[str, Any]]:
    """One row for each scenario and strategy, over all groups and seeds, as plain values.

    What they mean is in `planning.sweep.scenario_figures`.

    Args:
        summary: ``plan_summary``.
    """
    sound = sf.col("caveat").isNull()
    rows = summary.groupBy(*VARIANT, "of_rocketmq").agg(
        sf.countDistinct("cluster", "consumer_group").alias("groups"),
        sf.countDistinct("seed").alias("seeds"),
        *(sf.sum(name).alias(name) for name in SUMS),
        sf.sum(sf.when(sound, sf.col("moved"))).alias("moved_sound"),
        sf.sum(sf.when(sound, sf.col("minimum_moves"))).alias("minimum_moves"),
        sf.avg(_even("before")).alias("mean_peak_ratio_before"),
        sf.avg(_even("after")).alias("mean_peak_ratio"),
        sf.max(_even("after")).alias("worst_peak_ratio"),
        sf.max("peak_messages_per_second").alias("peak_messages_per_second"),
        sf.sum(sf.col("frozen").cast("INT")).alias("frozen"),
        sf.sum((~sound).cast("INT")).alias("left_out"),
        sf.sort_array(sf.collect_set("caveat")).alias("caveats"),
        sf.count("cannot_pop").alias("cannot_pop"),
        *(getattr(sf, how)(name).alias(name) for name, how in EXTREMES.items()),
    )
    return [with_ratio(row.asDict()) for row in rows.collect()]


def league_rows(league: DataFrame) -> list[dict[str, Any]]:
    """The rows of ``plan_league``, as plain values."""
    return [row.asDict() for row in league.collect()]


def _even(side: str) -> Column:
    """The peak ratio where it says something: not of BROADCASTING, not beside unowned queues."""
    sound = sf.col("caveat").isNull() & (sf.col(f"orphaned_{side}") == 0)
    return sf.when(sound, sf.col(f"peak_ratio_{side}"))
