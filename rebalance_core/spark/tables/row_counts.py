"""How many rows were read, how many are bad and why, counted before anything is simulated."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.spark.tables.quarantine import Quarantined


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of one input table, and how many of them have an issue."""

    rows: int
    bad: int


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
    found = {row["name"]: RowCounts(row["total"], row["bad"]) for row in totals.collect()}
    return {name: found.get(name, RowCounts(0, 0)) for name in checked.checked}


@dataclass(frozen=True, slots=True)
class Complaint:
    """What is wrong with rows of a table: how often, and with the first row of them."""

    table: str
    code: str
    times: int
    source: str
    message: str


def complaints(rejected: DataFrame) -> list[Complaint]:
    """The issues of rows of ``rejected``, by table and code, the most frequent first; one job."""
    found = sf.explode("issues").alias("found")
    line = sf.regexp_extract("source", r"[:@](\d+)$", 1).try_cast("BIGINT")
    file = sf.regexp_replace("source", r"[:@]\d+$", "")
    rows = rejected.select("table_name", file.alias("file"), line.alias("line"), "source", found)
    first = sf.min(sf.struct("file", "line", "source", "found.message")).alias("first")
    counted = rows.groupBy("table_name", sf.col("found.code").alias("code")).agg(
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
