"""Tagged rows of tasks to the tables of producers."""

from __future__ import annotations

from collections.abc import Mapping

import pyarrow as pa
from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.producers.simulation.parts import PARTS, TALLIES, TALLY_KEY, TALLY_SUMS
from rebalance_core.producers.simulation.tagged import KIND
from rebalance_core.spark.driver_rows import rows_of
from rebalance_core.spark.tables.write import write_table


def of_kind(tagged: DataFrame, name: str) -> DataFrame:
    """The rows of one table."""
    names = [f"`{column}`" for column in PARTS[name].column_names]
    return tagged.where(sf.col(KIND) == name).select(*names)


def tallies_of(tagged: DataFrame) -> pa.Table:
    """The counts of all tasks added up; as many rows as there are queues and variants."""
    sums = [sf.sum(name).alias(name) for name in TALLY_SUMS]
    extremes = [
        sf.max("recovery_ms").alias("recovery_ms"),
        sf.min("from_ms").alias("from_ms"),
        sf.max("to_ms").alias("to_ms"),
    ]
    added = of_kind(tagged, TALLIES.name).groupBy(*TALLY_KEY).agg(*sums, *extremes)
    return pa.Table.from_pylist(rows_of(added), TALLIES.arrow_schema())


def write_answers(
    session: SparkSession, answers: Mapping[str, pa.Table], output: str
) -> dict[str, TableWritten]:
    """Write small tables that are on the driver."""
    written = {}
    for name, rows in answers.items():
        values = [tuple(row.values()) for row in rows.to_pylist()]
        frame = session.createDataFrame(values, ALL_TABLES[name].plain_ddl)
        written[name] = write_table(frame.coalesce(1), output, name)
    return written
