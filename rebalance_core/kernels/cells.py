"""Where owners are worked out, cell by cell: one queue in one epoch, in pieces that fit the
cache.
"""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rebalance_core.kernels.segments import AnyInts, Bools, Ints, pointers, ranges

# The queues that groups have, numbered through.


@dataclass(frozen=True)
class Queues:
    """One value a queue that could be read in some epoch, or that CONFIG lists; by group, topic,
    broker and id.
    """

    first_of_broker: Ints
    """The first queue of each topic broker, and the end."""
    first_id: Ints
    """By topic broker: the number of its first queue, from which the others count on."""
    listed_id: Ints | None
    """Their numbers, where CONFIG lists have others; None: they count on."""
    group_of: Ints
    """By topic broker."""
    group_topic_of: Ints
    """By topic broker."""

    @cached_property
    def topic_broker(self) -> Ints:
        """By queue."""
        return np.repeat(np.arange(len(self.first_id)), np.diff(self.first_of_broker))

    @cached_property
    def queue_id(self) -> Ints:
        """By queue: its number on its broker."""
        if self.listed_id is not None:
            return self.listed_id
        return ranges(self.first_id, np.diff(self.first_of_broker))

    def ids_of(self, queue: Ints, topic_broker: Ints) -> Ints:
        """The numbers of some queues of these topic brokers."""
        if self.listed_id is not None:
            return self.listed_id[queue]
        return self.first_id[topic_broker] + queue - self.first_of_broker[topic_broker]

    @cached_property
    def group(self) -> Ints:
        """By queue."""
        return self.group_of[self.topic_broker]

    @cached_property
    def group_topic(self) -> Ints:
        """By queue."""
        return self.group_topic_of[self.topic_broker]


# Cells of consecutive queues, laid out by topic and broker; and those that a strategy divides.

MANY_QUEUES = 256
"""Of an epoch of a stretch, on average: as many pay a step of a Python loop for them."""


@dataclass(frozen=True, slots=True)
class Stretches:
    """Consecutive queues of a topic broker; one value each."""

    queue: Ints
    """The first one: index into `Queues`."""
    count: Ints
    topic_broker: Ints
    epochs: Ints
    """How many there are, of every queue, as all that follow."""
    first_epoch: Ints
    first_topic_cell: Ints
    first_broker_cell: Ints

    def between(self, low: int, high: int) -> Stretches:
        """Some that stand together."""
        return Stretches(*(getattr(self, field.name)[low:high] for field in fields(self)))


@dataclass(frozen=True)
class Cells:
    """Consecutive segments; the epochs of a segment stand together.

    There are far more cells than segments, and more of these than stretches: what has a value a
    cell or a segment is made when it is asked for.
    """

    stretches: Stretches
    queues: Queues
    readable_queues: Ints
    """By broker cell: how many queues can be read."""

    def __len__(self) -> int:
        return self._cells

    @cached_property
    def _cells(self) -> int:
        return int(self.stretches.count @ self.stretches.epochs)

    @cached_property
    def _once(self) -> bool:
        """Every queue has one epoch: none has none."""
        return self._cells == int(self.stretches.count.sum())

    @property
    def are_few_runs(self) -> bool:
        """In every epoch a stretch has many queues, which count on from the first."""
        enough = MANY_QUEUES * int(self.stretches.epochs.sum())
        return self.queues.listed_id is None and len(self) >= enough

    @cached_property
    def queue(self) -> Ints:
        """By segment, as all up to `segment`: index into `Queues`."""
        return ranges(self.stretches.queue, self.stretches.count)

    @property
    def queue_id(self) -> Ints:
        """The queue's number on its broker."""
        if self.queues.listed_id is not None:
            return self.queues.listed_id[self.queue]
        return ranges(self._first_id, self.stretches.count)

    @property
    def _first_id(self) -> Ints:
        """By stretch: the number of the first queue."""
        return self.queues.ids_of(self.stretches.queue, self.stretches.topic_broker)

    @cached_property
    def first(self) -> Ints:
        """The first cell of each segment, and the end."""
        return pointers(self._epochs)

    @property
    def _epochs(self) -> Ints:
        return self._by_segment(self.stretches.epochs)

    def _by_segment(self, values: AnyInts) -> AnyInts:
        return np.repeat(values, self.stretches.count)

    @cached_property
    def segment(self) -> Ints:
        """By cell, as all that follow."""
        return self.spread(np.arange(len(self.first) - 1))

    @cached_property
    def epoch(self) -> Ints:
        """Index into `Epochs`."""
        return self._count_from(self.stretches.first_epoch)

    @property
    def topic_cell(self) -> Ints:
        """Index into the cells of the topic grid."""
        return self._count_from(self.stretches.first_topic_cell)

    @cached_property
    def broker_cell(self) -> Ints:
        """Index into the cells of the broker grid."""
        return self._count_from(self.stretches.first_broker_cell)

    @cached_property
    def readable(self) -> Bools:
        """The queue can be read."""
        return self.readable_queues.take(self.broker_cell) > self.spread(self.queue_id)

    def spread(self, values: Ints) -> Ints:
        """The value of its segment for every cell."""
        return values if self._once else np.repeat(values, self._epochs)

    def at_brokers(self, values: AnyInts) -> AnyInts:
        """By cell: the value of its broker cell.

        Args:
            values: by broker cell.
        """
        if self._once:
            return self._by_segment(values[self.stretches.first_broker_cell])
        return values.take(self.broker_cell)

    def places(self, before: Ints) -> Ints:
        """By cell: the queue's place in its topic.

        Args:
            before: by broker cell: the place of the broker's queue 0.
        """
        if self._once and self.queues.listed_id is None:
            first = before[self.stretches.first_broker_cell] + self._first_id
            return ranges(first, self.stretches.count)
        found = self.at_brokers(before)
        found += self.spread(self.queue_id)
        return found

    def _count_from(self, first: Ints) -> Ints:
        """By cell: what its stretch has in the first epoch, and one more in each that follows."""
        if self._once:
            return self._by_segment(first)
        found = self.spread(self._by_segment(first) - self.first[:-1])
        found += np.arange(len(found))
        return found


