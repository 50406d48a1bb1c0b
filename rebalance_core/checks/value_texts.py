"""Values as strings: in string columns, in messages, and in the text of a whole row."""

import json
from collections.abc import Mapping
from typing import Any

import pyarrow as pa

_WRITER = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), default=str)


def text_of(value: Any) -> str | None:
    """Return a JSON value as text: strings unchanged, everything else as JSON without spaces.

    Half of a surrogate pair, which UTF-8 cannot encode, becomes a question mark.

    >>> [text_of(each) for each in ("a", None, 5, 4.0, True, ["é", {"n": None}])]
    ['a', None, '5', '4.0', 'true', '["é",{"n":null}]']
    """
    if value is None:
        return None
    text = value if isinstance(value, str) else json_of(value)
    return text if text.isascii() else text.encode("utf-8", "replace").decode()


def json_of(value: Any) -> str:
    """Return the value as JSON without spaces; values that JSON cannot represent, such as times,
    become strings.
    """
    return str(value) if type(value) is int else _WRITER.encode(value)


def as_text(values: pa.Array) -> pa.Array:
    """Return the values of any type as strings; nulls stay null.

    Floats have the fewest digits that round-trip (``4.0``, ``1e+23``); lists, structs and maps are
    JSON; bytes are read as UTF-8; other types are cast by pyarrow.
    """
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_float32(kind):
        return pa.array([None if v is None else str(v) for v in _narrow(values)], pa.string())
    if pa.types.is_floating(kind) or pa.types.is_nested(kind):
        return pa.array(map(text_of, python_values(values)), pa.string())
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        texts = [None if v is None else v.decode("utf-8", "replace") for v in values.to_pylist()]
        return pa.array(texts, pa.string())
    return values.cast(pa.string())


def _narrow(values: pa.Array) -> list[Any]:
    """Return 32-bit floats as numpy's, which print fewer digits than Python's."""
    numbers = values.to_numpy(zero_copy_only=False)
    return [n if v else None for n, v in zip(numbers, values.is_valid().to_pylist(), strict=True)]


def python_values(values: pa.Array) -> list[Any]:
    """Return the values as Python objects: maps as dictionaries, times as strings.

    Python's times end in the year 9999.
    """
    if pa.types.is_timestamp(values.type):
        return list(values.cast(pa.string()).to_pylist())
    if not pa.types.is_map(values.type):
        return list(values.to_pylist())
    return [None if value is None else dict(value) for value in values.to_pylist()]


def json_of_rows(columns: Mapping[str, pa.Array], rows: int) -> pa.Array:
    """Return each row as a JSON object without its null fields.

    Args:
        columns: the columns, by name, in order.
        rows: the number of rows; without columns, each is ``{}``.
    """
    if not columns:
        return pa.repeat("{}", rows)
    texts = (
        json_of({n: v for n, v in zip(columns, row, strict=True) if v is not None})
        for row in zip(*map(python_values, columns.values()), strict=True)
    )
    return pa.array(texts, pa.string())
