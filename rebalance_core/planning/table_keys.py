"""Keys of the tables in a planner's files: how values are read, and the mistakes in them."""

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from rebalance_core.model.errors import RebalanceError, did_you_mean, unknown_keys
from rebalance_core.model.languages import parse_language
from rebalance_core.model.versions import parse_version
from rebalance_core.strategies import parse_strategy

MOST_CONSUMERS = 10_000
"""The maximum number that an edit may add or remove; a larger one is assumed to be a mistake."""
MOST_QUEUES = 65_536
"""The maximum number of queues of a topic on a broker; the same limit as in the input tables."""

ValueReader = Callable[[Any], Any]
"""Reads a TOML or Python value; raises a ValueError whose message follows ``key = value:``."""

_SET = re.compile(r"\[!?+\]?+[^\]]*\]")  # as fnmatch reads it


class Mistakes(ValueError):
    """Several complete sentences about a value."""


@dataclass(frozen=True, slots=True)
class TableKey:
    """A key of a table: how its value is read, and its default."""

    read: ValueReader
    default: Any = None
    required: bool = False


def required(read: ValueReader) -> TableKey:
    """Return a key that is required."""
    return TableKey(read, required=True)


def key(read: ValueReader, default: Any = None) -> Any:
    """Declare a field of a dataclass as an optional key of the table."""
    metadata = {"key": TableKey(read, default)}
    if isinstance(default, dict):
        return field(default_factory=default.copy, metadata=metadata)
    return field(default=default, metadata=metadata)


def needed(read: ValueReader) -> Any:
    """Declare a field of a dataclass as a required key of the table."""
    return field(metadata={"key": required(read)})


def keys_of(table: Any) -> dict[str, TableKey]:
    """Return the keys that the fields of a dataclass declare, in order."""
    return {
        declared.name: declared.metadata["key"]
        for declared in fields(table)
        if "key" in declared.metadata
    }


def words(value: Any) -> str:
    """Read a non-empty string."""
    if not isinstance(value, str) or not value.strip():
        raise ValueError("expected text that is not empty")
    return value


def texts(value: Any) -> tuple[str, ...]:
    """Read a string or a list of strings."""
    items = [value] if isinstance(value, str) else value
    if not isinstance(items, list | tuple) or not items:
        raise ValueError('expected a string or a list of strings, e.g. ["a", "b"]')
    try:
        return tuple(words(item) for item in items)
    except ValueError:
        raise ValueError('expected a string or a list of strings, e.g. ["a", "b"]') from None


def patterns(value: Any) -> tuple[str, ...]:
    """Read a glob or a list of globs: ``*``, ``?`` and ``[ab]``."""
    globs = texts(value)
    if any("[" in _SET.sub("", glob) for glob in globs):
        raise ValueError("[ begins a set of characters that ] must end; write [[] for a literal [")
    return globs


def one_of(*valid: str) -> ValueReader:
    """Return a reader of one of these words."""

    def read(value: Any) -> str:
        if value not in valid:
            hint = did_you_mean(str(value), valid)
            raise ValueError(f"expected one of {', '.join(valid)}{hint}")
        return str(value)

    return read


def whole(low: int, high: int) -> ValueReader:
    """Return a reader of whole numbers in a range."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low:,} to {high:,}")
        return value

    return read


def number_that(fits: Callable[[float], bool], valid: str) -> ValueReader:
    """Return a reader that accepts only numbers that fit; ``valid`` describes them in words."""

    def read(value: Any) -> float:
        if isinstance(value, bool) or not isinstance(value, int | float) or not fits(value):
            raise ValueError(f"expected a number {valid}")
        return float(value)

    return read


def number(low: float, high: float) -> ValueReader:
    """Return a reader of numbers above ``low`` and up to ``high``."""
    return number_that(lambda value: low < value <= high, f"above {low:g} and up to {high:g}")


def yes_or_no(value: Any) -> bool:
    """Read true or false."""
    if not isinstance(value, bool):
        raise ValueError("expected true or false")
    return value


def parsed(parse: Callable[[str], Any]) -> ValueReader:
    """Return a reader that parses text with a function that raises errors of this package."""

    def read(value: Any) -> Any:
        try:
            return parse(words(value))
        except RebalanceError as error:
            raise ValueError(str(error)) from None

    return read


def _of_version(text: str) -> str:
    parse_version(text)
    return text


language = parsed(parse_language)
version = parsed(_of_version)
"""Reads a RocketMQ version; the text is unchanged."""
strategy = parsed(lambda text: str(parse_strategy(text)))
"""Reads a strategy text, printed as the parser prints it."""


def read_values(
    table: Mapping[str, Any],
    keys: Mapping[str, TableKey],
    whose: str = "",
    valid_keys: Collection[str] | None = None,
    valid: str = "valid keys",
) -> tuple[dict[str, Any], list[tuple[str, str]]]:
    """Return the values of a table as its keys read them, and (key, mistake) for the others.

    Args:
        table: the table as read from the file.
        keys: the keys of its kind.
        whose: the owner of an unknown key, in words.
        valid_keys: all keys, including those that are tables; None: ``keys``.
        valid: the name for them in messages.
    """
    valid_keys = keys if valid_keys is None else valid_keys
    values = dict[str, Any]()
    unknown = (key for key in table if key not in keys)
    wrong = list(unknown_keys(unknown, valid_keys, whose=whose, valid=valid))
    for key, value in table.items():
        if key not in keys:
            continue
        try:
            values[key] = keys[key].read(value)
        except Mistakes as mistakes:
            wrong += ((key, text) for text in mistakes.args)
        except ValueError as error:
            wrong.append((key, f"{key} = {value!r}: {error}"))
    return values, wrong
