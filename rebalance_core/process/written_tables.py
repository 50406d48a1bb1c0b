"""Tables as a run of this version or an earlier one wrote them, in this process or on Spark."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.dataset as ds
import pyarrow.parquet as pq

from rebalance_core.contracts import ALL_TABLES
from rebalance_core.storage.place import Location, Place, place_of

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


def event_span(folder: Location) -> tuple[int | None, int | None]:
    """Times of the first and the last event of the ``cluster_events`` that a run wrote."""
    times = _dataset(folder, "cluster_events").to_table(["event_ms"]).column(0)
    first, last = pc.min_max(times).as_py().values()
    return first, last


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


def whole(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema; one that an earlier version did not write is null."""
    # Files of Spark say NOT NULL where the contract does; nothing else differs.
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)


def batches_of_file(file: Place, schema: pa.Schema) -> Iterator[pa.RecordBatch]:
    """The rows of one file, some at a time, with the columns of the schema."""
    with pq.ParquetFile(file.path, filesystem=file.file_system) as opened:
        for batch in opened.iter_batches():
            yield from whole(pa.Table.from_batches([batch]), schema).to_batches()
