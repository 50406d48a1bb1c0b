"""The tables of a plan, out of the passes of a sweep: frames in, frames out."""

from __future__ import annotations

from pyspark.sql import Column, DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts.planning import (
    PLAN_OWNERSHIP,
    PLAN_STEPS,
    PLAN_SUMMARY,
    VARIANT_KEY,
)
from rebalance_core.model.statuses import FROZEN
from rebalance_core.planning.sweep.caveats import (
    CANNOT_POP_CAVEAT,
    FROZEN_CAVEAT,
    ORPHANED_CAVEAT,
    SHARED_CAVEAT,
    UNEVEN_CAVEAT,
)
from rebalance_core.planning.sweep.passes import NUMBER
from rebalance_core.planning.sweep.transitions import SLOWEST
from rebalance_core.planning.sweep.transitions import SUMS as TIMED_SUMS
from rebalance_core.planning.variants import Variants
from rebalance_core.spark.plan.history_columns import given_cluster, history_number

_HISTORY = "_history"
KEY = list(VARIANT_KEY)
QUEUE = ("topic", "broker_name", "queue_id")
_AFTER = (
    "min_clients_per_queue", "max_clients_per_queue", "unreached", "min_redelivery_s",
    "max_redelivery_s", "cannot_pop",
)  # fmt: skip
"""Columns of ``plan_steps`` of which the summary has the last step's only."""


_TIMED = dict.fromkeys(TIMED_SUMS, "DOUBLE") | {SLOWEST: "BIGINT"}


class VariantNames:
    """What the numbers of histories and strategies mean, as small frames."""

    def __init__(self, session: SparkSession, variants: Variants) -> None:
        self._histories = session.createDataFrame(
            [(number, h.name, h.seed) for number, h in enumerate(variants.histories)],
            f"{_HISTORY} INT, scenario STRING, seed BIGINT",
        )
        self._strategies = session.createDataFrame(
            [(number, s.text, s.of_rocketmq) for number, s in enumerate(variants.strategies)],
            f"{NUMBER} INT, strategy STRING, of_rocketmq BOOLEAN",
        )

    def named(self, rows: DataFrame) -> DataFrame:
        """Rows of a pass with scenario, strategy, of_rocketmq and seed, under their own cluster."""
        numbered = rows.withColumn(_HISTORY, history_number()).withColumn(
            "cluster", given_cluster()
        )
        of_history = numbered.join(sf.broadcast(self._histories), on=_HISTORY, how="inner")
        named = of_history.join(sf.broadcast(self._strategies), on=NUMBER, how="inner")
        return named.drop(_HISTORY, NUMBER)


def plan_steps(steps: DataFrame, names: VariantNames) -> DataFrame:
    """The pass ``steps`` as the contract has it."""
    return names.named(steps).select(*PLAN_STEPS.column_names)


def plan_summary(
    steps: DataFrame,
    starts: DataFrame | None,
    peak_rates: DataFrame | None,
    transitions: DataFrame | None = None,
) -> DataFrame:
    """Before and after of every group under every variant.

    Args:
        steps: ``plan_steps``.
        starts: key, replayed_messages and skipped_messages; None: there are no offsets.
        peak_rates: key and peak_messages_per_second; None: there are no rates.
        transitions: key and the figures of `TRANSITION_SCHEMA`; None: nothing was simulated.
    """
    groups = steps.groupBy(*KEY).agg(sf.first("of_rocketmq").alias("of_rocketmq"), *_aggregates())
    shared = sf.col("_shared") | _all_shared("after.")
    caveat = (
        sf.when(
            sf.col("after.cannot_pop").isNotNull(),
            sf.format_string(CANNOT_POP_CAVEAT, sf.col("after.cannot_pop")),
        )
        .when(sf.col("_frozen"), FROZEN_CAVEAT)
        .when(shared, SHARED_CAVEAT)
        .when(sf.col("_uneven"), UNEVEN_CAVEAT)
        .when(sf.col("_unowned"), ORPHANED_CAVEAT)
    )
    owned = sf.col("_owned") | ~shared
    minimum = sf.when(owned & ~sf.col("_uneven"), sf.coalesce("_minimum", sf.lit(0)))
    sound = (minimum > 0) & caveat.isNull()
    summary = groups.select(
        *KEY,
        "of_rocketmq",
        "rebalances",
        *_before_after("members", "members"),
        *_before_after("queues", "queues"),
        sf.when(owned, sf.coalesce("moved", sf.lit(0))).alias("moved"),
        minimum.alias("minimum_moves"),
        sf.when(sound, sf.col("moved") / minimum).alias("amplification"),
        "stickiness",
        *_before_after("max_queues", "peak_queues"),
        *_before_after("peak_ratio", "peak_ratio", nullable=True),
        *_before_after("idle_members", "idle"),
        *_before_after("orphaned", "orphaned"),
        sf.col("_frozen").alias("frozen"),
        caveat.alias("caveat"),
        *_before_after("pop_queues", "pop_queues"),
        *(sf.col(f"after.{name}").alias(name) for name in _AFTER),
    )
    for frame, columns in (
        (starts, {"replayed_messages": "BIGINT", "skipped_messages": "BIGINT"}),
        (peak_rates, {"peak_messages_per_second": "DOUBLE"}),
        (transitions, _TIMED),
    ):
        if frame is not None:
            summary = summary.join(frame.select(*KEY, *columns), on=KEY, how="left")
        else:
            summary = summary.select(
                "*", *(sf.lit(None).cast(kind).alias(name) for name, kind in columns.items())
            )
    # where members share all queues none has an owner; in a frozen topic nothing settles
    settles = sf.col("moved").isNotNull() & ~sf.col("frozen")
    for name in _TIMED:
        summary = summary.withColumn(name, sf.when(settles, sf.col(name)))
    return summary.select(*PLAN_SUMMARY.column_names)


