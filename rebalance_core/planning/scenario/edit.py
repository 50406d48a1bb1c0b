"""The edits in a scenario: frozen values that act on groups, the cluster or both."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Any, ClassVar

from rebalance_core.contracts.planning import LOST_OBJECTS
from rebalance_core.model.times import INSTANT_FORM, read_duration, read_instant
from rebalance_core.planning.scenario.cluster_life import ClusterLife, ClusterNames
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.planning.table_keys import TableKey, key, keys_of, needed, patterns

END = "end"
MOMENT_FORM = f'"end", "+10m" after it, "-2h" before it, {INSTANT_FORM}'


@dataclass(frozen=True, slots=True)
class Moment:
    """An instant, or a distance from the end of a cluster's history."""

    ms: int
    from_end: bool

    def at(self, end_ms: int) -> int:
        """Return epoch milliseconds in a history whose last event is at ``end_ms``."""
        return end_ms + self.ms if self.from_end else self.ms


END_MOMENT = Moment(1, from_end=True)
"""``end``: just after the last event, so that there are states before and after it."""


def read_moment(value: Any) -> Moment:
    """Return the instant of ``at``, or raise ValueError with the valid forms.

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


LOSS_DETAILS = {"leave": None, "crash": "CLOSED", "expired": "EXPIRED"}
"""How a member departs: it unregisters, its connection closes visibly, or only the scan detects
it.
"""


@dataclass(frozen=True, kw_only=True)
class Edit:
    """An ``[[edit]]`` table. Its fields are the keys in the file, with parsed values.

    `on_group` and `on_cluster` are called once, at the edit's instant, for every group and cluster
    that the edit concerns; they depend only on the life passed to them.
    """

    KIND: ClassVar[str]
    at: Moment = key(read_moment, END_MOMENT)  # noqa: RUF009  # a field, made once
    cluster: tuple[str, ...] = key(patterns, ("*",))

    @classmethod
    def keys(cls) -> dict[str, TableKey]:
        """Return all keys of the kind, in the order of the fields."""
        return keys_of(cls)

    @classmethod
    def contradictions(cls, values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
        """Yield (key, mistake) for mutually exclusive keys."""
        yield from ()

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return key -> (``groups``, ``topics`` or ``brokers``; patterns that should match)."""
        return {}

    def unknown_names(self, clusters: Mapping[str, ClusterNames]) -> Iterator[str]:
        """Yield why the edit cannot be applied to these clusters, with the key and its value."""
        yield from ()

    def concerns_group(self, consumer_group: str) -> bool:
        """Return True if `on_group` is to be called for the group."""
        return False

    def subscribed(self) -> Sequence[str]:
        """Return the topics to which the groups may not have subscribed before."""
        return ()

    def concerns_cluster(self) -> bool:
        """Return True if `on_cluster` has an effect."""
        return type(self).on_cluster is not Edit.on_cluster

    @property
    def asks_queues(self) -> bool:
        """Return True if its warnings depend on topics' queue numbers."""
        return False

    def on_group(self, life: GroupLife, source: str) -> None:
        """Act on a group; called at the edit's instant."""

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Act on brokers and topics; called at the edit's instant."""


BROKER, MASTER, HOST, ZONE, MEMBER = LOST_OBJECTS


def needs_each(values: Mapping[str, object], name: str) -> Iterator[tuple[str, str]]:
    """Yield a mistake unless ``each`` or the key is present."""
    if name not in values and "each" not in values:
        yield "kind", f"needs {name} or each"


def each_at_end(values: Mapping[str, object]) -> Iterator[tuple[str, str]]:
    """Yield a mistake if an edit before the end loses members: ``each`` refers to members at the
    end.
    """
    moment = values.get("at", END)
    later = moment == END or (isinstance(moment, str) and moment.strip().startswith("+"))
    if "each" in values and not later:
        yield "at", f'is before the end; each needs "{END}" or a time after it, such as "+10m"'


@dataclass(frozen=True, kw_only=True)
class GroupEdit(Edit):
    """An edit to the groups that ``group`` matches."""

    group: tuple[str, ...] = needed(patterns)

    def globs(self) -> dict[str, tuple[str, Sequence[str]]]:
        """Return the groups."""
        return {"group": ("groups", self.group)}

    def concerns_group(self, consumer_group: str) -> bool:
        """Return True if the name matches."""
        return matches(consumer_group, self.group)


def matches(name: str, globs: Sequence[str]) -> bool:
    """Return True if a pattern (``*``, ``?``, ``[ab]``) matches; matching is case-sensitive."""
    return any(fnmatchcase(name, glob) for glob in globs)


def exactly_one(values: Mapping[str, object], *names: str) -> Iterator[tuple[str, str]]:
    """Yield a mistake unless exactly one of the keys is present."""
    present = [name for name in names if name in values]
    listed = " or ".join(names)
    if not present:
        yield "kind", f"needs {listed}"
    for name in present[1:]:
        yield name, f"excludes {present[0]}: use only one of {listed}"
