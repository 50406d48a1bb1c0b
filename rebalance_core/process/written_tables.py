"""Tables as a run of this version or an earlier one wrote them, in this process or on Spark."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core.contracts import ALL_TABLES


def read_written(folder: Path, table: str) -> pa.Table:
    """A table with the contract's columns; one that an earlier version did not write is null.

    Args:
        folder: of the run.
        table: its name.

    Raises:
        FileNotFoundError: the table is not there.
    """
    schema = ALL_TABLES[table].arrow_schema()
    # Files of Spark say NOT NULL where the contract does; nothing else differs.
    rows = pq.read_table(folder / table, partitioning=None)
    columns = [
        rows[field.name].cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema=schema)