def _aggregates() -> list[Column]:
    counted = sf.col("counted")
    state = sf.struct(
        "members", "queues", "max_queues", "peak_ratio", "idle_members", "orphaned", "status",
        "pop_queues", *_AFTER,
    )  # fmt: skip
    last_before = sf.when(~counted, sf.col("epoch"))
    meant = counted & (sf.col("members") > 0) & (sf.col("queues") > 0)
    frozen = (sf.col("status") == FROZEN) & counted
    return [
        sf.sum(counted.cast("INT")).cast("INT").alias("rebalances"),
        sf.max_by(state, last_before).alias("before"),
        sf.max_by(state, "epoch").alias("after"),
        sf.sum(sf.when(counted, sf.col("moved"))).alias("moved"),
        sf.sum(sf.when(meant, sf.col("minimum_moves"))).alias("_minimum"),
        sf.avg(sf.when(counted, sf.col("stickiness"))).alias("stickiness"),
        sf.coalesce(sf.bool_or(meant & sf.col("minimum_moves").isNull()), sf.lit(False)).alias(
            "_uneven"
        ),
        sf.coalesce(sf.bool_or(meant & (sf.col("orphaned") > 0)), sf.lit(False)).alias("_unowned"),
        sf.coalesce(sf.bool_or(counted & _all_shared()), sf.lit(False)).alias("_shared"),
        sf.coalesce(sf.bool_or(counted & ~_all_shared()), sf.lit(False)).alias("_owned"),
        (
            sf.coalesce(sf.bool_or(frozen), sf.lit(False))
            | (sf.max_by("status", "epoch") == FROZEN)
        ).alias("_frozen"),
    ]


def _all_shared(of: str = "") -> Column:
    """Whether members share all queues that the group has in a step."""
    popped = sf.coalesce(sf.col(f"{of}pop_queues") > 0, sf.lit(False))
    return popped & sf.coalesce(sf.col(f"{of}queues") == 0, sf.lit(False))


def _before_after(field: str, name: str, *, nullable: bool = False) -> list[Column]:
    values = [sf.col(f"{side}.{field}") for side in ("before", "after")]
    if not nullable:  # the group was not there yet
        values[0] = sf.when(sf.col("before").isNull(), sf.lit(0)).otherwise(values[0])
    return [v.alias(f"{name}_{side}") for v, side in zip(values, ("before", "after"), strict=True)]


def plan_ownership(intervals: DataFrame, first_edits: DataFrame, names: VariantNames) -> DataFrame:
    """Owners before and after of each queue.

    Args:
        intervals: the pass ``ownership``.
        first_edits: cluster (a history's) and first_ms; a history without edits has none.
        names: what the numbers mean.
    """
    marked = intervals.join(sf.broadcast(first_edits), on="cluster", how="left")
    first, end = sf.col("first_ms"), sf.col("to_ms")
    before = (sf.col("from_ms") < first) & (end.isNull() | (end >= first))
    before = sf.when(first.isNull(), sf.col("from_epoch") == 0).otherwise(before)
    both = marked.select("*", before.alias("_before"), end.isNull().alias("_after"))
    rows = names.named(both.where("_before OR _after"))
    owners = rows.groupBy(*KEY, "of_rocketmq", *QUEUE).agg(
        *(
            sf.sort_array(sf.collect_set(sf.when(sf.col(f"_{side}"), sf.col("client_id")))).alias(
                f"owners_{side}"
            )
            for side in ("before", "after")
        )
    )
    return owners.select(*PLAN_OWNERSHIP.column_names)


def start_messages(starts: DataFrame, names: VariantNames) -> DataFrame:
    """Messages of the pass ``starts`` by group and variant; parts of a giant group added up."""
    sums = (sf.sum(name).alias(name) for name in ("replayed_messages", "skipped_messages"))
    return names.named(starts).groupBy(*KEY).agg(*sums)


def peak_rates(intervals: DataFrame, rates: DataFrame, names: VariantNames) -> DataFrame:
    """Messages per second of the busiest member at the end, by group and variant.

    The rate of a queue is that of the last stretch of ``queue_rates``; one without a rate is not
    counted. Hypothetical strategies are counted like the others.
    """
    last = rates.groupBy("cluster", *QUEUE).agg(
        sf.max_by("messages_per_second", "from_ms").alias("rate")
    )
    held = names.named(intervals.where("to_ms IS NULL AND client_id IS NOT NULL"))
    known = held.join(last, on=["cluster", *QUEUE], how="inner")
    loads = known.groupBy(*KEY, "client_id").agg(sf.sum("rate").alias("load"))
    return loads.groupBy(*KEY).agg(sf.max("load").alias("peak_messages_per_second"))
