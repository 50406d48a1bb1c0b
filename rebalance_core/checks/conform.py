"""Conversion of any Arrow table to a contract table: casts, missing columns, and unreadable values.

Besides the contract's columns, the result has each row's source and its unreadable values.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.typed_values import value_of_text
from rebalance_core.checks.value_texts import as_text, json_of_rows
from rebalance_core.contracts import Table
from rebalance_core.contracts.table import (
    ISSUES_TYPE,
    RAW,
    READ_ISSUES,
    SOURCE,
    TECHNICAL,
    Column,
    arrow_type,
)
from rebalance_core.contracts.time_ranges import TIME_RANGES
from rebalance_core.model.errors import InputRefused

SHOWN_CHARACTERS = 200
"""Maximum characters of a bad value in a message; the whole row is in `rejected.raw`."""


@dataclass(frozen=True, eq=False)
class Issue:
    """An issue of some rows: their numbers in ascending order, the code, and a message for each."""

    rows: np.ndarray
    code: str
    messages: Sequence[str]


def conformed_schema(table: Table) -> pa.Schema:
    """Return the contract's columns and `TECHNICAL`."""
    technical = [(SOURCE, pa.string()), (RAW, pa.string()), (READ_ISSUES, arrow_type(ISSUES_TYPE))]
    return pa.schema([*table.arrow_schema(), *technical])


def issues_array(rows: int, issues: Iterable[Issue]) -> pa.ListArray:
    """Return the issues of each of ``rows`` rows, keeping the order passed within a row."""
    parts = [each for each in issues if len(each.rows)]
    numbers = np.concatenate([np.zeros(0, np.int64), *(each.rows for each in parts)])
    codes = np.repeat([each.code for each in parts], [len(each.rows) for each in parts])
    messages = [message for each in parts for message in each.messages]
    order = np.argsort(numbers, kind="stable")
    offsets = np.searchsorted(numbers[order], np.arange(rows + 1))
    struct = pa.StructArray.from_arrays(
        [
            pa.array(codes[order] if parts else [], pa.string()),
            pa.array([messages[n] for n in order], pa.string()),
        ],
        fields=list(arrow_type(ISSUES_TYPE).value_type),
    )
    return pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), struct).cast(
        arrow_type(ISSUES_TYPE)
    )


def joined_issues(first: pa.ListArray, second: pa.ListArray) -> pa.ListArray:
    """Return the issues of both, row by row, those of the first before those of the second."""
    lengths = [np.asarray(each.value_lengths()) for each in (first, second)]
    if not lengths[0].any():
        return second
    if not lengths[1].any():
        return first
    rows = np.concatenate([np.repeat(np.arange(len(length)), length) for length in lengths])
    values = pa.concat_arrays([first.flatten(), second.flatten()])
    order = np.argsort(rows, kind="stable")
    offsets = np.concatenate([[0], np.cumsum(lengths[0] + lengths[1])])
    return pa.ListArray.from_arrays(
        pa.array(offsets, pa.int32()), values.take(pa.array(order))
    ).cast(arrow_type(ISSUES_TYPE))


MOST_NAMES = 20
"""Maximum number of columns that a message names."""


