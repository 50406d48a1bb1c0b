"""Who owns what, cell by cell: one queue in one epoch, in pieces that fit the cache.

A *segment* is one queue over all epochs of its group.
"""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.kernels.segments import Bools, Ints

NOBODY = -1
ABSENT = -2
"""The queue cannot be read and is not held."""


@dataclass(frozen=True, slots=True)
class Queues:
    """One value a queue that could be read in some epoch, or that CONFIG lists; by group, topic,
    broker and id.
    """

    group: Ints
    group_topic: Ints
    topic_broker: Ints
    queue_id: Ints


@dataclass(frozen=True, slots=True)
class Cells:
    """Consecutive segments; the epochs of a segment stand together."""

    queue: Ints
    """By segment: index into `Queues`."""
    first: Ints
    """The first cell of each segment, and the end."""
    topic_offset: Ints
    """By segment: its topic cell in epoch e is this + e."""
    segment: Ints
    """By cell, as all that follow."""
    epoch: Ints
    broker_cell: Ints
    readable: Bools

    def __len__(self) -> int:
        return len(self.segment)

    @property
    def topic_cell(self) -> Ints:
        """By cell."""
        return self.topic_offset[self.segment] + self.epoch


@dataclass(frozen=True, slots=True)
class Readable:
    """Cells that can be read in an epoch with members: what a strategy divides."""

    queue: Ints
    """Index into `Queues`."""
    epoch: Ints
    broker_cell: Ints
    topic_broker: Ints
    queue_id: Ints


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
