"""Arrow arrays as JSON text, as Spark's ``to_json`` writes it."""

from __future__ import annotations

import base64
import re
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.casts.to_text import as_text

_SHORT = {'"': '\\"', "\\": "\\\\", "\b": "\\b", "\t": "\\t", "\n": "\\n", "\f": "\\f", "\r": "\\r"}
_TO_ESCAPE = r'[\x00-\x1f"\\]'
_PATTERN = re.compile(_TO_ESCAPE)


def json_of_rows(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Each row as a JSON object without its null fields.

    Args:
        columns: by name, in order.
        rows: how many there are; without columns each is ``{}``.
    """
    fields = [_field(name, json_of_values(column)) for name, column in columns.items()]
    return _object(fields, rows)


def _field(name: str, value: pa.Array) -> pa.Array:
    return pc.binary_join_element_wise(f"{_quoted(name)}:", value, "")


def _object(fields: list[pa.Array], rows: int) -> pa.Array:
    if not fields:
        return pa.repeat("{}", rows)
    # with nothing but nulls in a row, skipping leaves out the row (pyarrow 26.0)
    empty = reduce(pc.and_, (field.is_null() for field in fields))
    fields = [pc.if_else(empty, "", fields[0]), *fields[1:]]
    inner = pc.binary_join_element_wise(*fields, ",", null_handling="skip")
    return pc.binary_join_element_wise("{", inner, "}", "")


def json_of_values(values: pa.Array, *, null_fields: bool = False) -> pa.Array:
    """Each value as JSON text; a null stays null.

    Args:
        values: of any type that Spark has.
        null_fields: write the null fields of structs (``ignoreNullFields`` false).
    """
    kind = values.type
    if pa.types.is_map(kind):
        return _maps(values, null_fields)
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return _lists(values, null_fields)
    if pa.types.is_struct(kind):
        return _structs(values, null_fields)
    if pa.types.is_string(kind) or pa.types.is_large_string(kind):
        return quoted(values.cast(pa.string()))
    if pa.types.is_floating(kind):
        text = as_text(values)
        return pc.if_else(pc.is_finite(values), text, quoted(text))
    if pa.types.is_timestamp(kind):
        values = values.cast(pa.timestamp("us", kind.tz), safe=False)
    write = _writer(kind)
    if write is None:
        return as_text(values)
    return pa.array([None if v is None else write(v) for v in values.to_pylist()], pa.string())


def _writer(kind: pa.DataType) -> Callable[[Any], str] | None:
    if pa.types.is_decimal(kind):
        return str
    if pa.types.is_timestamp(kind):
        zone = "Z" if kind.tz else ""
        return lambda at: f'"{at:%Y-%m-%dT%H:%M:%S}.{at.microsecond // 1000:03d}{zone}"'
    if pa.types.is_date(kind):
        return lambda day: f'"{day.isoformat()}"'
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return lambda data: f'"{base64.b64encode(data).decode()}"'
    return None


def quoted(texts: pa.Array) -> pa.Array:
    """The texts as JSON strings; all but quotes, backslashes and controls stand as they are."""
    odd = pc.match_substring_regex(texts, _TO_ESCAPE)
    plain = pc.binary_join_element_wise('"', texts, '"', "")
    if not pc.any(odd).as_py():
        return plain
    escaped = [_quoted(text) for text in texts.filter(odd).to_pylist()]
    return pc.replace_with_mask(plain, pc.fill_null(odd, False), pa.array(escaped, pa.string()))


def _quoted(text: str) -> str:
    return f'"{_PATTERN.sub(_escape, text)}"'


def _escape(found: re.Match[str]) -> str:
    return _SHORT.get(found[0], f"\\u{ord(found[0]):04X}")


def _lists(values: pa.Array, null_fields: bool) -> pa.Array:
    elements = json_of_values(values.flatten(), null_fields=null_fields)
    lengths = np.asarray(pc.fill_null(pc.list_value_length(values), 0))
    return _bracketed("[", pc.fill_null(elements, "null"), "]", lengths, values)


def _maps(values: pa.MapArray, null_fields: bool) -> pa.Array:
    offsets = np.asarray(values.offsets)
    first, count = int(offsets[0]), int(offsets[-1] - offsets[0])
    names = quoted(as_text(values.keys.slice(first, count)))
    items = json_of_values(values.items.slice(first, count), null_fields=null_fields)
    texts = pc.binary_join_element_wise(names, pc.fill_null(items, "null"), ":")
    return _bracketed("{", texts, "}", np.diff(offsets), values)


def _bracketed(
    opening: str, parts: pa.Array, closing: str, lengths: np.ndarray, values: pa.Array
) -> pa.Array:
    offsets = np.concatenate([[0], np.cumsum(lengths)])
    lists = pa.ListArray.from_arrays(pa.array(offsets, pa.int32()), parts)
    text = pc.binary_join_element_wise(opening, pc.binary_join(lists, ","), closing, "")
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))


def _structs(values: pa.StructArray, null_fields: bool) -> pa.Array:
    fields = []
    for number, field in enumerate(values.type):
        text = json_of_values(pc.struct_field(values, [number]), null_fields=null_fields)
        fields.append(_field(field.name, pc.fill_null(text, "null") if null_fields else text))
    text = _object(fields, len(values))
    return pc.if_else(values.is_valid(), text, pa.scalar(None, pa.string()))
