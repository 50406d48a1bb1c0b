"""Who owns the queue at each place of a topic's sorted list, once for all topics that are alike."""

from __future__ import annotations

from collections.abc import Callable
from functools import cached_property
from typing import TypeAlias

import numpy as np

from rebalance_core.kernels.segments import (
    Bools,
    Counts,
    Ints,
    halves,
    pair,
    pointers,
    ranges,
)
from rebalance_core.kernels.state.cells import Cells, Readable
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
        epoch = ranges(epochs.of_group[grid.topics.group], sizes)
        members = np.diff(roster.first)[epoch]
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

    Where a topic has many queues on a broker, those of an epoch are looked up at once.

    Args:
        answers: of the groups.
        epochs: of all groups.
        grid: of all groups.
        numbered: how queues are numbered over the brokers of their topic.
        roster: of all groups.
    """

    def __init__(
        self, answers: OwnersByPlace, epochs: Epochs, grid: Grid, numbered: Places, roster: Roster
    ) -> None:
        begin, sizes = np.zeros(len(grid.queues), np.int64), np.diff(grid.broker_first)
        begin[answers.topic_cell] = answers.first[answers.answer]
        self._begin = begin[ranges(grid.topic_first[grid.topic_of], sizes)] + numbered[0]
        """By broker cell: where the answer has its first queue."""
        self._first = roster.first[ranges(epochs.of_group[grid.brokers.group], sizes)]
        """By broker cell: the first entry of the epoch."""
        self._index = answers.index

    def entries(self, cells: Readable) -> Ints:
        """The entry that owns each cell."""
        if cells.at is None and cells.cells.are_few_runs:
            return self._of_stretches(cells.cells)
        found = self._begin.take(cells.broker_cell)
        found += cells.queue_id
        index = self._index.take(found)
        np.take(self._first, cells.broker_cell, out=found, mode="clip")  # "raise" would buffer
        found += index
        return found

    @cached_property
    def _wide_index(self) -> Ints:
        return self._index.astype(np.int64)

    def _of_stretches(self, cells: Cells) -> Ints:
        """The entry that owns each cell, epoch by epoch of each stretch; of those alike once."""
        some, end, found = cells.stretches, 0, np.empty(len(cells), np.int64)
        index, queue_ids = self._wide_index, cells.queues.ids_of(some.queue, some.topic_broker)
        made: dict[tuple[int, bytes, bytes], int] = {}
        for cell, queue_id, count, epochs in zip(
            some.first_broker_cell, queue_ids, some.count, some.epochs, strict=True
        ):
            begin, end = end, end + count * epochs
            of_epochs = slice(cell, cell + epochs)
            places, firsts = self._begin[of_epochs] + queue_id, self._first[of_epochs]
            alike = made.setdefault((count, places.tobytes(), firsts.tobytes()), begin)
            if alike < begin:
                found[begin:end] = found[alike : alike + end - begin]
                continue
            by_epoch = found[begin:end].reshape(count, epochs).T
            for owners, place, first in zip(by_epoch, places, firsts, strict=True):
                np.add(index[place : place + count], first, out=owners)
        return found
