"""Tables as a run of this version or an earlier one wrote them, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rebalance_core.contracts import ALL_TABLES, CONTRACT_VERSION, SIMULATED_TABLES
from rebalance_core.engine.units import GROUP
from rebalance_core.storage.locations import Location, place_of
from rebalance_core.storage.table_files import whole

GroupName = tuple[str, str]
ReadWritten = Callable[[str, GroupName | None], pa.Table]
"""From the name of a table that a run wrote to its rows: those of a (cluster, group), or all."""


def read_written(
    folder: Location,
    table: str,
    rows: pc.Expression | None = None,
    *,
    contract_version: int = CONTRACT_VERSION,
) -> pa.Table:
    """A table with the contract's columns; one that an earlier version did not write is null.

    A whole table that it did not write is empty.

    Args:
        folder: of the run.
        table: its name.
        rows: which rows; None: all.
        contract_version: of the run.

    Raises:
        FileNotFoundError: the table is not there, and should be.
    """
    schema = ALL_TABLES[table].arrow_schema()
    if ALL_TABLES[table].since > contract_version:
        return schema.empty_table()
    found = _dataset(folder, table).to_table(filter=rows)
    return whole(found, schema)


def reader_of(folder: Location) -> ReadWritten:
    """Reads the tables of a folder."""

    def read(table: str, group: GroupName | None) -> pa.Table:
        if group is None:
            return read_written(folder, table)
        named = (pc.field("cluster") == group[0]) & (pc.field("consumer_group") == group[1])
        return read_written(folder, table, named)

    return read


def batches_of_written(folder: Location, table: str) -> Iterator[pa.RecordBatch]:
    """The same rows, some at a time."""
    schema = ALL_TABLES[table].arrow_schema()
    for batch in _dataset(folder, table).to_batches(batch_readahead=1):
        yield from whole(pa.Table.from_batches([batch]), schema).to_batches()


class LedgerFiles:
    """The simulated tables in a folder, read for some groups at a time.

    Args:
        folder: of the tables. Groups are best read in the order in which they were written.
        contract_version: of the run that wrote them.
    """

    def __init__(self, folder: Location, contract_version: int = CONTRACT_VERSION) -> None:
        self._folder = folder
        self._version = contract_version

    def rows_by_group(self) -> dict[GroupName, int]:
        """How many rows of all tables each group has; only their names are read."""
        total: dict[GroupName, int] = {}
        for name, table in SIMULATED_TABLES.items():
            if table.since > self._version:
                continue
            files = _dataset(self._folder, name)
            for batch in files.to_batches(columns=list(GROUP), batch_readahead=1):
                names = pa.Table.from_batches([batch]).group_by(list(GROUP))
                for row in names.aggregate([([], "count_all")]).to_pylist():
                    group = (row["cluster"], row["consumer_group"])
                    total[group] = total.get(group, 0) + row["count_all"]
        return total

    def of(self, groups: list[GroupName]) -> dict[str, pa.Table]:
        """The rows of these groups by table, and maybe of others."""
        first, last = min(groups), max(groups)
        cluster, group = pc.field("cluster"), pc.field("consumer_group")
        after = (cluster > first[0]) | ((cluster == first[0]) & (group >= first[1]))
        before = (cluster < last[0]) | ((cluster == last[0]) & (group <= last[1]))
        return {
            name: read_written(self._folder, name, after & before, contract_version=self._version)
            for name in SIMULATED_TABLES
        }


def _dataset(folder: Location, table: str) -> ds.Dataset:
    place = place_of(folder) / table
    return ds.dataset(place.path, filesystem=place.file_system, format="parquet")
