"""The changes in each epoch: who drops and adds each queue, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import NO_MEMBER, Block, Broadcast, Piece, Shared
from rebalance_core.kernels.cells import Cells
from rebalance_core.kernels.ownership import passes, sharing
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.protocol.order_locks import ORDER_LOCK_MS


@dataclass(frozen=True, slots=True)
class Turns:
    """The cells in which the number of a client's processes that hold the queue changes."""

    segment: Ints
    client: Ints
    cell: Ints
    is_add: Bools
    """Whether more processes hold the queue."""


def client_turns(piece: Shared) -> Turns:
    """Return the turns of a piece, sorted by cell and client."""
    tenures, cells = piece.tenures, piece.cells
    touches = ~segments.first_of_run(tenures.segment, tenures.client)
    touches &= tenures.begin == np.roll(tenures.end, 1)
    before = np.where(touches, np.roll(tenures.processes, 1), 0)
    ending = tenures.end < cells.first[tenures.segment + 1]
    ending &= ~np.append(touches[1:], False)
    row = np.concatenate([np.arange(len(before)), np.flatnonzero(ending)])
    segment, client = tenures.segment[row], tenures.client[row]
    cell = np.concatenate([tenures.begin, tenures.end[ending]])
    is_add = np.append(tenures.processes > before, np.zeros(int(ending.sum()), np.bool_))
    order = np.lexsort((client, cell))
    return Turns(segment[order], client[order], cell[order], is_add[order])


class SharedMembers:
    """Queries about the members of shared groups.

    Args:
        prepared: the groups.
        queues: the queues that the pieces' segments index.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._reading, self._present = passes.subscribed_by(prepared), passes.present(prepared)

    def wants(self, queue: Ints, client: Ints, epoch: Ints) -> Bools:
        """Return True where any process of a client subscribes to a queue's topic."""
        return self._reading.at(self._queues.group_topic[queue], client, epoch) >= 0

    def hands(self, piece: Shared, turns: Turns) -> tuple[Bools, Ints]:
        """Return, for each change, whether every process is gone, and the entry that acts.

        That is the first, by channel, of the processes that take the queue or give it up.
        """
        spans, epoch = piece.spans, piece.cells.epoch
        cell, client, is_add = turns.cell, turns.client, turns.is_add
        by_client = self._prepared.membership.processes.client[spans.process]
        gone, entry = np.zeros(len(cell), np.bool_), np.zeros(len(cell), np.int64)
        ending = np.flatnonzero(spans.end < piece.cells.first[spans.segment + 1])
        for mine, span, change_cell, ago in (
            (is_add, np.arange(len(spans.begin)), spans.begin, 0),
            (~is_add, ending, spans.end[ending], 1),
        ):
            key = segments.pair(change_cell, by_client[span])
            order = np.lexsort((spans.process[span], key))
            key, span, change_cell = key[order], span[order], change_cell[order]
            left = (
                self._present.at(
                    np.zeros_like(change_cell), spans.process[span], epoch[change_cell]
                )
                < 0
            )
            bounds = np.append(np.flatnonzero(segments.first_of_run(key)), len(key))
            row = segments.find(key[bounds[:-1]], segments.pair(cell[mine], client[mine]))
            gone[mine] = (segments.sums(~left, bounds) == 0)[row]
            first = bounds[:-1][row]
            node = spans.node[span[first]] + epoch[change_cell[first]] - ago
            entry[mine] = self._prepared.roster.entry_at[node]
        return gone, entry

    def wanted(self, piece: Shared) -> Ints:
        """Return, per cell, how many clients held the queue in the previous epoch and still
        subscribe to the topic.
        """
        cells, held = piece.cells, sharing.held_by(piece.tenures)
        begin, end = held.begin + 1, np.minimum(held.end + 1, cells.first[held.major + 1])
        offset = (cells.first[:-1] - cells.epoch[cells.first[:-1]])[held.major]
        group_topic = self._queues.group_topic[cells.queue[held.major]]
        row, low, high = self._reading.parts(group_topic, held.minor, begin - offset, end - offset)
        return segments.covered(low + offset[row], high + offset[row], len(cells))


Kinds: TypeAlias = NDArray[np.int8]
INITIAL, NEW, FORCED, VOLUNTARY = range(4)
MOVE_KINDS = ("INITIAL", "NEW", "FORCED", "VOLUNTARY")


