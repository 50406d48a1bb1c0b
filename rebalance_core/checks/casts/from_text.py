"""Texts as the contract's types: what Spark's ``try_cast`` and ``from_json`` make of them."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from rebalance_core.checks.reading.json_text import array_of_text, map_of_text
from rebalance_core.contracts.table import arrow_type

# Spark trims white space and control characters around numbers and words, Java's \s around 4.0.
_WHOLE = re.compile(
    r"[\x00-\x20\x7f]*([+-]?[0-9]+)[\x00-\x20\x7f]*|[ \t-\r]*([+-]?[0-9]+)\.0+[ \t-\r]*"
)
"""pandas writes the integers of a column that has gaps as 4.0."""
_TRIMMED = "".join(map(chr, (*range(0x21), 0x7F)))
_WORDS = {
    **dict.fromkeys(("t", "true", "y", "yes", "1"), True),
    **dict.fromkeys(("f", "false", "n", "no", "0"), False),
}
_JAVA_SPACE = "".join(map(chr, range(0x21)))  # String.trim
_DECIMAL = re.compile(r"[+-]?(?:[0-9]+\.?[0-9]*|\.[0-9]+)(?:[eE][+-]?[0-9]+)?[fFdD]?")
_HEXADECIMAL = re.compile(
    r"[+-]?0[xX](?:[0-9a-fA-F]+\.?[0-9a-fA-F]*|\.[0-9a-fA-F]+)[pP][+-]?[0-9]+[fFdD]?"
)
_SPECIAL = re.compile(r"(?i:[+-]?inf|[+-]?infinity|nan)|[+-]NaN")
_DIGITS = {"INT": 9, "BIGINT": 18}


def value_of_text(texts: pa.Array, sql_type: str) -> pa.Array:
    """The texts as values of a contract's type, null where they are none."""
    kind = arrow_type(sql_type)
    if sql_type == "STRING":
        return texts
    if sql_type in _DIGITS:
        regular = pc.match_substring_regex(texts, rf"^-?[0-9]{{1,{_DIGITS[sql_type]}}}$")
        return _regular_cast(texts, regular, kind, _whole_of(kind.bit_width))
    if sql_type == "DOUBLE":
        regular = pc.match_substring_regex(texts, r"^-?[0-9]{1,15}(?:\.[0-9]{1,15})?$")
        return _regular_cast(texts, regular, kind, _double)
    parse = {
        "BOOLEAN": _boolean,
        "ARRAY<STRING>": array_of_text,
        "MAP<STRING, STRING>": map_of_text,
    }
    return _each(texts, parse[sql_type], kind)


def _regular_cast(
    texts: pa.Array, regular: pa.Array, kind: pa.DataType, parse: Callable[[str], Any]
) -> pa.Array:
    """Cast what is regular at once, and parse the rest one by one."""
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


def _whole_of(bits: int) -> Callable[[str], int | None]:
    limit = 2 ** (bits - 1)
    longest = len(str(limit))

    def whole(text: str) -> int | None:
        found = _WHOLE.fullmatch(text)
        if found is None:
            return None
        digits = found[1] or found[2]
        if len(digits.lstrip("+-").lstrip("0")) > longest:
            return None
        value = int(digits)
        return value if -limit <= value < limit else None

    return whole


def _boolean(text: str) -> bool | None:
    word = text.strip(_TRIMMED)
    return _WORDS.get(word.lower()) if word.isascii() else None


def _double(text: str) -> float | None:
    """``Double.parseDouble``, and the words that Spark knows besides."""
    text = text.strip(_JAVA_SPACE)
    if _DECIMAL.fullmatch(text) or _SPECIAL.fullmatch(text):
        return float(text.rstrip("fFdD") if text[-1:] in "fFdD" and text[-2:-1] in _AFTER else text)
    if _HEXADECIMAL.fullmatch(text):
        return _hexadecimal(text.rstrip("fFdD"))
    return None


_AFTER = "0123456789."


def _hexadecimal(text: str) -> float:
    try:
        return float.fromhex(text)
    except OverflowError:
        return float("-inf") if text.startswith("-") else float("inf")
