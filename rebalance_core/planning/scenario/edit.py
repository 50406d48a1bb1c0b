"""An edit of a scenario: a frozen value that acts on groups, the cluster or both; and how its
keys are read.
"""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from rebalance_core.model.clients import parse_language, parse_version
from rebalance_core.model.errors import RebalanceError, did_you_mean
from rebalance_core.model.times import INSTANT_FORM, read_duration, read_instant
from rebalance_core.planning.scenario.cluster_life import ClusterLife
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.strategies import parse_strategy

# Moments that hang on a history's end.

END = "end"
MOMENT_FORM = f'"end", "+10m" after it, "-2h" before it, {INSTANT_FORM}'


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

ValueReader = Callable[[Any], Any]

_SET = re.compile(r"\[!?+\]?+[^\]]*\]")  # as fnmatch reads one


@dataclass(frozen=True, slots=True)
class EditKey:
    """One key of an edit: how its value is read and what it is if it is not given."""

    read: ValueReader
    default: Any = None
    required: bool = False


def required(read: ValueReader) -> EditKey:
    """A key that must be given."""
    return EditKey(read, required=True)


def key(read: ValueReader, default: Any = None) -> Any:
    """Declare a field of an `Edit` to be a key of the file, which may be left out."""
    return field(default=default, metadata={"key": EditKey(read, default)})


def needed(read: ValueReader) -> Any:
    """Declare a field of an `Edit` to be a key of the file that must be given."""
    return field(metadata={"key": required(read)})


def keys_of(table: Any) -> dict[str, EditKey]:
    """Return the keys that the fields of a dataclass are, in their order."""
    return {one.name: one.metadata["key"] for one in fields(table) if "key" in one.metadata}


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


def one_of(*valid: str) -> ValueReader:
    """One of some words."""

    def read(value: Any) -> str:
        if value not in valid:
            hint = did_you_mean(str(value), valid)
            raise ValueError(f"expected one of {', '.join(valid)}{hint}")
        return str(value)

    return read


def whole(low: int, high: int) -> ValueReader:
    """A whole number of a range."""

    def read(value: Any) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not low <= value <= high:
            raise ValueError(f"expected a whole number from {low:,} to {high:,}")
        return value

    return read


def number_that(fits: Callable[[float], bool], valid: str) -> ValueReader:
    """Return a reader of numbers that fit; ``valid`` says in words which do."""

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
    """Return a reader of text by a function that raises errors of ours."""

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
"""Reads a RocketMQ version; the text stays as it is."""
strategy = parsed(lambda text: str(parse_strategy(text)))
"""Reads a strategy text, printed as the parser prints it."""


# What an edit is: a frozen value of a scenario file that acts on groups, the cluster or both.

LOSS_DETAILS = {"leave": None, "crash": "CLOSED", "expired": "EXPIRED"}
"""How a member goes: it says so, its connection is seen closing, or only the scan finds out."""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One ``[[edit]]`` table. Its fields are the keys of the file, read.

    `on_group` and `on_cluster` are called once, at the edit's instant, for every group and cluster
    that the edit concerns; they are functions of the life they are given and of nothing else.
    """

    KIND: ClassVar[str]

    at: Moment = key(read_moment, END_MOMENT)  # noqa: RUF009  # a field, made once
    cluster: tuple[str, ...] = key(patterns, ("*",))

    @classmethod
    def keys(cls) -> dict[str, EditKey]:
        """Return all keys of the kind, in the order of the fields."""
        return keys_of(cls)

    @classmethod
    def contradictions(cls, values: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
        """(key, what is wrong) of keys that do not go together."""
        yield from ()

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Key -> (``groups``, ``topics`` or ``brokers``, patterns that ought to match some)."""
        return {}

    def concerns_group(self, consumer_group: str) -> bool:
        """True if `on_group` is to be called for the group."""
        return False

    def subscribed(self) -> Sequence[str]:
        """Topics that the groups may not have subscribed before."""
        return ()

    def concerns_cluster(self) -> bool:
        """True if `on_cluster` does something."""
        return type(self).on_cluster is not Edit.on_cluster

    @property
    def asks_queues(self) -> bool:
        """It warns by how many queues topics have."""
        return False

    def on_group(self, life: GroupLife, source: str) -> None:
        """Act on a group; called at the edit's instant."""

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Act on brokers and topics; called at the edit's instant."""


@dataclass(frozen=True, kw_only=True)
class GroupEdit(Edit):
    """An edit of the groups that ``group`` matches."""

    group: tuple[str, ...] = needed(patterns)

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """The groups."""
        return {"group": ("groups", self.group)}

    def concerns_group(self, consumer_group: str) -> bool:
        """True if the name matches."""
        return matches(consumer_group, self.group)


def matches(name: str, globs: Sequence[str]) -> bool:
    """True if one of the patterns (``*``, ``?``, ``[ab]``) matches; upper and lower case differ."""
    return any(fnmatchcase(name, glob) for glob in globs)


def exactly_one(values: Mapping[str, Any], *names: str) -> Iterator[tuple[str, str]]:
    """Says so unless one of the keys is given and no other."""
    given = [name for name in names if name in values]
    listed = " or ".join(names)
    if not given:
        yield "kind", f"needs {listed}"
    for name in given[1:]:
        yield name, f"excludes {given[0]}: give {listed}"
