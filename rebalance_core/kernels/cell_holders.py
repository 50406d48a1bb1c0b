"""Cells, and who holds each queue: at most one client, every member, or several processes."""

from __future__ import annotations

from dataclasses import dataclass

from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.segments import Bools, Ints

NO_MEMBER = -1
ABSENT = -2
"""The queue cannot be read and is not held."""


@dataclass(frozen=True, slots=True)
class Block:
    """Cells of CLUSTERING groups, in which a queue has at most one holder."""

    cells: Cells
    entry: Ints
    """The holder of each cell: an entry of the roster, `NO_MEMBER` or `ABSENT`."""

    @property
    def unheld(self) -> Bools:
        """A mask of the cells whose queue can be read but has no holder."""
        return self.entry == NO_MEMBER


@dataclass(frozen=True, slots=True)
class Broadcast:
    """Cells of BROADCASTING groups, in which every member of a topic holds its queues for some
    time.

    Holdings are stored as spans of cells, with one value per span, sorted by queue segment, client
    and first cell; a client's spans do not touch.
    """

    cells: Cells
    unheld: Bools
    """For each cell, whether the queue can be read but has no holder."""
    holders: Ints
    """The number of holders of each cell."""
    segment: Ints
    """The queue segment of each span; all arrays from here on have one value per span."""
    client: Ints
    begin: Ints
    """The first cell."""
    end: Ints
    """The cell after the last one."""
    node: Ints
    """In epoch e the client is entry ``entry_at[node + e]`` of the roster."""


@dataclass(frozen=True, slots=True)
class Spans:
    """Spans of cells in which a process holds a queue.

    Each array has one value per span, sorted by segment, process and first cell; a process's spans
    do not touch.
    """

    segment: Ints
    process: Ints
    begin: Ints
    """The first cell."""
    end: Ints
    """The cell after the last one."""
    node: Ints
    """In epoch e the process is entry ``entry_at[node + e]`` of the roster."""


@dataclass(frozen=True, slots=True)
class Tenures:
    """Spans of cells in which a constant number of a client's processes hold a queue.

    Each array has one value per tenure, sorted by segment, client and first cell.
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
    """For each cell, whether the queue can be read but has no holder."""
    holders: Ints
    """The number of processes that hold each cell."""
    spans: Spans
    tenures: Tenures


Piece = Block | Broadcast | Shared
