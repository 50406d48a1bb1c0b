"""Arrow arrays as text, as Spark casts them to STRING."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_core.checks.casts.java_text import double_text, float_text


def as_text(values: pa.Array) -> pa.Array:
    """The values as ``CAST(… AS STRING)`` writes them; nulls stay nulls.

    Doubles as a Java since version 19 writes them; before, a few above 1e17 had a digit more.
    """
    kind = values.type
    if pa.types.is_string(kind):
        return values
    if pa.types.is_floating(kind):
        return _each(values, _float_writer(kind))
    if pa.types.is_decimal(kind):
        return _each(values, lambda value: f"{value:f}")
    if pa.types.is_timestamp(kind):
        return _each(values.cast(pa.timestamp("us", kind.tz), safe=False), _timestamp)
    if pa.types.is_binary(kind) or pa.types.is_large_binary(kind):
        return _each(values, lambda value: value.decode("utf-8", "replace"))
    if pa.types.is_nested(kind):
        return pa.array([_nested(value) for value in values], pa.string())
    return values.cast(pa.string())


def _each(values: pa.Array, write: Callable[[Any], str]) -> pa.Array:
    """Write each distinct value once."""
    encoded = values.dictionary_encode()
    texts = [write(value) for value in encoded.dictionary.to_pylist()]
    return pa.array(texts, pa.string()).take(encoded.indices)


def _float_writer(kind: pa.DataType) -> Callable[[float], str]:
    if pa.types.is_float64(kind):
        return double_text
    narrow = np.float32
    return lambda value: float_text(
        value, lambda x: np.format_float_scientific(narrow(x), trim="0")
    )


def _timestamp(value: datetime) -> str:
    fraction = f".{value.microsecond:06d}".rstrip("0") if value.microsecond else ""
    return f"{value:%Y-%m-%d %H:%M:%S}{fraction}"


def _nested(value: pa.Scalar) -> str | None:
    """``[a, null]``, ``{b -> 1}`` and ``{x, y}``: arrays, maps and structs."""
    if not value.is_valid:
        return None
    kind = value.type
    if pa.types.is_struct(kind):
        return f"{{{', '.join(_element(value[n]) for n in range(kind.num_fields))}}}"
    if pa.types.is_map(kind):
        entries = ((entry[0], entry[1]) for entry in value.values)
        return f"{{{', '.join(f'{_element(k)} -> {_element(v)}' for k, v in entries)}}}"
    if pa.types.is_list(kind) or pa.types.is_large_list(kind):
        return f"[{', '.join(_element(element) for element in value.values)}]"
    text: str = as_text(pa.array([value.as_py()], kind))[0].as_py()
    return text


def _element(value: pa.Scalar) -> str:
    text = _nested(value)
    return "null" if text is None else text
