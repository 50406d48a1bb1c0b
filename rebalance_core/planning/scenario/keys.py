"""The values of an edit's keys: each reader takes what TOML gives, or says what is valid.

Readers raise ValueError whose message goes behind ``key = value:``.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.errors import RebalanceError, did_you_mean
from rebalance_core.strategies import parse_strategy

Reader = Callable[[Any], Any]

_SET = re.compile(r"\[!?+\]?+[^\]]*\]")  # as fnmatch reads one


@dataclass(frozen=True, slots=True)
class Key:
    """One key of an edit: how its value is read and what it is if it is not given."""

    read: Reader
    default: Any = None
    required: bool = False


def required(read: Reader) -> Key:
    """A key that must be given."""
    return Key(read, required=True)


def words(value: Any) -> str:
    """Text that is not empty."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected text that is not empty")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """One text or a list of them."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list) or not items:
        raise ValueError('expected text or a list of texts, e.g. ["a", "b"]')
    try:
        return tuple(words(item) for item in items)
    except ValueError:
        raise ValueError('expected text or a list of texts, e.g. ["a", "b"]') from None


def patterns(value: Any) -> tuple[str, ...]:
    """One glob or a list of them: ``*``, ``?`` and ``[ab]``."""
    globs = texts(value)
    if any("[" in _SET.sub("", glob) for glob in globs):
        raise ValueError("[ begins a set of characters and ] must end it; [[] is the sign [ itself")
    return globs


def one_of(*valid: str) -> Reader:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in valid:
            hint = did_you_mean(str(value), valid)
            raise ValueError(f"expected one of {', '.join(valid)}{hint}")
        return str(value)

    return read


def whole(low: int, high: int) -> Reader:
    """A whole number of a range."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low:,} to {high:,}")
        return value

    return read


def number(low: float, high: float) -> Reader:
    """A number above ``low`` and up to ``high``."""

    def read(value: Any) -> float:
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        if not fits or not low < value <= high:
            raise ValueError(f"expected a number above {low:g} and up to {high:g}")
        return float(value)

    return read


def strategy(value: Any) -> str:
    """A strategy text, printed as the parser prints it."""
    try:
        return str(parse_strategy(words(value)))
    except RebalanceError as error:
        raise ValueError(str(error)) from None
