"""Which queues the groups have, how their cells lie in pieces, and which kernel divides them."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from typing import Protocol

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import Broadcast, Cells, Queues, Readable, Stretches
from rebalance_core.kernels.coded_groups import CodedGroups
from rebalance_core.kernels.epochs import index_of
from rebalance_core.kernels.grid import Places, places
from rebalance_core.kernels.group_rows import (
    ASKED,
    BY_PLACE,
    EVERYONE,
    IN_ROOMS,
    ON_RING,
    rules_of,
)
from rebalance_core.kernels.ownership.asked import OwnStrategyOwners
from rebalance_core.kernels.ownership.by_place import (
    ComputedOwners,
    ListedOwners,
    OwnersByPlace,
    brokers_divided,
)
from rebalance_core.kernels.ownership.in_rooms import InRoomsOwners
from rebalance_core.kernels.ownership.on_ring import OnRingOwners
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import Ints

# The queues that CONFIG lists give to members.


@dataclass(frozen=True, slots=True)
class ListedQueues:
    """One value a queue and CONFIG list of a group that has it."""

    key: Ints
    """(topic broker, queue id), as a pair."""
    allocation: Ints
    """The list: index into the strategies of the coded."""

    def sorted_among(self, queues: Queues) -> ListedQueues:
        """Sort some queues, by index; the key is the index."""
        at = segments.find(segments.pair(queues.topic_broker, queues.queue_id), self.key)
        known = np.flatnonzero(at >= 0)
        known = known[np.argsort(at[known], kind="stable")]
        return ListedQueues(at[known], self.allocation[known])


def listed_queues(prepared: PreparedGroups) -> ListedQueues:
    """The queues that members' CONFIG lists have, of topics that their groups read."""
    lists, divisions = prepared.coded.lists, prepared.coded.divisions
    if not len(divisions.listed):
        return ListedQueues(divisions.listed, divisions.listed)
    of, row = segments.matching(lists.allocation, divisions.listed)
    group = divisions.listing[of]
    at = index_of(prepared.grid.brokers, group, lists.topic[row], lists.broker[row])
    epochs = np.diff(prepared.epochs.of_group)[group]
    read = (at >= 0) & (epochs > 0)
    row = row[read]
    return ListedQueues(segments.pair(at[read], lists.queue_id[row]), lists.allocation[row])


# Which queues the groups have, and how their cells are laid out in pieces.

SMALL = 8
"""A topic broker of which so many fit into a piece is not cut: whole ones are often alike."""


