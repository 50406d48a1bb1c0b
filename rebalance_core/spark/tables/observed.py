"""What an audit compares with: the observed tables, and the findings of an ingest."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import reduce

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import ALL_TABLES, FINDING_TABLES, OBSERVED_TABLES, REJECTED
from rebalance_core.spark.tables.quarantine import check
from rebalance_core.spark.tables.read import read_table, tables_in
from rebalance_core.spark.tables.sources import Source, source_of
from rebalance_core.spark.tables.written import read_numbered
from rebalance_core.storage.place import Place

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
    return _observed(
        spark, {name: read_table(spark, ALL_TABLES[name], path) for name, path in locations.items()}
    )


def stored_observed(spark: SparkSession, folder: Place) -> Observed:
    """The tables that a job of ours wrote into a folder of an object store; lazy."""
    return observed(spark, {name: read_numbered(spark, folder, name) for name in READ_TABLES})


def observed(spark: SparkSession, frames: Mapping[str, DataFrame]) -> Observed:
    """The tables out of frames by name, checked; those that are not there are empty.

    Raises:
        InputRefused: a table lacks columns.
    """
    return _observed(spark, {n: source_of(ALL_TABLES[n], f) for n, f in frames.items()})


def _observed(spark: SparkSession, sources: Mapping[str, Source]) -> Observed:
    good: dict[str, DataFrame] = {}
    rejected = [spark.createDataFrame([], REJECTED.plain_ddl)]
    for name in READ_TABLES:
        table = ALL_TABLES[name]
        if name not in sources:
            good[name] = spark.createDataFrame([], table.plain_ddl)
            continue
        checked = check({name: sources[name]})
        good[name] = checked.tables[name].select(*table.column_names)
        rejected.append(checked.rejected)
    return Observed(good, reduce(DataFrame.unionByName, rejected))
