"""Which strategies the members of each group divide by."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.segments import Bools, Ints


@dataclass(frozen=True, slots=True)
class MemberStrategies:
    """The strategies of all members, and the distinct ones of each group.

    A group's strategies are numbered: its first one, its second one … Members of most groups have
    one and the same.
    """

    words: Ints
    """(strategy word, word of the rules) of all members, as sorted pairs."""
    of_words: Ints
    """The strategy of each: index into the strategies of the coded."""
    group: Ints
    """Of each strategy of a group, by group; CONFIG and BROADCASTING divide nothing."""
    allocation: Ints
    """The strategy: index into the strategies of the coded."""
    listing: Ints
    """Groups with a CONFIG list, one value a list."""
    listed: Ints
    """The list: index into the strategies of the coded."""
    mixed_models: Ints
    """Groups of which some members are BROADCASTING or behind a proxy, and others are not."""

    def allocations(self, strategy: Ints, rules: Ints) -> Ints:
        """The strategy of members with these words."""
        return self.of_words[segments.find(self.words, segments.pair(strategy, rules))]

    @property
    def number(self) -> Ints:
        """The number of each strategy among those of its group."""
        return segments.rank(self.group)

    @property
    def most(self) -> int:
        """Strategies of the group that has the most; at least 1."""
        return int(np.bincount(self.group).max(initial=1))

    def numbers(self, group: Ints, allocation: Ints) -> Ints:
        """The number of each strategy in its group; -1: it is none of its divisions."""
        at = segments.find(
            segments.pair(self.group, self.allocation), segments.pair(group, allocation)
        )
        return np.where(at >= 0, np.append(self.number, -1)[at], -1)

    def of_number(self, number: int, groups: int) -> Ints:
        """By group: its strategy of this number; -1: it has fewer."""
        found = np.full(groups, -1, np.int64)
        mine = self.number == number
        found[self.group[mine]] = self.allocation[mine]
        return found

    def renumbered(self, group: Ints) -> MemberStrategies:
        """The same for groups with other numbers: ``group`` has the new one of each."""
        moved = group[self.group]
        order = np.lexsort((self.allocation, moved))
        return replace(
            self,
            group=moved[order],
            allocation=self.allocation[order],
            listing=group[self.listing],
            mixed_models=group[self.mixed_models],
        )


def find_member_strategies(
    group: Ints,
    strategy: Ints,
    rules: Ints,
    allocation: Ints,
    everyone: Bools,
    lists: Bools,
    no_retry: Bools,
) -> MemberStrategies:
    """The divisions of groups.

    Args:
        group: of each member that ever joined, as all that follow.
        strategy: word of its strategy text.
        rules: word of the version whose rules it follows.
        allocation: its strategy.
        everyone: it is BROADCASTING, so that its strategy is never asked.
        lists: its strategy is a CONFIG list.
        no_retry: it subscribes no retry topic, whatever its group.
    """
    words, first = np.unique(segments.pair(strategy, rules), return_index=True)
    rows = (~everyone & ~lists, ~everyone & lists)
    pairs, listed = (np.unique(segments.pair(group[mine], allocation[mine])) for mine in rows)
    mixed = np.union1d(
        np.intersect1d(group[everyone], group[~everyone]),
        np.intersect1d(group[no_retry], group[~no_retry]),
    )
    return MemberStrategies(
        words,
        allocation[first],
        *segments.halves(pairs),
        *segments.halves(listed),
        mixed,
    )


def strategies_of_groups(member_strategies: MemberStrategies, groups: int) -> Ints:
    """By group: how many strategies its members divide by."""
    return np.bincount(member_strategies.group, minlength=groups).astype(np.int64)