class Layout:
    """The queues of prepared groups.

    All queues of one topic broker have equally many epochs, so that pieces are cut and laid out by
    topic broker: there are far fewer of them than queues.

    Args:
        prepared: the groups.
        part: (i, n): only the i-th of n shares of every group's queues.
        cells_per_block: about how many cells a piece has; a segment is never cut.
    """

    def __init__(
        self, prepared: PreparedGroups, part: tuple[int, int], cells_per_block: int
    ) -> None:
        self._prepared, self._part = prepared, part
        self._cells_per_block = cells_per_block

    @cached_property
    def queues(self) -> Queues:
        """Every queue that can be read in some epoch, or that CONFIG lists."""
        grid, ids = self._prepared.grid, None
        counts = grid.most_readable
        listed = listed_queues(self._prepared)
        if len(listed.allocation):
            readable = segments.pair(
                np.repeat(np.arange(len(counts)), counts), segments.ranges(0 * counts, counts)
            )
            both = np.unique(np.concatenate([readable, listed.key]))
            topic_broker, ids = segments.halves(both)
            counts = np.bincount(topic_broker, minlength=len(counts))
        of_broker = segments.pointers(counts)
        first, counts = self._mine(of_broker)
        if ids is not None:
            ids = ids[segments.ranges(first, counts)]
        first_id = first - of_broker[:-1]
        return Queues(segments.pointers(counts), first_id, ids, grid.brokers.group, grid.topic_of)

    def _mine(self, of_broker: Ints) -> tuple[Ints, Ints]:
        """(first, how many) queues of each topic broker are in this part: a range of a group's.

        Args:
            of_broker: the first queue of each topic broker, and the end.
        """
        part, parts = self._part
        if parts == 1:
            return of_broker[:-1], np.diff(of_broker)
        opens = segments.first_of_run(self._prepared.grid.brokers.group)
        of_group = np.append(of_broker[:-1][opens], of_broker[-1])
        sizes, mine = np.diff(of_group), np.cumsum(opens) - 1
        low, high = (of_group[:-1] - -sizes * n // parts for n in (part, part + 1))
        first = np.clip(of_broker[:-1], low[mine], high[mine])
        return first, np.clip(of_broker[1:], low[mine], high[mine]) - first

    def pieces(self, kind: Ints, weight: Ints) -> Iterator[tuple[int, Cells]]:
        """All queues, some of one kind at a time; with the kind.

        Args:
            kind: by topic broker.
            weight: by topic broker: about how much room a queue takes, in cells.
        """
        filled = np.flatnonzero(np.diff(self.queues.first_of_broker))
        kind = kind[filled]
        for of_kind in np.flatnonzero(np.bincount(kind)).tolist():
            for cells in self._cut(filled[kind == of_kind], weight):
                yield of_kind, cells

    def _cut(self, brokers: Ints, weight: Ints) -> Iterator[Cells]:
        """The cells of some topic brokers with queues, about as many at a time as a piece has.

        Cost: O(topic brokers + pieces), at once for all pieces.
        """
        first = self.queues.first_of_broker[brokers]
        counts = self.queues.first_of_broker[brokers + 1] - first
        places, weight = segments.pointers(counts), weight[brokers]
        cuts = self._cuts(places, weight, segments.pointers(counts * weight))
        bounds = np.sort(np.append(places, cuts))
        bounds = bounds[segments.first_of_run(bounds)]
        begins, counts = bounds[:-1], np.diff(bounds)
        of = np.searchsorted(places, begins, side="right") - 1
        stretches = self._lay_out(brokers[of], first[of] + begins - places[of], counts)
        for low, high in pairwise([0, *np.searchsorted(bounds, cuts).tolist(), len(begins)]):
            if low < high:
                yield Cells(stretches.between(low, high), self.queues, self._prepared.grid.readable)

    def _cuts(self, places: Ints, weight: Ints, weights: Ints) -> Ints:
        """The queue before which each piece ends, but for the last; a queue may fill several.

        Args:
            places: the first queue of each topic broker, and the end.
            weight: of a queue of each.
            weights: of all queues before each, and of all.
        """
        full = np.arange(self._cells_per_block, weights[-1], self._cells_per_block)
        of = np.searchsorted(weights, full, side="right") - 1
        small = SMALL * (weights[of + 1] - weights[of]) <= self._cells_per_block
        return places[of] + np.where(small, 0, (full - weights[of]) // weight[of])

    def _lay_out(self, brokers: Ints, queue: Ints, count: Ints) -> Stretches:
        """Consecutive queues of topic brokers, with their cells.

        Args:
            brokers: their topic brokers.
            queue: the first of each.
            count: how many of each.
        """
        grid, of_group = self._prepared.grid, self._prepared.epochs.of_group
        group = grid.brokers.group[brokers]
        return Stretches(
            queue=queue,
            count=count,
            topic_broker=brokers,
            epochs=of_group[group + 1] - of_group[group],
            first_epoch=of_group[group],
            first_topic_cell=grid.topic_first[grid.topic_of[brokers]],
            first_broker_cell=grid.broker_first[brokers],
        )


# The kernel of every strategy for prepared groups, made when it is first asked for.

MOST_LISTED = 1 << 22
"""Places in all answers of one of these that are listed, at 4 bytes each; where there are more,
owners are computed cell by cell."""


class LaidOutOwners(Protocol):
    """One strategy for many groups."""

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell, or `NOBODY`."""


class Kernels:
    """The kernels of prepared groups.

    Args:
        prepared: the groups.
        queues: what `Readable.queue` is an index into.

    Attributes:
        divided_by: the groups once for each strategy of the group that has the most.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._made: dict[tuple[int, int], LaidOutOwners] = {}
        coded = prepared.coded
        self.divided_by = [*map(coded.divided_by, range(coded.divisions.most))]

    def of(self, kind: int, number: int = 0) -> LaidOutOwners:
        """The kernel of a kind of strategy.

        Args:
            kind: of the strategy.
            number: of the strategy in its group.
        """
        if (kind, number) not in self._made:
            self._made[kind, number] = self._new(kind, number)
        return self._made[kind, number]

    @cached_property
    def _places(self) -> Places:
        return places(self._prepared.grid, self._prepared.grid.readable)

    def _new(self, kind: int, number: int) -> LaidOutOwners:
        prepared, coded = self._prepared, self.divided_by[number]
        epochs, grid, roster = prepared.epochs, prepared.grid, prepared.roster
        if kind >= BY_PLACE:
            return self._by_place(kind, coded)
        if kind == ON_RING:
            rings = prepared.rings[number]
            return OnRingOwners(coded, rings, epochs, grid, roster, self._queues)
        if kind == IN_ROOMS:
            return InRoomsOwners(coded, epochs, grid, roster)
        assert kind == ASKED, f"nothing divides groups of kind {kind}"
        return OwnStrategyOwners(prepared.asked[number], epochs, grid, self._places, roster)

    def _by_place(self, kind: int, coded: CodedGroups) -> LaidOutOwners:
        grid, roster = self._prepared.grid, self._prepared.roster
        rule = rules_of(coded.strategies)[kind - BY_PLACE]
        mine = coded.groups.kind == kind
        inside = brokers_divided(coded, grid)
        if inside is None or inside[mine[grid.brokers.group]].all():
            answers = OwnersByPlace(rule, mine, self._prepared.epochs, grid, roster)
            if answers.first[-1] <= MOST_LISTED:
                return ListedOwners(answers, grid, self._places, roster)
        return ComputedOwners(rule, grid, roster, inside)


# BROADCASTING: every member reads every queue of its topics for as long as it stays.


@dataclass(frozen=True, slots=True)
class Stays:
    """Epochs in which one process is a member that subscribes a topic.

    One value a stay; by group topic, client and first epoch.
    """

    client: Ints
    begin: Ints
    end: Ints
    """Exclusive."""
    node: Ints
    """As `Broadcast.node`."""
    first: Ints
    """The first stay of each group topic, and the end."""


def find_stays(prepared: PreparedGroups) -> Stays:
    """The stays in every topic of the BROADCASTING groups."""
    topics, runs = prepared.grid.topics, prepared.roster.runs
    everyone = (prepared.coded.groups.kind == EVERYONE) & ~prepared.shared
    run = np.flatnonzero(everyone[runs.group])
    at, group_topic = segments.matching(topics.group, runs.group[run])
    run = run[at]
    subscribed = prepared.roster.reads(run, group_topic)
    group_topic, run = group_topic[subscribed], run[subscribed]
    order = np.argsort(group_topic, kind="stable")
    group_topic, run = group_topic[order], run[order]
    begin, end = runs.from_epoch[run], runs.to_epoch[run]
    starts = segments.first_of_run(group_topic, runs.client[run], runs.process[run])
    starts[1:] |= begin[1:] != end[:-1]
    count = np.bincount(group_topic[starts], minlength=len(topics.group))
    first_node = segments.pointers(runs.to_epoch - runs.from_epoch)[run[starts]]
    return Stays(
        runs.client[run[starts]],
        begin[starts],
        end[segments.last_of_run(np.cumsum(starts))],
        first_node - begin[starts],
        segments.pointers(count),
    )


def broadcast(prepared: PreparedGroups, queues: Queues, stays: Stays, cells: Cells) -> Broadcast:
    """Find who holds the queues of some segments.

    Whoever stays has a queue from the first epoch in which it can be read, and keeps it while the
    topic is frozen. Cost: the epochs and the stays of each queue, not their product.

    Args:
        prepared: the groups.
        queues: what the segments are about.
        stays: of the prepared.
        cells: of the segments.
    """
    grid, topic_cell = prepared.grid, cells.topic_cell
    read = grid.read[topic_cell]
    taken = cells.readable & read
    first, last = segments.stretches(taken | grid.frozen[topic_cell], cells.segment)
    at = np.arange(len(cells))
    next_taken = np.minimum.accumulate(np.where(taken, at, len(cells))[::-1])[::-1]

    group_topic = queues.group_topic[cells.queue[cells.segment[first]]]
    counts = np.diff(stays.first)[group_topic]
    stay = segments.ranges(stays.first[group_topic], counts)
    of = np.repeat(np.arange(len(first)), counts)
    offset = (first - cells.epoch[first])[of]
    begin = np.maximum(stays.begin[stay] + offset, first[of])
    end = np.minimum(stays.end[stay] + offset, last[of] + 1)
    meets = np.flatnonzero(begin < end)
    begin, end, stay = next_taken[begin[meets]], end[meets], stay[meets]
    meets = np.flatnonzero(begin < end)
    begin, end, stay = begin[meets], end[meets], stay[meets]
    order = np.lexsort((begin, stays.client[stay], cells.segment[begin]))
    begin, end, stay = begin[order], end[order], stay[order]
    segment, client = cells.segment[begin], stays.client[stay]
    starts = segments.first_of_run(segment, client)  # another process of the client goes on
    starts[1:] |= begin[1:] != end[:-1]
    begin, end = begin[starts], end[segments.last_of_run(np.cumsum(starts))]
    return Broadcast(
        cells=cells,
        nobody=cells.readable & ~read,
        holders=segments.covered(begin, end, len(cells)),
        segment=segment[starts],
        client=client[starts],
        begin=begin,
        end=end,
        node=stays.node[stay[starts]],
    )
