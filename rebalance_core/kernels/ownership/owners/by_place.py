"""Who owns the queue at each place of a topic's sorted list, once for all topics that are alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rebalance_core.kernels.cells.cells import Cells, Readable
from rebalance_core.kernels.segments import (
    Bools,
    Counts,
    Ints,
    halves,
    pair,
    pointers,
    ranges,
)
from rebalance_core.kernels.state.epochs import Epochs
from rebalance_core.kernels.state.grid import Grid, Places
from rebalance_core.kernels.state.roster import Roster

Deal: TypeAlias = Callable[[Ints, Ints], Counts]
"""From queues and members, one value an answer, to the index in cidAll of each place's owner."""


class OwnersByPlace:
    """The answers of a strategy that looks at nothing but how many queues and members there are.

    The queue at a place of the sorted list goes to the member at an index of cidAll. That index
    depends on the numbers of queues and members alone, so that topics of any group and epoch with
    equal numbers have one *answer*. Cost: O(topic cells), and O(places) when `index` is asked for.

    Args:
        deal: the strategy.
        mine: by group: it divides by this strategy.
        epochs: of all groups.
        grid: of all groups.
        roster: of all groups.
    """

    def __init__(self, deal: Deal, mine: Bools, epochs: Epochs, grid: Grid, roster: Roster) -> None:
        sizes = np.diff(grid.topic_first)
        self.epoch = ranges(epochs.of_group[grid.topics.group], sizes)
        """By topic cell."""
        members = np.diff(roster.first)[self.epoch]
        divided = (grid.queues > 0) & (members > 0) & np.repeat(mine[grid.topics.group], sizes)
        self.topic_cell: Ints = np.flatnonzero(divided)
        """The topic cells that have an answer."""
        numbers = pair(grid.queues[self.topic_cell], members[self.topic_cell])
        distinct, self.answer = np.unique(numbers, return_inverse=True)
        """`answer`: which one each of them has."""
        self._deal, self._numbers = deal, halves(distinct)
        self.first = pointers(self._numbers[0])
        """Where each answer begins in `index`, and the end."""

    @cached_property
    def index(self) -> Counts:
        """By answer and place: the index in cidAll of the owner."""
        return self._deal(*self._numbers)


class ListedOwners:
    """Owners of cells, looked up by place. Cost: O(1) a queue and epoch, without a division.

    Where a topic has many queues on a broker, those of an epoch are looked up at once, and topics
    that are alike are copied: what was looked up for a piece is kept for the next one.

    Args:
        answers: of the groups.
        grid: of all groups.
        numbered: how queues are numbered over the brokers of their topic.
        roster: of all groups.
    """

    def __init__(
        self, answers: OwnersByPlace, grid: Grid, numbered: Places, roster: Roster
    ) -> None:
        begin = np.zeros(len(grid.queues), np.int64)
        begin[answers.topic_cell] = answers.first[answers.answer]
        topic_cell = grid.topic_cell
        self._begin = begin[topic_cell] + numbered[0]
        """By broker cell: where the answer has its first queue."""
        self._first = roster.first[answers.epoch][topic_cell]
        """By broker cell: the first entry of the epoch."""
        self._index = answers.index
        self._made: dict[tuple[int, int, int, bytes], Ints] = {}
        """Owners of the stretches of the last piece."""

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        if cells.at is None and cells.cells.are_few_runs:
            return self._of_stretches(cells.cells)
        index = self._index.take(cells.places(self._begin))
        found = cells.at_brokers(self._first)
        found += index
        return found

    def _of_stretches(self, cells: Cells) -> Ints:
        """The entry that owns each cell; of stretches that are alike looked up once."""
        some, end, found = cells.stretches, 0, np.empty(len(cells), np.int64)
        queue_id = cells.queues.ids_of(some.queue, some.topic_broker)
        columns = (some.first_broker_cell, some.first_epoch, some.epochs, queue_id, some.count)
        known, self._made = self._made, {}
        for cell, epoch, epochs, first, count in zip(*(c.tolist() for c in columns), strict=True):
            alike = epoch, first, count, self._begin[cell : cell + epochs].tobytes()
            if alike not in known:
                known[alike] = self._looked_up(slice(cell, cell + epochs), first, count)
            owners = self._made[alike] = known[alike]
            begin, end = end, end + len(owners)
            found[begin:end] = owners
        return found

    def _looked_up(self, broker_cells: slice, queue_id: int, count: int) -> Ints:
        """The owners of so many queues that count on, the epochs of one after the other."""
        begins, firsts = self._begin[broker_cells] + queue_id, self._first[broker_cells]
        found = np.empty((count, len(begins)), np.int64)
        for owners, begin, first in zip(found.T, begins, firsts, strict=True):
            np.add(self._index[begin : begin + count], first, out=owners)
        return found.ravel()
