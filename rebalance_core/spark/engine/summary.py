"""What the summary tells, counted from the tables as they were written."""

from collections.abc import Mapping
from typing import Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.engine.units import GROUP


class SparkFacts:
    """What a summary tells of a ledger, from its tables as they were written.

    Args:
        tables: the ledger.
        replay_reasons: as `replay_reasons` counts them.
    """

    def __init__(self, tables: Mapping[str, DataFrame], replay_reasons: Mapping[str, int]) -> None:
        self._tables = tables
        self.replay_reasons = replay_reasons
        self.rejected = rejected_per_code(tables["rejected"])

    def totals(self, worst: int) -> dict[str, Any]:
        """See `ledger_facts`."""
        return ledger_facts(self._tables, worst)


def rejected_per_code(rejected: DataFrame) -> dict[str, int]:
    """How often each issue code occurs in `rejected`; a row may have several."""
    counts = rejected.select(sf.explode("issues.code").alias("code")).groupBy("code").count()
    return {row["code"]: row["count"] for row in counts.orderBy("code").collect()}


def count_by(frame: DataFrame, column: str) -> dict[str, int]:
    """Rows by value of a column."""
    counts = frame.groupBy(column).count().orderBy(column).collect()
    return {row[column]: row["count"] for row in counts}


def replay_reasons(replayed: DataFrame | None) -> dict[str, int]:
    """How many groups took the replay path, by reason."""
    counts = [] if replayed is None else replayed.groupBy("reason").count().collect()
    return {row["reason"]: row["count"] for row in sorted(counts)}


def ledger_facts(tables: Mapping[str, DataFrame], worst: int) -> dict[str, Any]:
    """The numbers of the summary and the `worst` groups, as plain values.

    Args:
        tables: the written tables `epochs`, `group_metrics` and `pull_starts`.
        worst: how many groups to list; those with the most orphaned and shared queues and failed
            starts, then those that moved most.
    """
    groups = _per_group(tables)
    totals = groups.agg(
        sf.count(sf.lit(1)).alias("groups"),
        *[
            sf.coalesce(sf.sum(name), sf.lit(0)).alias(name)
            for name in ("epochs", "moved", "orphaned", "shared", "failed_starts")
        ],
        sf.min("first_ms").alias("first_ms"),
        sf.max("last_ms").alias("last_ms"),
    ).collect()[0]
    trouble = sf.col("orphaned") + sf.col("shared") + sf.col("failed_starts")
    listed = groups.orderBy(trouble.desc(), sf.col("moved").desc(), *GROUP).limit(worst).collect()
    return totals.asDict() | {"worst_groups": [row.asDict() for row in listed]}


def _per_group(tables: Mapping[str, DataFrame]) -> DataFrame:
    last = sf.max_by(sf.struct("status", "queues", "orphaned", "shared", "from_ms"), "epoch")
    states = (
        tables["epochs"]
        .groupBy(*GROUP)
        .agg(
            sf.count(sf.lit(1)).alias("epochs"),
            sf.min("from_ms").alias("first_ms"),
            last.alias("last"),
        )
    )
    moves = (
        tables["group_metrics"]
        .where(sf.col("topic").isNull())
        .groupBy(*GROUP)
        .agg(sf.sum("moved").alias("moved"))
    )
    failures = (
        tables["pull_starts"]
        .where(sf.col("status") == "FAILED")
        .groupBy(*GROUP)
        .agg(sf.count(sf.lit(1)).alias("failed_starts"))
    )
    return (
        states.join(moves, on=list(GROUP), how="left")
        .join(failures, on=list(GROUP), how="left")
        .select(
            *GROUP,
            "epochs",
            sf.coalesce("moved", sf.lit(0)).alias("moved"),
            sf.col("last.orphaned").alias("orphaned"),
            sf.col("last.shared").alias("shared"),
            sf.coalesce("failed_starts", sf.lit(0)).alias("failed_starts"),
            sf.col("last.status").alias("status"),
            sf.col("last.queues").alias("queues"),
            "first_ms",
            sf.col("last.from_ms").alias("last_ms"),
        )
    )
