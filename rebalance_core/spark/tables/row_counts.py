"""How many rows were read, how many are bad, and whether that is too many to go on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame
from pyspark.sql import functions as sf

from rebalance_core.model.errors import InputRefused
from rebalance_core.spark.tables.quarantine import Quarantined


@dataclass(frozen=True, slots=True)
class RowCounts:
    """Rows of one input table, and how many of them have an issue."""

    rows: int
    bad: int


@dataclass(frozen=True, slots=True)
class BadRowLimits:
    """How many bad rows an input may have; the defaults are those of ``conf/rebalance.toml``.

    Attributes:
        on_bad_rows: ``quarantine`` puts them into ``rejected``, ``fail`` allows none.
        max_bad_share: Above this share of a table's rows its input is refused either way.
    """

    on_bad_rows: str = "quarantine"
    max_bad_share: float = 0.5


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


def refuse_bad_rows(rows: Mapping[str, int], bad: Mapping[str, int], limits: BadRowLimits) -> None:
    """Raise `InputRefused` if the input is empty or has more bad rows than the limits allow.

    Args:
        rows: rows of each input table.
        bad: how many of them are bad.
        limits: how many may be.
    """
    if rows["cluster_events"] == 0:
        raise InputRefused("cluster_events holds no row; there is nothing to simulate")
    for name, count in bad.items():
        share = count / rows[name] if rows[name] else 0.0
        counted = f"{name}: {count:,} of {rows[name]:,} rows are bad"
        if count and limits.on_bad_rows == "fail":
            raise InputRefused(f"{counted}; --on-bad-rows fail allows none")
        if share > limits.max_bad_share:
            raise InputRefused(
                f"{counted} ({share:.0%}), more than max_bad_share = {limits.max_bad_share}; "
                "is it the right file? --set max_bad_share=1 lists them all in `rejected`"
            )
