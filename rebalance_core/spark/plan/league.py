"""``plan_league``: every strategy over everything that was planned."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as sf

from rebalance_core.contracts.planning import PLAN_LEAGUE
from rebalance_core.planning.sweep.caveats import (
    BETWEEN_CAVEATS,
    BETWEEN_COUNTS,
    LEFT_OUT,
    STAY,
    STAY_COUNT,
)
from rebalance_core.planning.sweep.scenario_figures import EXTREMES
from rebalance_core.planning.variants import POP

_OF_OWNED = ("moved", "minimum_moves", "amplification", "moved_per_rebalance", "stickiness",
             "mean_peak_ratio", "worst_peak_ratio")  # fmt: skip


def plan_league(steps: DataFrame, summary: DataFrame) -> DataFrame:
    """A row for each strategy, over all groups, scenarios and seeds.

    Sums are of all groups; amplification and the means leave out steps that say nothing about a
    strategy.

    Args:
        steps: ``plan_steps``.
        summary: ``plan_summary``.
    """
    league = _totals(summary).join(_means(steps), on="strategy", how="inner")
    is_popped = sf.col("strategy").startswith(f"{POP}(")
    ratio = sf.col("_moved") / sf.nullif(sf.col("minimum_moves"), sf.lit(0))
    left_out = sf.format_string(
        LEFT_OUT,
        sf.col("_left_out"),
        sf.col("_of"),
        sf.col("rebalances") - sf.col("_sound_steps"),
        sf.col("rebalances"),
        sf.concat_ws(BETWEEN_CAVEATS, "_caveats"),
    )
    told = league.join(_stay(summary), on="strategy", how="left").select(
        "*",
        ratio.alias("amplification"),
        sf.when(is_popped, sf.col("_stay")).when(sf.col("_left_out") > 0, left_out).alias("caveat"),
    )
    # what is owned is of groups that cannot pop
    nothing = {name: sf.when(~is_popped, sf.col(name)) for name in _OF_OWNED}
    return told.withColumns(nothing).select(*PLAN_LEAGUE.column_names)


def _stay(summary: DataFrame) -> DataFrame:
    """By strategy: how many groups cannot pop, by reason, in words."""
    counts = summary.groupBy("strategy", "cannot_pop").agg(sf.count(sf.lit(1)).alias("n"))
    reason = sf.col("cannot_pop")
    text = sf.when(reason.isNotNull(), sf.format_string(STAY_COUNT, sf.col("n"), reason))
    in_order = sf.sort_array(
        sf.collect_list(sf.when(text.isNotNull(), sf.struct(reason, text.alias("text"))))
    )
    listed = sf.concat_ws(BETWEEN_COUNTS, sf.transform(in_order, lambda one: one["text"]))
    stay = sf.sum(sf.when(reason.isNotNull(), sf.col("n")))
    return counts.groupBy("strategy").agg(
        sf.when(stay > 0, sf.format_string(STAY, stay, sf.sum("n"), listed)).alias("_stay")
    )


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
        sf.sum("pop_queues_after").alias("pop_queues"),
        sf.sum("unreached").alias("unreached"),
        sf.count("cannot_pop").alias("cannot_pop"),
        *(getattr(sf, how)(name).alias(name) for name, how in EXTREMES.items()),
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
