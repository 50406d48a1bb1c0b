"""Strings in the contract's types: pyarrow casts regular ones, others are converted singly."""

import json
import re
from collections.abc import Callable
from math import isfinite
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.value_texts import text_of
from rebalance_core.contracts.table import (
    arrow_type,
)

MOST_DIGITS = 1_000
"""Integers in JSON with more digits are read as floats."""
EXACT_BELOW = 2.0**53
"""From this value on, integers stored as floats may have lost digits."""
_SPACE = " \t\n\r\v\f"
_WHOLE = re.compile(r"[+-]?[0-9]{1,40}")
_NUMBER = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?")
_WORDS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_DIGITS = {"INT": 9, "BIGINT": 18}


def value_of_text(texts: pa.Array, sql_type: str) -> pa.Array:
    """Return the strings as values of a contract's type, null where invalid.

    Numbers and words may have surrounding spaces. ``4.0`` is whole, because pandas writes integers
    that way in a column with gaps; NaN and infinities are not numbers. Arrays and maps are JSON.
    """
    kind = arrow_type(sql_type)
    if sql_type == "STRING":
        return texts
    if sql_type in _DIGITS:
        regular = pc.match_substring_regex(texts, rf"^-?[0-9]{{1,{_DIGITS[sql_type]}}}$")
        limit = 2 ** (kind.bit_width - 1)
        return _regular_cast(texts, regular, kind, lambda text: _whole(text, limit))
    if sql_type == "DOUBLE":
        regular = pc.match_substring_regex(texts, r"^[0-9]{1,15}(?:\.[0-9]{1,15})?$")
        return _regular_cast(texts, regular, kind, _double)
    parse = {"BOOLEAN": _boolean, "ARRAY<STRING>": _array, "MAP<STRING, STRING>": _map}
    return _each(texts, parse[sql_type], kind)


def _regular_cast(
    texts: pa.Array, regular: pa.Array, kind: pa.DataType, parse: Callable[[str], Any]
) -> pa.Array:
    """Cast regular strings in bulk, and parse the others one by one."""
    odd = pc.fill_null(pc.invert(regular), False)
    if not pc.any(odd).as_py():
        return texts.cast(kind)
    values = pc.if_else(odd, pa.scalar(None, pa.string()), texts).cast(kind)
    return pc.replace_with_mask(values, odd, _each(texts.filter(odd), parse, kind))


def _each(texts: pa.Array, parse: Callable[[str], Any], kind: pa.DataType) -> pa.Array:
    """Parse each distinct text once."""
    encoded = texts.dictionary_encode()
    values = [parse(text) for text in encoded.dictionary.to_pylist()]
    return pa.array(values, kind).take(encoded.indices)


def _whole(text: str, limit: int) -> int | None:
    text = text.strip(_SPACE)
    if _WHOLE.fullmatch(text):
        value = int(text)
        return value if -limit <= value < limit else None
    number = _double(text)
    if number is None or abs(number) >= min(limit, EXACT_BELOW) or not number.is_integer():
        return None
    return int(number)


def _double(text: str) -> float | None:
    text = text.strip(_SPACE)
    number = float(text) if _NUMBER.fullmatch(text) else None
    return number + 0.0 if number is not None and isfinite(number) else None  # -0.0 becomes 0.0


def _boolean(text: str) -> bool | None:
    return _WORDS.get(text.strip(_SPACE).lower())


def load_json(text: str) -> Any:
    """Parse a JSON text; raise ValueError if it is invalid, or RecursionError if it is too deep."""
    return _READER.decode(text)


def _integer(digits: str) -> int | float:
    return int(digits) if len(digits) <= MOST_DIGITS else float(digits)


_READER = json.JSONDecoder(parse_int=_integer)


def _loaded(text: str) -> Any:
    try:
        return load_json(text)
    except (ValueError, RecursionError):
        return None


def _array(text: str) -> list[str | None] | None:
    """Return a JSON array's elements as strings, or None if it is not an array or has a null."""
    value = _loaded(text)
    return list(map(text_of, value)) if isinstance(value, list) and None not in value else None


def _map(text: str) -> list[tuple[str | None, str | None]] | None:
    value = _loaded(text)
    if not isinstance(value, dict):
        return None
    return [(text_of(name), text_of(each)) for name, each in value.items()]
