"""What an edit is: a frozen value of a scenario file that acts on groups, the cluster or both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any, ClassVar, Self

from rebalance_core.planning.scenario.cluster_life import ClusterLife
from rebalance_core.planning.scenario.group_life import GroupLife
from rebalance_core.planning.scenario.keys import END_MOMENT, Key, Moment, patterns, read_moment

LOSS_DETAILS = {"leave": None, "crash": "CLOSED", "expired": "EXPIRED"}
"""How a member goes: it says so, its connection is seen closing, or only the scan finds out."""

COMMON_KEYS = {"at": Key(read_moment, END_MOMENT), "cluster": Key(patterns, ("*",))}


@dataclass(frozen=True, kw_only=True)
class Edit:
    """One ``[[edit]]`` table. Its fields are the keys of the file, read.

    `on_group` and `on_cluster` are called once, at the edit's instant, for every group and cluster
    that `concerns`; they are functions of the life they are given and of nothing else.
    """

    KIND: ClassVar[str]
    KEYS: ClassVar[Mapping[str, Key]]

    at: Moment
    cluster: tuple[str, ...]

    @classmethod
    def keys(cls) -> dict[str, Key]:
        """All keys of the kind."""
        return COMMON_KEYS | dict(cls.KEYS)

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> Self:
        """The edit with these read values, defaults for the others."""
        names = {field.name for field in fields(cls)}
        assert names == set(cls.keys()), f"{cls.__name__}: fields and keys differ"
        return cls(**{name: values.get(name, key.default) for name, key in cls.keys().items()})

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

    def on_group(self, life: GroupLife, source: str) -> None:
        """Act on a group; called at the edit's instant."""

    def on_cluster(self, life: ClusterLife, source: str) -> None:
        """Act on brokers and topics; called at the edit's instant."""


@dataclass(frozen=True, kw_only=True)
class GroupEdit(Edit):
    """An edit of the groups that ``group`` matches."""

    group: tuple[str, ...]

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