@dataclass(frozen=True, slots=True)
class OwnerChanges:
    """Changes of owners, with one value per row of ``diffs``."""

    cell: Ints
    """The cell of the piece."""
    queue: Ints
    epoch: Ints
    is_add: Bools
    entry: Ints
    """The client's entry: in this epoch for an ADD, in the previous one for a DROP."""
    client: Ints
    other: Ints
    """The only client with the opposite action on the queue in the epoch; -1: none or several."""
    kind: Kinds
    latest_ms: Ints

    def where(self, rows: Bools | Ints) -> OwnerChanges:
        """Return the rows selected by mask or number."""
        numbers = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return OwnerChanges(*(getattr(self, f.name).take(numbers) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class _Turned:
    """The cells of a block in which a queue changes or loses its owner."""

    cell: Ints
    now: Ints
    """The client that holds each turned cell; negative: none."""
    was: Ints
    """The client that held each turned cell's queue in the previous epoch; negative: none."""
    row: Ints
    """The turned cell of each row of the changes, with all ADDs first."""
    is_add: Bools
    """For each row, whether it is an ADD."""


class Differ:
    """The changes in pieces, epoch by epoch.

    Args:
        prepared: the groups.
        queues: the queues that the pieces' segments index.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._retry = prepared.encoded.topic_is_retry[prepared.grid.topics.topic]

    def changes(self, piece: Piece) -> OwnerChanges:
        """Return every ADD and DROP of a piece.

        Rows are sorted by queue and epoch or, where a queue may have many holders, by queue, epoch
        and client (shared groups) or by queue, client and epoch (BROADCASTING).
        """
        if isinstance(piece, Shared):
            return self._of_shared(piece)
        return self._of_broadcast(piece) if isinstance(piece, Broadcast) else self._of_block(piece)

    def _fates(self, entry: Ints, group_topic: Ints) -> tuple[Bools, Bools]:
        """Return the current state of entries that held a topic's queue in the previous epoch.

        Returns:
            Whether the process is no longer a member; whether it still subscribes to the topic.
        """
        roster = self._prepared.roster
        still = roster.following(entry)
        gone = (still < 0) | (roster.process(still) != roster.process(entry))
        subscribed = roster.subscribes(still, group_topic)
        return gone, (still >= 0) & subscribed

    def turns(self, piece: Piece) -> tuple[Ints, Bools]:
        """Return the epoch of every row of `changes`, and whether it is an ADD."""
        if not isinstance(piece, Block):
            changes = self.changes(piece)
            return changes.epoch, changes.is_add
        turned = self._turned(piece)
        cell = turned.cell.take(turned.row)
        return piece.cells.epoch.take(cell), turned.is_add

    def _turned(self, block: Block) -> _Turned:
        client = self._prepared.roster.client(block.entry)
        before = preceding(block.cells, client, NO_MEMBER)
        cell = np.flatnonzero(client != before)
        now, was = client.take(cell), before.take(cell)
        adding, dropping = np.flatnonzero(now >= 0), np.flatnonzero(was >= 0)
        row = np.concatenate([adding, dropping])
        return _Turned(cell, now, was, row, np.arange(len(row)) < len(adding))

    def _of_block(self, block: Block) -> OwnerChanges:
        cells, turned = block.cells, self._turned(block)
        row, is_add, now, was = turned.row, turned.is_add, turned.now, turned.was
        now_entry = block.entry.take(turned.cell)
        past_entry = np.where(was >= 0, block.entry[turned.cell - 1], NO_MEMBER)
        queue = cells.queue.take(cells.segment.take(turned.cell))
        gone, wants = self._fates(past_entry, self._queues.group_topic.take(queue))
        cell, queue = turned.cell.take(row), queue.take(row)
        gone, wants = gone.take(row), wants.take(row)
        kind, latest_ms = self._why(
            cells, cell, queue, is_add, (was >= 0).take(row), wants, gone, wants
        )
        return OwnerChanges(
            cell=cell,
            queue=queue,
            epoch=cells.epoch.take(cell),
            is_add=is_add,
            entry=np.where(is_add, now_entry.take(row), past_entry.take(row)),
            client=np.where(is_add, now.take(row), was.take(row)),
            other=np.maximum(np.where(is_add, was.take(row), now.take(row)), -1),
            kind=kind,
            latest_ms=latest_ms,
        )

    def _of_broadcast(self, piece: Broadcast) -> OwnerChanges:
        cells, roster = piece.cells, self._prepared.roster
        ending = np.flatnonzero(piece.end < cells.first[piece.segment + 1])
        span = np.concatenate([np.arange(len(piece.begin)), ending])
        is_add = np.arange(len(span)) < len(piece.begin)
        cell = np.where(is_add, piece.begin[span], 0)
        cell[~is_add] = piece.end[ending]
        epoch, queue = cells.epoch[cell], cells.queue[cells.segment[cell]]
        entry = roster.entry_at[piece.node[span] + epoch - ~is_add]
        gone, wants = self._fates(entry, self._queues.group_topic[queue])
        held = held_before(piece)[cell]
        leaving = np.bincount(cell[~is_add & ~wants], minlength=len(cells))
        kind, latest_ms = self._why(
            cells, cell, queue, is_add, held > 0, held > leaving[cell], gone, wants
        )
        client = piece.client[span]
        return OwnerChanges(
            cell=cell,
            queue=queue,
            epoch=epoch,
            is_add=is_add,
            entry=entry,
            client=client,
            other=_only_other(cell, is_add, client, len(cells)),
            kind=kind,
            latest_ms=latest_ms,
        )

    def _of_shared(self, piece: Shared) -> OwnerChanges:
        cells, turns = piece.cells, client_turns(piece)
        cell, client, is_add = turns.cell, turns.client, turns.is_add
        epoch, queue = cells.epoch[cell], cells.queue[turns.segment]
        gone, entry = self._shared.hands(piece, turns)
        wants = self._shared.wants(queue, client, epoch)
        held = held_before(piece)[cell] > 0
        wanted = self._shared.wanted(piece)[cell] > 0
        kind, latest_ms = self._why(cells, cell, queue, is_add, held, wanted, gone, wants)
        return OwnerChanges(
            cell=cell,
            queue=queue,
            epoch=epoch,
            is_add=is_add,
            entry=entry,
            client=client,
            other=_only_other(cell, is_add, client, len(cells)),
            kind=kind,
            latest_ms=latest_ms,
        )

    @cached_property
    def _shared(self) -> SharedMembers:
        return SharedMembers(self._prepared, self._queues)

    def _why(
        self,
        cells: Cells,
        cell: Ints,
        queue: Ints,
        is_add: Bools,
        held: Bools,
        wanted: Bools,
        gone: Bools,
        wants: Bools,
    ) -> tuple[Kinds, Ints]:
        """Return the kind and the latest moment of each change.

        Args:
            cells: the piece's cells.
            cell: the cell of each change; all arguments below are also per change.
            queue: the index into `Queues`.
            is_add: whether it is an ADD rather than a DROP.
            held: whether a client held the queue in the previous epoch.
            wanted: whether such a client is still a member that subscribes to the topic.
            gone: whether the dropping client is no longer a member.
            wants: whether the dropping client still subscribes to the topic.
        """
        epochs, epoch = self._prepared.epochs, cells.epoch.take(cell)
        kind = np.full(len(cell), FORCED, np.int8)
        kind[np.where(is_add, wanted, ~gone & wants & cells.readable.take(cell))] = VOLUNTARY
        kind[is_add & ~held] = NEW
        kind[is_add & epochs.initial.take(epoch)] = INITIAL
        settled = epochs.latest_ms.take(epoch)
        if self._retry.any():
            retry = self._retry.take(self._queues.group_topic.take(queue))
            settled = np.where(retry, epochs.retry_latest_ms.take(epoch), settled)
        dropped = np.where(gone, epochs.from_ms.take(epoch), settled)
        return kind, np.where(is_add, settled + self._lock_ms.take(epoch), dropped)

    @cached_property
    def _lock_ms(self) -> Ints:
        """Return how long a new owner may wait for its lock in each epoch, in ms."""
        ordered = self._prepared.encoded.groups.ordered[self._prepared.epochs.group]
        return ordered * np.int64(ORDER_LOCK_MS)


def preceding(cells: Cells, values: Ints, first: int) -> Ints:
    """Return each cell's value in the queue's previous epoch, or ``first`` if there is none."""
    previous = np.empty_like(values)
    previous[1:] = values[:-1]
    previous[cells.first[:-1]] = first
    return previous


def held_before(piece: Broadcast | Shared) -> Ints:
    """Return the number of clients that held each cell's queue in the previous epoch."""
    return preceding(piece.cells, piece.holders, 0)


def _only_other(cell: Ints, is_add: Bools, client: Ints, cells: int) -> Ints:
    """Return `OwnerChanges.other` for queues with many holders."""
    other = np.full(len(cell), -1, np.int64)
    for mine, others in ((is_add, ~is_add), (~is_add, is_add)):
        single = np.full(cells, -1, np.int64)
        single[cell[others]] = client[others]
        single[np.bincount(cell[others], minlength=cells) != 1] = -1
        other[mine] = single[cell[mine]]
    return other
