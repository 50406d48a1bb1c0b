"""``plan_league``: every strategy over everything that was planned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.contracts.planning import PLAN_LEAGUE
from rebalance_core.planning.sweep.caveats import BETWEEN_CAVEATS, LEFT_OUT


def plan_league(steps: DataFrame, summary: DataFrame) -> DataFrame:
    """A row for each strategy, over all groups, scenarios and seeds.

    Sums are of all groups; amplification and the means leave out steps that say nothing about a
    strategy.

    Args:
        steps: ``plan_steps``.
        summary: ``plan_summary``.
    """
    league = _totals(summary).join(_means(steps), on="strategy", how="inner")
    ratio = sf.col("_moved") / sf.nullif(sf.col("minimum_moves"), sf.lit(0))
    left_out = sf.format_string(
        LEFT_OUT,
        sf.col("_left_out"),
        sf.col("_of"),
        sf.col("rebalances") - sf.col("_sound_steps"),
        sf.col("rebalances"),
        sf.concat_ws(BETWEEN_CAVEATS, "_caveats"),
    )
    return league.select(
        "*",
        ratio.alias("amplification"),
        sf.when(sf.col("_left_out") > 0, left_out).alias("caveat"),
    ).select(*PLAN_LEAGUE.column_names)


def _totals(summary: DataFrame) -> DataFrame:
    """Sums over the groups, and of those whose minimum is a measure of the strategy."""
    sound = sf.col("caveat").isNull()
    return summary.groupBy("strategy").agg(
        sf.first("of_rocketmq").alias("of_rocketmq"),
        sf.countDistinct("cluster", "consumer_group").alias("groups"),
        sf.sum("rebalances").alias("rebalances"),
        sf.sum("moved").alias("moved"),
        sf.sum(sf.when(sound, sf.col("moved"))).alias("_moved"),
        sf.sum(sf.when(sound, sf.col("minimum_moves"))).alias("minimum_moves"),
        sf.sum("idle_after").alias("idle_members"),
        sf.sum("orphaned_after").alias("orphaned"),
        sf.count(sf.lit(1)).alias("_of"),
        sf.sum((~sound).cast("INT")).alias("_left_out"),
        sf.sort_array(sf.collect_set("caveat")).alias("_caveats"),
    )


def _means(steps: DataFrame) -> DataFrame:
    """Means of the sound steps: all of one set, so that movement stands beside its balance."""
    sound = _sound()
    return steps.groupBy("strategy").agg(
        sf.avg(sf.when(sound, sf.col("moved"))).alias("moved_per_rebalance"),
        sf.avg(sf.when(sound, sf.col("stickiness"))).alias("stickiness"),
        sf.avg(sf.when(sound, sf.col("peak_ratio"))).alias("mean_peak_ratio"),
        sf.max(sf.when(sound, sf.col("peak_ratio"))).alias("worst_peak_ratio"),
        sf.count(sf.when(sound, sf.lit(1))).alias("_sound_steps"),
    )


def _sound() -> Column:
    """A counted step that says something about its strategy.

    Without a proven minimum there was nothing to divide: members broadcast, so each holds every
    queue and looks as busy as possible and perfectly sticky; or a topic is frozen, members
    subscribe differently, or the group is empty. Queues without an owner make the busiest member
    look less busy.
    """
    return sf.col("counted") & sf.col("minimum_moves").isNotNull() & (sf.col("orphaned") == 0)
