"""What an audit compares with: the observed tables, and the findings of an ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import ALL_TABLES, FINDING_TABLES, OBSERVED_TABLES, REJECTED
from rebalance_core.spark.tables.conformed_frames import conform
from rebalance_core.spark.tables.quarantine import check, split
from rebalance_core.spark.tables.read import read_table, tables_in

READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES)


@dataclass(frozen=True, eq=False)
class Observed:
    """The tables by name, each there and maybe empty; ``rejected`` has the rows that are none."""

    tables: Mapping[str, DataFrame]
    rejected: DataFrame


def read_observed(spark: SparkSession, folder: str) -> Observed:
    """The tables that lie by name in the folder, as `InputTables.read` reads its own; lazy.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    locations = tables_in(spark, folder, READ_TABLES)
    frames = {
        name: read_table(spark, ALL_TABLES[name], path)[0] for name, path in locations.items()
    }
    return observed(spark, frames)


def observed(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Observed:
    """The tables out of frames by name, checked; those that are not there are empty.

    Raises:
        InputRefused: a table lacks columns.
    """
    good: dict[str, DataFrame] = {}
    rejected = [spark.createDataFrame([], REJECTED.plain_ddl)]
    for name in READ_TABLES:
        table = ALL_TABLES[name]
        if name not in frames:
            good[name] = spark.createDataFrame([], table.plain_ddl)
            continue
        rows, bad = split(check(name, conform(table, frames[name])), name)
        good[name] = rows.select(*table.column_names)
        rejected.append(bad)
    return Observed(good, reduce(DataFrame.unionByName, rejected))