@dataclass(frozen=True)
class Readable:
    """Cells that can be read in an epoch with members: what a strategy divides."""

    cells: Cells
    at: Ints | None
    """Which cells; None: all of them."""

    def _those(self, by_cell: Ints) -> Ints:
        return by_cell if self.at is None else by_cell[self.at]

    @cached_property
    def queue(self) -> Ints:
        """Index into `Queues`; one value a readable cell, as all that follow."""
        return self.cells.queue[self._those(self.cells.segment)]

    @cached_property
    def queue_id(self) -> Ints:
        """The queue's number on its broker."""
        if self.at is None:
            return self.cells.spread(self.cells.queue_id)
        return self.cells.queue_id[self.cells.segment[self.at]]

    @property
    def epoch(self) -> Ints:
        """As of the cells."""
        return self._those(self.cells.epoch)

    @cached_property
    def broker_cell(self) -> Ints:
        """As of the cells."""
        return self._those(self.cells.broker_cell)

    def at_brokers(self, values: AnyInts) -> AnyInts:
        """As of the cells."""
        if self.at is None:
            return self.cells.at_brokers(values)
        return values.take(self.broker_cell)

    def places(self, before: Ints) -> Ints:
        """As of the cells."""
        if self.at is None:
            return self.cells.places(before)
        return before.take(self.broker_cell) + self.queue_id


# Cells, and who holds each queue: one at most, everybody, or several processes.

NOBODY = -1
ABSENT = -2
"""The queue cannot be read and is not held."""


@dataclass(frozen=True, slots=True)
class Block:
    """Cells of CLUSTERING groups: a queue has one holder at most."""

    cells: Cells
    entry: Ints
    """By cell: who holds it: an entry of the roster, `NOBODY` or `ABSENT`."""

    @property
    def nobody(self) -> Bools:
        """By cell: the queue can be read and nobody holds it."""
        return self.entry == NOBODY


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Cells of BROADCASTING groups: every member of a topic holds its queues for a while.

    Holdings are kept as spans of cells, one value each, by queue segment, client and first cell;
    those of a client do not touch.
    """

    cells: Cells
    nobody: Bools
    """By cell: the queue can be read and nobody holds it."""
    holders: Ints
    """By cell: how many."""
    segment: Ints
    """By span, as all that follow."""
    client: Ints
    begin: Ints
    """The first cell."""
    end: Ints
    """The cell after the last."""
    node: Ints
    """In epoch e the client is entry ``entry_at[node + e]`` of the roster."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Stretches of cells in which a process holds a queue; by segment, process and first cell.

    One value each; those of a process do not touch.
    """

    segment: Ints
    process: Ints
    begin: Ints
    """The first cell."""
    end: Ints
    """The cell after the last."""
    node: Ints
    """In epoch e the process is entry ``entry_at[node + e]`` of the roster."""


@dataclass(frozen=True, slots=True)
class Tenures:
    """Stretches of cells in which equally many processes of a client hold a queue.

    One value each; by segment, client and first cell.
    """

    segment: Ints
    client: Ints
    begin: Ints
    end: Ints
    processes: Ints


@dataclass(frozen=True, slots=True)
class Shared:
    """Cells of groups in which several processes may hold a queue."""

    cells: Cells
    nobody: Bools
    """By cell: the queue can be read and nobody holds it."""
    holders: Ints
    """By cell: how many processes."""
    spans: Spans
    tenures: Tenures


Piece = Block | Broadcast | Shared
