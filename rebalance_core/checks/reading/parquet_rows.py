"""Parquet files as one Arrow table, every row with the file and row it came from."""

from __future__ import annotations

from collections.abc import Sequence
from urllib.parse import unquote

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from rebalance_core.contracts.technical_columns import SOURCE, TECHNICAL
from rebalance_core.model.errors import InputRefused
from rebalance_core.storage.locations import Location, place_of
from rebalance_core.storage.place import Place

_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"


def parquet_rows(path: str, files: Sequence[Location]) -> tuple[pa.Table, list[str]]:
    """The rows for `conform`, and the names of all columns.

    The schema is the first file's; columns that another lacks are null there. Folders named
    ``column=value`` add a column.

    Raises:
        InputRefused: a file is no Parquet, or its types do not fit those of the first.
    """
    try:
        tables = [_rows_of_file(place_of(file)) for file in files]
        parts = [_with_schema(each, tables[0].schema) for each in tables]
        rows = pa.concat_tables(parts)
    except (pa.ArrowException, OSError) as error:
        raise InputRefused(f"{path} cannot be read as parquet: {error}") from error
    names = [name for name in rows.column_names if name != SOURCE]
    return rows, names


def _rows_of_file(file: Place) -> pa.Table:
    opened = pq.ParquetFile(file.path, filesystem=file.file_system)
    read = opened.read()
    columns = {n: read.column(n) for n in read.column_names if n not in TECHNICAL}
    for leaf in map(opened.schema.column, range(len(opened.schema))):
        if leaf.physical_type == "INT96" and leaf.path in columns:
            # the timestamps of Spark and old Hive are moments; pyarrow takes them for local times
            moments = columns[leaf.path].cast(pa.timestamp("us"), safe=False)
            columns[leaf.path] = moments.cast(pa.timestamp("us", "UTC"))
    for name, value in _partition(file.path).items():
        columns[name] = pa.chunked_array([pa.repeat(pa.scalar(value, pa.string()), len(read))])
    numbers = pa.array(np.arange(1, len(read) + 1)).cast(pa.string())
    source = pc.binary_join_element_wise(file.name, numbers, ":")
    return pa.table({**columns, SOURCE: source})


def _with_schema(rows: pa.Table, schema: pa.Schema) -> pa.Table:
    """The columns of the schema; null if the rows lack one."""
    columns = [
        rows.column(field.name).cast(field.type)
        if field.name in rows.column_names
        else pa.nulls(len(rows), field.type)
        for field in schema
    ]
    return pa.table(columns, schema.names)


def _partition(file: str) -> dict[str, str | None]:
    """The columns that the folders above the file name, as texts."""
    pairs = (part.partition("=") for part in file.split("/")[:-1] if "=" in part)
    return {unquote(k): None if v == _NO_VALUE else unquote(v) for k, _, v in pairs}
