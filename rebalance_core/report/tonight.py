"""Events of the night, and differences from the night before, for the page."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

GroupName = tuple[str, str]

HAPPENINGS_ON_PAGE = 60
"""Maximum number of lines of events on the page: the most severe, in order of time."""
HAPPENINGS_OF_GROUP = 4
"""Maximum number of events in a group's row in the table of groups: the last ones."""
DIFFERENCES_ON_PAGE = 50
NAMES_ON_PAGE = 10


@dataclass(frozen=True, slots=True)
class Happening:
    """An event of a group or, without one, of the cluster.

    Attributes:
        weight: its rank, 0 for the most severe; size: orders events of equal weight, the larger
            first.
    """

    cluster: str
    consumer_group: str | None
    at_ms: int
    text: str
    weight: int
    size: int = 0


@dataclass(frozen=True, slots=True)
class Tonight:
    """Events from ``from_ms`` to ``to_ms``.

    Attributes:
        happenings: events of the cluster and of the groups with the most losses and changes, by
            time.
        groups_changed: the number of groups with any event.
        groups_shown: the number of them with events here.
    """

    from_ms: int
    to_ms: int
    happenings: tuple[Happening, ...] = ()
    groups_changed: int = 0
    groups_shown: int = 0

    @property
    def lines(self) -> list[list[Happening]]:
        """The events that the page lists, by time; those of several groups that are alike, such as
        of a topic that all read, share a line.
        """
        alike: dict[tuple[str, int, str], list[Happening]] = defaultdict(list)
        for one in self.happenings:
            alike[one.cluster, one.at_ms, one.text].append(one)
        ordered = sorted(
            alike.values(),
            key=lambda some: (some[0].weight, -max(one.size for one in some), some[0].at_ms),
        )
        return sorted(ordered[:HAPPENINGS_ON_PAGE], key=lambda some: some[0].at_ms)

    @property
    def of_groups(self) -> Mapping[GroupName, list[Happening]]:
        """The last events of each group."""
        found: dict[GroupName, list[Happening]] = defaultdict(list)
        for one in self.happenings:
            if one.consumer_group is not None:
                found[one.cluster, one.consumer_group].append(one)
        return {name: of_group[-HAPPENINGS_OF_GROUP:] for name, of_group in found.items()}


@dataclass(frozen=True, slots=True)
class GroupState:
    """The state of a group at the end of a night; None stands for unknown."""

    members: int | None
    queues: int | None
    strategies: tuple[str, ...]
    versions: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class GroupDifference:
    """A group whose state differs between the ends of two nights, with both values by column."""

    cluster: str
    consumer_group: str
    columns: Mapping[str, tuple[str, str]]


@dataclass(frozen=True, slots=True)
class NightDifference:
    """The groups whose state at the end of this night differs from that of the night before."""

    groups: tuple[GroupDifference, ...] = ()
    new: tuple[GroupName, ...] = ()
    gone: tuple[GroupName, ...] = ()

    @property
    def compared(self) -> list[str]:
        """The columns in which a group differs."""
        return [name for name in COMPARED if any(name in one.columns for one in self.groups)]


COMPARED = ("members", "queues", "strategy", "version")


def night_difference(
    before: Mapping[GroupName, GroupState], now: Mapping[GroupName, GroupState]
) -> NightDifference:
    """Compare the groups of two nights; a value unknown in either is not a difference."""
    groups = [
        GroupDifference(*name, columns)
        for name in sorted(before.keys() & now.keys())
        if (columns := _columns(before[name], now[name]))
    ]
    return NightDifference(
        tuple(groups),
        tuple(sorted(now.keys() - before.keys())),
        tuple(sorted(before.keys() - now.keys())),
    )


def _columns(before: GroupState, now: GroupState) -> dict[str, tuple[str, str]]:
    pairs = {
        "members": (_number(before.members), _number(now.members)),
        "queues": (_number(before.queues), _number(now.queues)),
        "strategy": (_words(before.strategies), _words(now.strategies)),
        "version": (_words(before.versions), _words(now.versions)),
    }
    return {name: pair for name, pair in pairs.items() if all(pair) and pair[0] != pair[1]}


def _number(count: int | None) -> str:
    return "" if count is None else f"{count:,}"


def _words(words: Iterable[str]) -> str:
    return ", ".join(words)
