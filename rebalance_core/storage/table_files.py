"""Files of a table as a run of this version or an earlier one wrote them."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pyarrow.parquet as pq

from rebalance_core.storage.place import Place


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
