"""Cells of consecutive queues, laid out by topic and broker, and the cells that a strategy divides.

A cell is one queue in one epoch. Owners are computed cell by cell, in pieces that fit into the
cache.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import AnyInts, Bools, Ints, pointers, ranges

MANY_QUEUES = 256
"""The average number of queues per epoch of a stretch from which a step in a Python loop pays
off.
"""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Consecutive queues of a topic broker, with one value per stretch."""

    queue: Ints
    """The first queue, as an index into `Queues`."""
    count: Ints
    topic_broker: Ints
    epochs: Ints
    """The number of epochs; like the arrays below, it is the same for every queue of the
    stretch.
    """
    first_epoch: Ints
    first_topic_cell: Ints
    first_broker_cell: Ints

    def between(self, low: int, high: int) -> Stretches:
        """Return the stretches from `low` up to, but excluding, `high`."""
        return Stretches(*(getattr(self, field.name)[low:high] for field in fields(self)))


@dataclass(frozen=True)
class Cells:
    """Consecutive segments; the epochs of a segment are adjacent.

    There are far more cells than segments, and more segments than stretches; arrays with one value
    per cell or segment are therefore created on demand.
    """

    stretches: Stretches
    queues: Queues
    readable_queues: Ints
    """The number of readable queues of each broker cell."""

    def __len__(self) -> int:
        return self._cells

    @cached_property
    def _cells(self) -> int:
        return int(self.stretches.count @ self.stretches.epochs)

    @cached_property
    def _once(self) -> bool:
        """Return True if each queue has exactly one epoch."""
        return self._cells == int(self.stretches.count.sum())

    @property
    def are_few_runs(self) -> bool:
        """Return True if the stretches hold many consecutively numbered queues in every epoch."""
        enough = MANY_QUEUES * int(self.stretches.epochs.sum())
        return self.queues.listed_id is None and len(self) >= enough

    @cached_property
    def queue(self) -> Ints:
        """The index into `Queues` for each segment; arrays up to `segment` have one value per
        segment.
        """
        return ranges(self.stretches.queue, self.stretches.count)

    @property
    def queue_id(self) -> Ints:
        """The queue's number on its broker."""
        if self.queues.listed_id is not None:
            return self.queues.listed_id[self.queue]
        return ranges(self._first_id, self.stretches.count)

    @property
    def _first_id(self) -> Ints:
        """Return the number of each stretch's first queue."""
        return self.queues.ids_of(self.stretches.queue, self.stretches.topic_broker)

    @cached_property
    def first(self) -> Ints:
        """The first cell of each segment, and the end of the last one."""
        return pointers(self._epochs)

    @property
    def _epochs(self) -> Ints:
        return self._by_segment(self.stretches.epochs)

    def _by_segment(self, values: AnyInts) -> AnyInts:
        return np.repeat(values, self.stretches.count)

    @cached_property
    def segment(self) -> Ints:
        """The segment of each cell; arrays from here on have one value per cell."""
        return self.spread(np.arange(len(self.first) - 1))

    @cached_property
    def epoch(self) -> Ints:
        """The index into `Epochs`."""
        return self._count_from(self.stretches.first_epoch)

    @property
    def topic_cell(self) -> Ints:
        """The index into the cells of the topic grid."""
        return self._count_from(self.stretches.first_topic_cell)

    @cached_property
    def broker_cell(self) -> Ints:
        """The index into the cells of the broker grid."""
        return self._count_from(self.stretches.first_broker_cell)

    @cached_property
    def readable(self) -> Bools:
        """Return True if the queue can be read."""
        return self.readable_queues.take(self.broker_cell) > self.spread(self.queue_id)

    def spread(self, values: Ints) -> Ints:
        """Return each segment's value for all its cells."""
        return values if self._once else np.repeat(values, self._epochs)

    def at_brokers(self, values: AnyInts) -> AnyInts:
        """Return, for each cell, the value of its broker cell.

        Args:
            values: one value per broker cell.
        """
        if self._once:
            return self._by_segment(values[self.stretches.first_broker_cell])
        return values.take(self.broker_cell)

    def places(self, before: Ints) -> Ints:
        """Return each cell's place among the queues of its topic.

        Args:
            before: for each broker cell, the place of queue 0 on that broker.
        """
        if self._once and self.queues.listed_id is None:
            first = before[self.stretches.first_broker_cell] + self._first_id
            return ranges(first, self.stretches.count)
        places = self.at_brokers(before)
        places += self.spread(self.queue_id)
        return places

    def _count_from(self, first: Ints) -> Ints:
        """Return each stretch's value for its first queue, incremented by 1 for each following
        queue.
        """
        if self._once:
            return self._by_segment(first)
        values = self.spread(self._by_segment(first) - self.first[:-1])
        values += np.arange(len(values))
        return values


@dataclass(frozen=True)
class Readable:
    """The cells that can be read in an epoch with members, which are those that a strategy
    divides.
    """

    cells: Cells
    selected: Ints | None
    """The cells; None: all cells."""

    def _those(self, by_cell: Ints) -> Ints:
        return by_cell if self.selected is None else by_cell[self.selected]

    @cached_property
    def queue(self) -> Ints:
        """The index into `Queues`; all arrays here have one value per readable cell."""
        return self.cells.queue[self._those(self.cells.segment)]

    @cached_property
    def queue_id(self) -> Ints:
        """The queue's number on its broker."""
        if self.selected is None:
            return self.cells.spread(self.cells.queue_id)
        return self.cells.queue_id[self.cells.segment[self.selected]]

    @property
    def epoch(self) -> Ints:
        """The epoch, as `Cells.epoch` numbers it."""
        return self._those(self.cells.epoch)

    @cached_property
    def broker_cell(self) -> Ints:
        """The broker cell, as `Cells.broker_cell` numbers it."""
        return self._those(self.cells.broker_cell)

    def at_brokers(self, values: AnyInts) -> AnyInts:
        """Return, for each readable cell, the value of its broker cell."""
        if self.selected is None:
            return self.cells.at_brokers(values)
        return values.take(self.broker_cell)

    def places(self, before: Ints) -> Ints:
        """Return each readable cell's place among the queues of its topic."""
        if self.selected is None:
            return self.cells.places(before)
        return before.take(self.broker_cell) + self.queue_id
