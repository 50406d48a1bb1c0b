"""The strategies by which the members of each group divide queues."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.segments import Bools, Ints


@dataclass(frozen=True, slots=True)
class MemberStrategies:
    """The strategies of all members, and the distinct strategies of each group.

    A group's strategies are numbered from 0. In most groups, all members share one strategy.
    """

    words: Ints
    """The (strategy word, rules word) pairs of all members, sorted."""
    of_words: Ints
    """The strategy of each pair, as an index into `encoded_groups.EncodedGroups.strategies`."""
    group: Ints
    """The group of each strategy, ascending; CONFIG and BROADCASTING allocate nothing."""
    allocation: Ints
    """The strategy, as an index into `encoded_groups.EncodedGroups.strategies`."""
    listing: Ints
    """The group of each CONFIG list."""
    listed: Ints
    """The list, as an index into `encoded_groups.EncodedGroups.strategies`."""
    mixed_models: Ints
    """The groups in which only some members are BROADCASTING or behind a proxy."""

    def allocations(self, strategy: Ints, rules: Ints) -> Ints:
        """Return the strategy of members with these words."""
        return self.of_words[segments.find(self.words, segments.pair(strategy, rules))]

    @property
    def number(self) -> Ints:
        """The number of each strategy within its group."""
        return segments.rank(self.group)

    @property
    def most(self) -> int:
        """The maximum number of strategies in a group; at least 1."""
        return int(np.bincount(self.group).max(initial=1))

    def numbers(self, group: Ints, allocation: Ints) -> Ints:
        """Return the number of each strategy within its group, or -1 if the group lacks it."""
        row = segments.find(
            segments.pair(self.group, self.allocation), segments.pair(group, allocation)
        )
        return np.where(row >= 0, np.append(self.number, -1)[row], -1)

    def of_number(self, number: int, groups: int) -> Ints:
        """Return the strategy with this number in each group, or -1 if the group has fewer."""
        allocations = np.full(groups, -1, np.int64)
        mine = self.number == number
        allocations[self.group[mine]] = self.allocation[mine]
        return allocations

    def renumbered(self, group: Ints) -> MemberStrategies:
        """Return the strategies with each group number replaced by ``group[number]``."""
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
    """Return the strategies of the groups' members.

    Args:
        group: the group of each member that ever joined; all arrays have one value per member.
        strategy: the word of its strategy text.
        rules: the word of the version whose rules it follows.
        allocation: its strategy.
        everyone: whether it is BROADCASTING, so that its strategy is never used.
        lists: whether its strategy is a CONFIG list.
        no_retry: whether it subscribes to no retry topic, whatever its group.
    """
    words, first = np.unique(segments.pair(strategy, rules), return_index=True)
    rows = (~everyone & ~lists, ~everyone & lists)
    pairs, listed = (
        segments.distinct(segments.pair(group[mine], allocation[mine])) for mine in rows
    )
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
    """Return the number of strategies by which the members of each group allocate."""
    return np.bincount(member_strategies.group, minlength=groups).astype(np.int64)
