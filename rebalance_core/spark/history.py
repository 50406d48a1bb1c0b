"""Nightly audits folded into history, where Spark alone reaches them or keeps what comes of it."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa
from pyspark.sql import SparkSession

from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import HISTORY_TABLES
from rebalance_core.history.fold import fold
from rebalance_core.history.night import ReadColumns
from rebalance_core.history.owners import Owner
from rebalance_core.history.runs import Run, RunList
from rebalance_core.spark.sources import reader_of
from rebalance_core.spark.task_tables import task_tables


def fold_history(
    session: SparkSession,
    runs: RunList,
    owners: Sequence[Owner] = (),
    *,
    leave_out: Callable[[str], object] | None = None,
) -> dict[str, pa.Table]:
    """Make the tables of history on the driver; see `history.fold.fold`."""

    def reader(run: Run) -> ReadColumns:
        read = reader_of(session, run.folder)
        return lambda table, columns: read(table, None).select(columns)

    return fold(runs, reader, owners, leave_out=leave_out)


def write_history(
    session: SparkSession, tables: Mapping[str, pa.Table], output: str
) -> Mapping[str, TableWritten]:
    """Write the tables into a folder.

    Raises:
        OutputExists: a table is there already.
    """
    with task_tables(session, output, tuple(HISTORY_TABLES)) as into:
        for name, rows in tables.items():
            into.add(name, rows)
        return into.finish()
