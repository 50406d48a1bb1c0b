"""What was written, counted from the written tables themselves: rows, digests, the worst groups."""

from typing import TYPE_CHECKING, Any

from rebalance_core.cli.run_record import TableRecord

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

GROUP = ["cluster", "consumer_group"]


def table_record(table: "DataFrame") -> TableRecord:
    """Rows and a digest that depends on the rows alone: not on their order, files or partitions.

    128 bits: the sums, modulo 2**64, of two hashes of every row. One pass over the table.
    """
    from pyspark.sql import functions as F

    values = [_hashable(table, name) for name in table.columns]
    # xxhash64 skips nulls: without their places (null, 1) and (1, null) would be equal.
    nulls = F.concat_ws("", *[F.col(name).isNull().cast("string") for name in table.columns])
    rows, first, second = table.select(
        F.xxhash64(nulls, *values).cast("decimal(38,0)").alias("first"),
        F.xxhash64(*values, nulls).cast("decimal(38,0)").alias("second"),
    ).agg(F.count(F.lit(1)), F.sum("first"), F.sum("second")).collect()[0]
    return TableRecord(rows, f"{int(first or 0) % 2**64:016x}{int(second or 0) % 2**64:016x}")


def _hashable(table: "DataFrame", name: str) -> "Column":
    from pyspark.sql import functions as F
    from pyspark.sql.types import MapType

    column = F.col(name)
    if isinstance(table.schema[name].dataType, MapType):
        return F.array_sort(F.map_entries(column))
    return column


def rejected_per_code(rejected: "DataFrame") -> dict[str, int]:
    """How often each issue code stands in `rejected`; a row may have several."""
    from pyspark.sql import functions as F

    counts = rejected.select(F.explode("issues.code").alias("code")).groupBy("code").count()
    return {row["code"]: row["count"] for row in counts.orderBy("code").collect()}


def ledger_facts(tables: "dict[str, DataFrame]", worst: int) -> dict[str, Any]:
    """The numbers of the summary and the `worst` groups, as plain values.

    Args:
        tables: the written tables `epochs`, `group_metrics` and `pull_starts`.
        worst: how many groups to list; those with the most orphaned and shared queues and failed
            starts, then those that moved most.
    """
    from pyspark.sql import functions as F

    groups = _per_group(tables)
    totals = groups.agg(
        F.count(F.lit(1)).alias("groups"),
        *[
            F.coalesce(F.sum(name), F.lit(0)).alias(name)
            for name in ("epochs", "moved", "orphaned", "shared", "failed_starts")
        ],
        F.min("first_ms").alias("first_ms"),
        F.max("last_ms").alias("last_ms"),
    ).collect()[0]
    trouble = F.col("orphaned") + F.col("shared") + F.col("failed_starts")
    listed = groups.orderBy(trouble.desc(), F.col("moved").desc(), *GROUP).limit(worst).collect()
    return totals.asDict() | {"worst_groups": [row.asDict() for row in listed]}


def _per_group(tables: "dict[str, DataFrame]") -> "DataFrame":
    from pyspark.sql import functions as F

    last = F.max_by(F.struct("status", "queues", "orphaned", "shared", "from_ms"), "epoch")
    states = tables["epochs"].groupBy(*GROUP).agg(
        F.count(F.lit(1)).alias("epochs"), F.min("from_ms").alias("first_ms"), last.alias("last")
    )
    moves = (
        tables["group_metrics"]
        .where(F.col("topic").isNull())
        .groupBy(*GROUP)
        .agg(F.sum("moved").alias("moved"))
    )
    failures = (
        tables["pull_starts"]
        .where(F.col("status") == "FAILED")
        .groupBy(*GROUP)
        .agg(F.count(F.lit(1)).alias("failed_starts"))
    )
    return (
        states.join(moves, on=GROUP, how="left")
        .join(failures, on=GROUP, how="left")
        .select(
            *GROUP,
            "epochs",
            F.coalesce("moved", F.lit(0)).alias("moved"),
            F.col("last.orphaned").alias("orphaned"),
            F.col("last.shared").alias("shared"),
            F.coalesce("failed_starts", F.lit(0)).alias("failed_starts"),
            F.col("last.status").alias("status"),
            F.col("last.queues").alias("queues"),
            "first_ms",
            F.col("last.from_ms").alias("last_ms"),
        )
    )
