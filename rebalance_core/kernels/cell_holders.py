"""Cells, and who holds each queue: one at most, everybody, or several processes."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.segments import Bools, Ints

NO_MEMBER = -1
ABSENT = -2
"""The queue cannot be read and is not held."""


@dataclass(frozen=True, slots=True)
class Block:
    """Cells of CLUSTERING groups: a queue has one holder at most."""

    cells: Cells
    entry: Ints
    """By cell: who holds it: an entry of the roster, `NO_MEMBER` or `ABSENT`."""

    @property
    def unheld(self) -> Bools:
        """By cell: the queue can be read and has no holder."""
        return self.entry == NO_MEMBER


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Cells of BROADCASTING groups: every member of a topic holds its queues for a while.

    Holdings are kept as spans of cells, one value each, by queue segment, client and first cell;
    those of a client do not touch.
    """

    cells: Cells
    unheld: Bools
    """By cell: the queue can be read and has no holder."""
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
    unheld: Bools
    """By cell: the queue can be read and has no holder."""
    holders: Ints
    """By cell: how many processes."""
    spans: Spans
    tenures: Tenures


Piece = Block | Broadcast | Shared
