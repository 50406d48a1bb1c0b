"""The history job: fold nightly audits into the tables of history."""

from collections.abc import Callable, Mapping, Sequence

import pyarrow as pa

from rebalance_core.checks.digest import TableWritten
from rebalance_core.history.fold import fold
from rebalance_core.history.night import ReadColumns
from rebalance_core.history.owners import Owner
from rebalance_core.history.runs import Run, RunList
from rebalance_core.process.runtime import HERE, Runtime
from rebalance_core.storage.place import Location

Progress = Callable[[int, int], object]


def fold_history(
    runs: RunList,
    owners: Sequence[Owner] = (),
    *,
    leave_out: Callable[[str], object] | None = None,
    progress: Progress | None = None,
    runtime: Runtime = HERE,
) -> dict[str, pa.Table]:
    """Make the tables of history from runs that the runtime can reach; see `history.fold.fold`."""

    def reader(run: Run) -> ReadColumns:
        read = runtime.reader(run.folder)
        return lambda table, columns: read(table, columns=columns)

    return fold(runs, reader, owners, progress, leave_out)


def write_history(
    tables: Mapping[str, pa.Table], output: Location, *, runtime: Runtime = HERE
) -> Mapping[str, TableWritten]:
    """Write the tables into a folder.

    Raises:
        OutputExists: a table already exists.
    """
    with runtime.tables(output, tables) as into:
        for name, rows in tables.items():
            into.add(name, rows)
        return into.finish()
