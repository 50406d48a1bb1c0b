"""Nightly audits folded into history, in this process."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import HISTORY_TABLES
from rebalance_core.engine.table_writer import TableWriters, read_written
from rebalance_core.history.fold import fold
from rebalance_core.history.night import ReadColumns
from rebalance_core.history.owners import Owner
from rebalance_core.history.runs import Run, RunList
from rebalance_core.storage.place import Location, place_of

Progress = Callable[[int, int], object]


def fold_history(
    runs: RunList,
    owners: Sequence[Owner] = (),
    *,
    leave_out: Callable[[str], object] | None = None,
    progress: Progress | None = None,
) -> dict[str, pa.Table]:
    """Make the tables of history of runs that this process reaches; see `history.fold.fold`."""
    return fold(runs, _reader, owners, progress, leave_out)


def write_history(tables: Mapping[str, pa.Table], output: Location) -> Mapping[str, TableWritten]:
    """Write the tables into a folder.

    Raises:
        OutputExists: a table is there already.
    """
    with TableWriters(output, tuple(HISTORY_TABLES)) as writers:
        writers.write_tables(tables)
    return writers.written()


def _reader(run: Run) -> ReadColumns:
    place = place_of(run.folder)
    return lambda table, columns: read_written(place, table, columns=columns)
