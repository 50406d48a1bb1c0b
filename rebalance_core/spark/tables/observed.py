"""What an audit compares with: the observed tables, and the findings of an ingest."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import ALL_TABLES, FINDING_TABLES, OBSERVED_TABLES
from rebalance_core.spark.tables.read import read_table, tables_in
from rebalance_core.spark.tables.sources import Source, source_of
from rebalance_core.spark.tables.written import read_numbered
from rebalance_core.storage.place import Place

READ_TABLES = (*OBSERVED_TABLES, *FINDING_TABLES)


def read_observed(spark: SparkSession, folder: str) -> dict[str, Source]:
    """The tables that lie by name in the folder, as `InputTables.read` reads its own; lazy.

    Raises:
        InputRefused: a table lacks columns, is there twice or is not readable.
    """
    locations = tables_in(spark, folder, READ_TABLES)
    return {name: read_table(spark, ALL_TABLES[name], path) for name, path in locations.items()}


def stored_observed(spark: SparkSession, folder: Place) -> dict[str, Source]:
    """The tables that a job of ours wrote into a folder of an object store; lazy."""
    return observed({name: read_numbered(spark, folder, name) for name in READ_TABLES})


def observed(frames: Mapping[str, DataFrame]) -> dict[str, Source]:
    """The tables out of frames by name, which may have others as well.

    Raises:
        InputRefused: a table lacks columns.
    """
    there = [name for name in READ_TABLES if name in frames]
    return {name: source_of(ALL_TABLES[name], frames[name]) for name in there}
