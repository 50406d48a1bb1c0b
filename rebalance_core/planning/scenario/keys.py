"""The values of an edit's keys, times among them: each reader takes what TOML gives, or says
what is valid.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from rebalance_core.model.errors import RebalanceError, did_you_mean
from rebalance_core.model.times import (
    DAY_MS,
    HOUR_MS,
    INSTANT_FORM,
    MINUTE_MS,
    SECOND_MS,
    read_instant,
)
from rebalance_core.strategies import parse_strategy

# Times as people write them: durations, instants, and moments that hang on a history's end.

_UNIT_MS = {"ms": 1, "s": SECOND_MS, "m": MINUTE_MS, "h": HOUR_MS, "d": DAY_MS}
_PART = r"\d+(?:ms|s|m|h|d)"
_DURATION = re.compile(rf"(?:{_PART})+")
_PARTS = re.compile(r"(\d+)(ms|s|m|h|d)")

END = "end"
DURATION_FORM = 'a duration such as "90s", "5m" or "1h30m"'
MOMENT_FORM = f'"end", "+10m" after it, "-2h" before it, {INSTANT_FORM}'


def read_duration(value: Any) -> int:
    """Milliseconds of a duration; raises ValueError that says what is valid.

    >>> read_duration("1h30m")
    5400000
    """
    text = value.replace(" ", "") if isinstance(value, str) else ""
    if not _DURATION.fullmatch(text):
        raise ValueError(f"expected {DURATION_FORM}")
    return sum(int(number) * _UNIT_MS[unit] for number, unit in _PARTS.findall(text))


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant, or a distance from the end of a cluster's history."""

    ms: int
    from_end: bool

    def at(self, end_ms: int) -> int:
        """Epoch milliseconds in a history whose last event is at ``end_ms``."""
        return end_ms + self.ms if self.from_end else self.ms


END_MOMENT = Moment(1, from_end=True)
"""``end``: just after the last event, so that there is a state before and one after."""


def read_moment(value: Any) -> Moment:
    """The instant of ``at``; raises ValueError that says what is valid.

    >>> read_moment("-2h").at(end_ms=10_000_000)
    2800000
    """
    if isinstance(value, str):
        text = value.strip()
        if text == END:
            return END_MOMENT
        if text[:1] in ("+", "-"):
            try:
                distance = read_duration(text[1:])
            except ValueError:
                raise ValueError(f"expected {MOMENT_FORM}") from None
            return Moment(distance if text[0] == "+" else -distance, from_end=True)
    try:
        return Moment(read_instant(value), from_end=False)
    except ValueError as error:
        form = str(error).startswith("expected")
        raise ValueError(f"expected {MOMENT_FORM}" if form else str(error)) from None


# The values of an edit's keys: each reader takes what TOML gives, or says what is valid.
#
# Readers raise ValueError whose message goes behind ``key = value:``.

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
