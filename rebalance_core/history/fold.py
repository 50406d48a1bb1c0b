"""All nights into the tables of history."""

from collections import defaultdict
from collections.abc import Callable, Sequence

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.contracts import history
from rebalance_core.contracts.table import Table, batch_of_rows
from rebalance_core.history.findings import FindingLives
from rebalance_core.history.flaps import NightChurn, flaps_of
from rebalance_core.history.night import ReadColumns, night_of
from rebalance_core.history.owners import Owner
from rebalance_core.history.runs import Run, Runs

ReaderOf = Callable[[Run], ReadColumns]
"""From a run to what reads its tables."""

_GROUP = ["cluster", "consumer_group"]


def fold(
    runs: Runs,
    reader_of: ReaderOf,
    owners: Sequence[Owner] = (),
    progress: Callable[[int, int], object] | None = None,
) -> dict[str, pa.Table]:
    """Make the tables of history, each ordered by its key.

    Memory: the rows of ``group_nights``, and one night's verdicts and findings.

    Args:
        runs: `runs.choose_runs`.
        reader_of: see `ReaderOf`.
        owners: who is told of which groups.
        progress: told how many nights are read, of how many.
    """
    made: dict[str, list[pa.Table | pa.RecordBatch]] = {name: [] for name in history.HISTORY_TABLES}
    settled = _settled(runs.propagated, reader_of)
    lives: dict[str, FindingLives] = defaultdict(FindingLives)
    churn: dict[str, list[NightChurn]] = defaultdict(list)
    kept = _Kept(reader_of)
    for done, (run, cluster) in enumerate(runs.nights, start=1):
        night = night_of(run, cluster, kept.reader(run))
        lives[cluster].add(night)
        churn[cluster].append((night.row, night.churn, night.names))
        made[history.NIGHTS.name].append(batch_of_rows(history.NIGHTS, [night.row]))
        made[history.GROUP_NIGHTS.name].append(_with_settled(night.groups, night.row, settled))
        if progress is not None:
            progress(done, len(runs.nights))
    for cluster in sorted(lives):
        found = lives[cluster].rows(owners)
        made[history.OPEN_FINDINGS.name].append(batch_of_rows(history.OPEN_FINDINGS, found))
        made[history.FLAPS.name].append(batch_of_rows(history.FLAPS, flaps_of(churn[cluster])))
    return {name: _whole(history.HISTORY_TABLES[name], parts) for name, parts in made.items()}


class _Kept:
    """Reads each table of a run once, as the clusters of a run are nights of their own."""

    def __init__(self, reader_of: ReaderOf) -> None:
        self._reader_of = reader_of
        self._folder = ""
        self._tables: dict[str, pa.Table] = {}

    def reader(self, run: Run) -> ReadColumns:
        """A reader of the run, which forgets the run before."""
        if run.folder != self._folder:
            self._folder, self._tables = run.folder, {}
        found = self._reader_of(run)

        def read(table: str, columns: Sequence[str]) -> pa.Table:
            if table not in self._tables:
                self._tables[table] = found(table, columns)
            return self._tables[table]

        return read


def _whole(table: Table, parts: Sequence[pa.Table | pa.RecordBatch]) -> pa.Table:
    tables = [
        pa.Table.from_batches([part]) if isinstance(part, pa.RecordBatch) else part
        for part in parts
    ]
    if not tables:
        return table.arrow_schema().empty_table()
    return pa.concat_tables(tables).sort_by([(name, "ascending") for name in table.key])


def _settled(propagated: Sequence[Run], reader_of: ReaderOf) -> pa.Table | None:
    """The 99 % of how long each change takes, of all runs of `propagate`; None: there is none."""
    found = []
    for run in propagated:
        found.append(reader_of(run)("propagation", [*_GROUP, "change_ms", "convergence_ms_p99"]))
    return pa.concat_tables(found) if found else None


def _with_settled(groups: pa.Table, night: dict[str, object], settled: pa.Table | None) -> pa.Table:
    """The rows with ``settle_p99_ms``: the slowest change within the night."""
    if settled is None:
        return groups
    inside = pc.and_(
        pc.greater_equal(settled["change_ms"], night["start_ms"]),
        pc.less_equal(settled["change_ms"], night["end_ms"]),
    )
    slowest = settled.filter(inside).group_by(_GROUP).aggregate([("convergence_ms_p99", "max")])
    slowest = slowest.rename_columns([*_GROUP, "settle_p99_ms"])
    rows = groups.drop_columns(["settle_p99_ms"]).join(slowest, keys=_GROUP, join_type="left outer")
    rows = rows.sort_by([(name, "ascending") for name in _GROUP])
    return rows.select(groups.column_names).cast(groups.schema)
