"""How many rows were read and how many are bad, counted before anything is simulated."""

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
