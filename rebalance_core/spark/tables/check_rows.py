"""How many rows were read, how many are bad and why, counted before anything is simulated."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.checks.row_counts import Complaint, RowCounts
from rebalance_core.spark.tables.quarantine import Quarantined, quarantine
from rebalance_core.spark.tables.read import InputTables


def check_rows(
    inputs: InputTables, max_queue_nums: int, warn: Callable[[str], object] | None = None
) -> tuple[Quarantined, Mapping[str, RowCounts]]:
    """The checked tables, kept until closed, and how many rows of each are bad.

    Args:
        inputs: the tables as read.
        max_queue_nums: as of `quarantine`.
        warn: gets a text for each table with unknown columns, which are not read.
    """
    if warn is not None:
        for name, columns in inputs.unknown_columns().items():
            warn(f"{name} has unknown column(s), not read: {', '.join(columns)}")
    checked = quarantine(inputs, max_queue_nums=max_queue_nums)
    try:
        return checked, count_rows(checked)
    except BaseException:
        checked.close()
        raise


def count_rows(checked: Quarantined) -> Mapping[str, RowCounts]:
    """Counts by table name; one job over all tables."""
    counted = [
        frame.select(sf.lit(name).alias("name"), (sf.size("issues") > 0).cast("INT").alias("bad"))
        for name, frame in checked.checked.items()
    ]
    totals = (
        reduce(DataFrame.unionByName, counted)
        .groupBy("name")
        .agg(sf.count(sf.lit(1)).alias("total"), sf.sum("bad").alias("bad"))
    )
    counts = {row["name"]: RowCounts(row["total"], row["bad"]) for row in totals.collect()}
    return {name: counts.get(name, RowCounts(0, 0)) for name in checked.checked}


def complaints(rejected: DataFrame) -> list[Complaint]:
    """The issues of rows of ``rejected``, by table and code, the most frequent first; one job."""
    issue = sf.explode("issues").alias("issue")
    line = sf.regexp_extract("source", r"[:@](\d+)$", 1).try_cast("BIGINT")
    file = sf.regexp_replace("source", r"[:@]\d+$", "")
    rows = rejected.select("table_name", file.alias("file"), line.alias("line"), "source", issue)
    first = sf.min(sf.struct("file", "line", "source", "issue.message")).alias("first")
    counted = rows.groupBy("table_name", sf.col("issue.code").alias("code")).agg(
        sf.count(sf.lit(1)).alias("times"), first
    )
    return [
        Complaint(
            row["table_name"],
            row["code"],
            row["times"],
            row["first"]["source"] or "",
            row["first"]["message"],
        )
        for row in counted.orderBy("table_name", sf.desc("times"), "code").collect()
    ]
