"""Rows as dicts to Arrow and back; a map is a dict."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from rebalance_core.contracts.table import Column, Table, arrow_type

if TYPE_CHECKING:
    import pyarrow as pa

Row = Mapping[str, Any]


def batch_of_rows(table: Table, rows: Sequence[Row]) -> pa.RecordBatch:
    """The rows with all columns of the table; those that a row lacks are null."""
    return batch_of_columns(
        table, {c.name: [row.get(c.name) for row in rows] for c in table.columns}
    )


def batch_of_columns(table: Table, values: Mapping[str, Any]) -> pa.RecordBatch:
    """Lists or arrays of equal length by column, with all columns of the table; others are null."""
    import pyarrow as pa

    length = max(map(len, values.values()), default=0)
    arrays = [_array(column, values.get(column.name), length) for column in table.columns]
    return pa.RecordBatch.from_arrays(arrays, schema=table.arrow_schema())


def rows_of_arrow(table: pa.Table | pa.RecordBatch) -> list[dict[str, Any]]:
    """The rows as dicts."""
    import pyarrow as pa

    rows: list[dict[str, Any]] = table.to_pylist()
    for field in table.schema:
        if pa.types.is_map(field.type):
            for row in rows:
                if row[field.name] is not None:
                    row[field.name] = dict(row[field.name])
    return rows


def _array(column: Column, values: Any, length: int) -> pa.Array:
    import pyarrow as pa

    kind = arrow_type(column.type)
    if values is None:
        return pa.nulls(length, kind)
    if pa.types.is_map(kind):
        values = [None if value is None else list(value.items()) for value in values]
    try:
        return pa.array(values, kind)
    except UnicodeEncodeError:  # half of a surrogate pair, which JSON can escape and UTF-8 has not
        return pa.array(list(map(_encodable, values)), kind)


def _encodable(value: Any) -> Any:
    """The value with a question mark for each lone surrogate, as the JVM encodes it."""
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, Mapping):
        return {_encodable(key): _encodable(one) for key, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, bytes):
        return type(value)(map(_encodable, value))  # type: ignore[call-arg]  # a list or a tuple
    return value
