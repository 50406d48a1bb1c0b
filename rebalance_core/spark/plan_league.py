"""``plan_league``: every strategy over everything that was planned."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.contracts.planning import PLAN_LEAGUE


def plan_league(steps: DataFrame, summary: DataFrame) -> DataFrame:
    """Every strategy over everything, by name."""
    sound = sf.col("caveat").isNull()
    totals = summary.groupBy("strategy").agg(
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
    counted = sf.col("counted")
    # a queue that nobody reads makes the busiest member look idle
    peak_ratio = sf.when(counted & (sf.col("orphaned") == 0), sf.col("peak_ratio"))
    balance = steps.groupBy("strategy").agg(
        sf.avg(sf.when(counted, sf.col("stickiness"))).alias("stickiness"),
        sf.avg(peak_ratio).alias("mean_peak_ratio"),
        sf.max(peak_ratio).alias("worst_peak_ratio"),
    )
    left_out = sf.format_string(
        "amplification leaves out %d of %d groups (per variant): %s",
        sf.col("_left_out"),
        sf.col("_of"),
        sf.concat_ws("; ", "_caveats"),
    )
    ratio = sf.col("_moved") / sf.nullif(sf.col("minimum_moves"), sf.lit(0))
    per_step = sf.col("moved") / sf.nullif(sf.col("rebalances"), sf.lit(0))
    league = totals.join(balance, on="strategy", how="inner").select(
        "*",
        per_step.alias("moved_per_rebalance"),
        ratio.alias("amplification"),
        sf.when(sf.col("_left_out") > 0, left_out).alias("caveat"),
    )
    return league.select(*PLAN_LEAGUE.column_names)
