"""Tables as a run of this version or an earlier one wrote them, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.storage.place import Location, place_of, whole

GroupName = tuple[str, str]
ReadWritten = Callable[[str, GroupName | None], pa.Table]
"""From the name of a table that a run wrote to its rows: those of a (cluster, group), or all."""


def read_written(folder: Location, table: str, rows: pc.Expression | None = None) -> pa.Table:
    """A table with the contract's columns; one that an earlier version did not write is null.

    Args:
        folder: of the run.
        table: its name.
        rows: which rows; None: all.

    Raises:
        FileNotFoundError: the table is not there.
    """
    schema = ALL_TABLES[table].arrow_schema()
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


def _dataset(folder: Location, table: str) -> ds.Dataset:
    place = place_of(folder) / table
    return ds.dataset(place.path, filesystem=place.file_system, format="parquet")