def conform(table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows with exactly the columns of ``table``, in order and type, and `TECHNICAL`.

    Missing nullable columns are added as null, and unknown columns are dropped. A value that does
    not have the contract's type becomes null and a ``BAD_TYPE`` in ``_read_issues``; nothing is
    nulled silently. NaN (a gap in pandas) becomes null. Conformed rows are returned as they are.

    Rows without text of their own get one in ``_raw``, their fields as JSON, unless the contract's
    columns already contain everything; then it stays null, and `with_text` creates it on demand.

    Raises:
        InputRefused: a column appears twice, or non-null columns are missing; the message names all
            of them.
    """
    present = rows.schema.names
    refuse_repeated_columns(table.name, present)
    refuse_missing_columns(table, present)
    schema = conformed_schema(table)
    if set(schema.names) <= set(present) and all(
        rows.schema.field(field.name).type == field.type for field in schema
    ):
        return rows.select(schema.names).cast(schema)
    plain = _plain_types(rows)
    batches = [_conformed(table, batch, schema) for batch in plain.to_batches()]
    return pa.Table.from_batches(batches, schema)


def with_text(table: Table, rows: pa.Table) -> pa.Table:
    """Return the rows with the text that `conform` left out; unchanged without a column `RAW`."""
    if RAW not in rows.schema.names:
        return rows
    missing = rows.column(RAW).is_null()
    if not pc.any(missing).as_py():
        return rows
    parts = [
        json_of_rows({name: batch.column(name) for name in table.column_names}, len(batch))
        for batch in rows.to_batches()
    ]
    text = pc.coalesce(rows.column(RAW), pa.chunked_array(parts, pa.string()))
    return rows.set_column(rows.schema.get_field_index(RAW), RAW, text)


def refuse_repeated_columns(where: str, names: Sequence[str]) -> None:
    """Raise `InputRefused` if a column's name appears twice, as it is unclear which one counts."""
    repeated = sorted(name for name, times in Counter(names).items() if times > 1)
    if repeated:
        raise InputRefused(f"{where} names {some_names(repeated)} more than once")


def refuse_missing_columns(table: Table, present: Sequence[str]) -> None:
    """Raise `InputRefused` if non-null columns are missing."""
    missing = [c.name for c in table.columns if not c.nullable and c.name not in present]
    if missing:
        present_columns = [name for name in present if name not in TECHNICAL]
        hint = "; separate a CSV's columns by commas, in UTF-8"
        odd = len(present_columns) == 1 or any(not name.isprintable() for name in present)
        raise InputRefused(
            f"{table.name} lacks the column(s) {', '.join(missing)}; it has "
            f"{some_names(present_columns) or 'none'}; required: "
            + ", ".join(c.name for c in table.columns if not c.nullable)
            + (hint if odd else "")
        )


def some_names(names: Sequence[str]) -> str:
    """Return the names for a message, at most `MOST_NAMES`."""
    left_out = len(names) - MOST_NAMES
    more = f" and {left_out:,} more" if left_out > 0 else ""
    return ", ".join(map(_printable, names[:MOST_NAMES])) + more


def unknown_columns(table: str, names: Sequence[str]) -> str:
    """Return text about columns that are ignored."""
    return f"{table} has unknown column(s), not read: {some_names(names)}"


def _printable(name: str) -> str:
    return "".join(sign if sign.isprintable() else "?" for sign in name)


def _plain_types(rows: pa.Table) -> pa.Table:
    """Return the rows in plain types, without dictionaries, views or half floats."""
    fields = [pa.field(field.name, plain_type(field.type)) for field in rows.schema]
    return rows.cast(pa.schema(fields))


def plain_type(kind: pa.DataType) -> pa.DataType:
    """Return the plain type for values of ``kind``."""
    if pa.types.is_dictionary(kind):
        return plain_type(kind.value_type)
    if pa.types.is_large_string(kind) or pa.types.is_string_view(kind):
        return pa.string()
    if pa.types.is_float16(kind):
        return pa.float32()
    if pa.types.is_list(kind) or pa.types.is_large_list(kind) or pa.types.is_fixed_size_list(kind):
        return pa.list_(plain_type(kind.value_type))
    if pa.types.is_map(kind):
        return pa.map_(plain_type(kind.key_type), plain_type(kind.item_type))
    return kind


def _conformed(table: Table, rows: pa.RecordBatch, schema: pa.Schema) -> pa.RecordBatch:
    present = {name: rows.column(name) for name in rows.schema.names}
    values, bad_types = [], []
    columns_read = [name for name in present if name not in TECHNICAL]
    complete = columns_read == [name for name in table.column_names if name in present]
    for column in table.columns:
        read = present.get(column.name)
        if read is None:
            values.append(pa.nulls(len(rows), arrow_type(column.type)))
            continue
        moments = _is_moment(read.type, column)
        value = _milliseconds(read) if moments else _typed(read, column.type)
        values.append(value)
        if value is not read:
            complete = False
            bad_types.append(_bad_types(column, read, value))
    issues = issues_array(len(rows), bad_types)
    if READ_ISSUES in present:
        earlier = present[READ_ISSUES].cast(issues.type)
        issues = joined_issues(earlier, issues)
    columns = [*values, *_place(present, len(rows), complete), issues]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _place(present: dict[str, pa.Array], rows: int, complete: bool) -> list[pa.Array]:
    """Return the columns `SOURCE` and `RAW`; the latter is null if the contract's columns keep
    everything.
    """
    source, raw = present.get(SOURCE, present.get("source")), present.get(RAW)
    if raw is None and complete:
        raw = pa.nulls(rows, pa.string())
    elif raw is None:
        raw = json_of_rows({n: v for n, v in present.items() if n not in TECHNICAL}, rows)
    return [pa.nulls(rows, pa.string()) if source is None else as_text(source), raw]


def _is_moment(kind: pa.DataType, column: Column) -> bool:
    """Return True for a column of timestamps; a duration in ms stays a number."""
    return column.name in TIME_RANGES and column.type == "BIGINT" and pa.types.is_timestamp(kind)


_PARTS_OF_A_MS = {"us": 1_000, "ns": 1_000_000}
_MOST_SECONDS = (2**63 - 1) // 1_000


def _milliseconds(times: pa.Array) -> pa.Array:
    """Return timestamps as epoch milliseconds; a time without a zone counts as UTC.

    Arrow stores times with a zone in UTC. Fractions of a millisecond are truncated.
    """
    unit = times.type.unit
    if unit in _PARTS_OF_A_MS:
        whole = pc.floor_temporal(times, 1, "millisecond").cast(pa.int64())
        return pc.divide(whole, _PARTS_OF_A_MS[unit])
    numbers = times.cast(pa.int64())
    if unit == "ms":
        return numbers
    fit = pc.less_equal(pc.abs(numbers), _MOST_SECONDS)
    return pc.multiply(pc.if_else(fit, numbers, None), 1_000)


def _typed(values: pa.Array, sql_type: str) -> pa.Array:
    """Return the values as the contract's type, null where invalid; the same array if it fits."""
    read_type, wanted = values.type, arrow_type(sql_type)
    if pa.types.is_null(read_type):
        return pa.nulls(len(values), wanted)
    if (
        sql_type == "ARRAY<STRING>"
        and pa.types.is_list(read_type)
        and _is_text(read_type.value_type)
    ):
        return _without_null_elements(_texts_of_lists(values))
    if (
        sql_type == "MAP<STRING, STRING>"
        and pa.types.is_map(read_type)
        and _is_text(read_type.key_type)
        and _is_text(read_type.item_type)
    ):
        return values if read_type == wanted else _texts_of_maps(values)
    if read_type == wanted:
        return values
    if not _is_text(read_type):
        return pa.nulls(len(values), wanted)
    if sql_type in ("INT", "BIGINT") and (
        pa.types.is_floating(read_type) or pa.types.is_decimal(read_type)
    ):
        return _whole_numbers(values, wanted)
    return value_of_text(as_text(values), sql_type)


def _is_text(kind: pa.DataType) -> bool:
    """Return True for types with a single text form: no lists or structs, and no undeclared
    bytes.
    """
    return not (
        pa.types.is_nested(kind)
        or pa.types.is_binary(kind)
        or pa.types.is_large_binary(kind)
        or pa.types.is_binary_view(kind)
        or pa.types.is_fixed_size_binary(kind)
    )


def _whole_numbers(values: pa.Array, wanted: pa.DataType) -> pa.Array:
    """Return floats or decimals that are whole and fit, null for others."""
    limit = 2 ** (wanted.bit_width - 1)
    whole = [
        int(value) if value is not None and value == value and _fits(value, limit) else None
        for value in values.to_pylist()
    ]
    return pa.array(whole, wanted)


def _fits(value: float, limit: int) -> bool:
    return -limit <= value < limit and value == int(value)


def _texts_of_lists(values: pa.Array) -> pa.Array:
    if pa.types.is_string(values.type.value_type):
        return values
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    offsets = pa.array(np.concatenate([[0], np.cumsum(lengths)]), pa.int32())
    return pa.ListArray.from_arrays(offsets, as_text(values.flatten()), mask=values.is_null())


def _without_null_elements(values: pa.Array) -> pa.Array:
    if values.flatten().null_count == 0:
        return values
    wrong = pc.list_parent_indices(values).filter(values.flatten().is_null())
    keep = np.ones(len(values), bool)
    keep[np.asarray(wrong)] = False
    return pc.if_else(pa.array(keep), values, pa.scalar(None, values.type))


def _texts_of_maps(values: pa.MapArray) -> pa.Array:
    first, end = values.offsets[0].as_py(), values.offsets[-1].as_py()
    keys = as_text(values.keys.slice(first, end - first))
    items = as_text(values.items.slice(first, end - first))
    offsets = pa.array(np.asarray(values.offsets) - first, pa.int32())
    maps = pa.MapArray.from_arrays(offsets, keys, items)
    return pc.if_else(values.is_valid(), maps, pa.scalar(None, maps.type))


def _bad_types(column: Column, read: pa.Array, value: pa.Array) -> Issue:
    bad = pc.and_(read.is_valid(), value.is_null())
    if pa.types.is_floating(read.type):
        bad = pc.and_(bad, pc.fill_null(pc.invert(pc.is_nan(read)), False))
    rows = np.flatnonzero(np.asarray(bad))
    wrong = read.take(pa.array(rows))
    shown = as_text(wrong)
    unit = " (epoch milliseconds)" if column.name in TIME_RANGES else ""
    messages = [
        f"{column.name} is '{text[:SHOWN_CHARACTERS]}', not a valid {column.type}{unit}"
        for text in shown.to_pylist()
    ]
    return Issue(rows, "BAD_TYPE", messages)
