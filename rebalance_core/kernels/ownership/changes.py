"""Who holds each queue in each epoch, and what each epoch changes: who drops and adds it, and
why.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import pairwise
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels import segments
from rebalance_core.kernels.cells import (
    ABSENT,
    NOBODY,
    Block,
    Broadcast,
    Cells,
    Piece,
    Queues,
    Readable,
    Shared,
)
from rebalance_core.kernels.group_rows import EVERYONE, SHARED, divides
from rebalance_core.kernels.ownership import sharing
from rebalance_core.kernels.ownership.layout import Kernels, Layout, Stays, broadcast, find_stays
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.sharing import Sharing
from rebalance_core.kernels.roster import ALL_TOPICS
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.protocol.members import ORDER_LOCK_MS

# Who holds each queue of all groups in each epoch: the kernel of each strategy, and where it
# applies.

CELLS_PER_BLOCK = 1 << 17


class Holdings:
    """Who holds what in a prepared, piece by piece.

    Args:
        prepared: the groups.
        part: (i, n): only the i-th of n shares of every group's queues.
        cells_per_block: about how many cells a piece has; a segment is never cut.
    """

    def __init__(
        self,
        prepared: PreparedGroups,
        part: tuple[int, int] = (0, 1),
        cells_per_block: int = CELLS_PER_BLOCK,
    ) -> None:
        self._prepared = prepared
        self._layout = Layout(prepared, part, cells_per_block)

    @property
    def queues(self) -> Queues:
        """Every queue that can be read in some epoch, or that CONFIG lists."""
        return self._layout.queues

    @cached_property
    def _mixed(self) -> Bools:
        """By topic broker: members of its group subscribe different topics."""
        roster = self._prepared.roster
        mixed = np.zeros(len(self._prepared.coded.groups), np.bool_)
        mixed[roster.runs.group[roster.topics_of_run != ALL_TOPICS]] = True
        return mixed[self._prepared.grid.brokers.group]

    @cached_property
    def _carried(self) -> Bools:
        """By topic broker: its topic is frozen in some epoch, or its order locks are not given."""
        grid, lockless = self._prepared.grid, self._prepared.lockless
        frozen = segments.extreme(np.logical_or, grid.frozen, grid.topic_first, False)
        return frozen[grid.topic_of] | segments.extreme(
            np.logical_or, lockless, grid.broker_first, False
        )

    @cached_property
    def _kernels(self) -> Kernels:
        return Kernels(self._prepared, self.queues)

    def pieces(self) -> Iterator[Piece]:
        """All queues; each piece is of one kind of strategy, or of shared groups."""
        prepared, grid = self._prepared, self._prepared.grid
        group = grid.brokers.group
        kind = np.where(prepared.shared, SHARED, prepared.coded.groups.kind)[group]
        weights = np.diff(prepared.epochs.of_group)[group]
        if (kind == EVERYONE).any():
            weights += np.diff(self._stays.first)[grid.topic_of]
        if (kind == SHARED).any():
            weights += (kind == SHARED) * self._sharing.weights[grid.topic_of]
        for of_kind, cells in self._layout.pieces(kind, weights):
            if of_kind == SHARED:
                yield self.shared_piece(cells, self.divided(cells))
            elif of_kind == EVERYONE:
                yield broadcast(prepared, self.queues, self._stays, cells)
            else:
                yield self._block(of_kind, cells)

    @cached_property
    def _stays(self) -> Stays:
        return find_stays(self._prepared)

    @cached_property
    def _sharing(self) -> Sharing:
        return Sharing(self._prepared, self.queues, sharing.find_passes(self._prepared))

    def laid_out(self, room: Ints) -> Iterator[Cells]:
        """All queues, whoever holds them, some at a time.

        Args:
            room: by group topic: about how much an epoch of a queue takes.
        """
        grid, of_group = self._prepared.grid, self._prepared.epochs.of_group
        weights = np.diff(of_group)[grid.brokers.group] * room[grid.topic_of]
        for _, cells in self._layout.pieces(np.zeros_like(weights), weights):
            yield cells

    def shared_piece(self, cells: Cells, owned: Iterable[tuple[int, Ints, Ints]]) -> Shared:
        """Find who holds cells of shared groups; ``owned`` as `divided` gives it."""
        return self._sharing.piece(cells, owned)

    def divided(self, cells: Cells) -> Iterator[tuple[int, Ints, Ints]]:
        """Cells that a group's strategy of each number divides, and the entry that owns each."""
        prepared = self._prepared
        cell = np.flatnonzero(cells.readable & (prepared.epochs.live[cells.epoch] > 0))
        group = prepared.epochs.group[cells.epoch[cell]]
        for number in range(prepared.coded.divisions.most):
            kinds = self._kernels.divided_by[number].groups.kind[group]
            for kind in np.unique(kinds[divides(kinds)]).tolist():
                mine = cell[kinds == kind]
                owner = self._kernels.of(kind, number).entries(Readable(cells, mine))
                yield number, mine[owner >= 0], owner[owner >= 0]

    def _block(self, kind: int, cells: Cells) -> Block:
        prepared, queues = self._prepared, self.queues
        topic_broker = cells.stretches.topic_broker
        given = Readable(cells, self._divided_cells(cells))
        owner = self._kernels.of(kind).entries(given)
        if self._mixed[topic_broker].any():
            held = np.flatnonzero(owner >= 0)
            group_topic = queues.group_topic[given.queue[held]]
            owner[held[~prepared.roster.subscribes(owner[held], group_topic)]] = NOBODY
        if given.at is None:
            entry = owner
        else:
            entry = np.where(cells.readable, NOBODY, ABSENT)
            entry[given.at] = owner
        if self._carried[topic_broker].any():
            self._carry(entry, cells)
        return Block(cells, entry)

    def _divided_cells(self, cells: Cells) -> Ints | None:
        """Return the cells that can be read in an epoch with members; None: all."""
        some = cells.stretches
        last = some.queue + some.count - 1
        last_id = self.queues.ids_of(last, some.topic_broker)
        if (last_id < self._always_divided[some.topic_broker]).all():
            return None
        return np.flatnonzero(cells.readable & (self._prepared.epochs.live[cells.epoch] > 0))

    @cached_property
    def _always_divided(self) -> Ints:
        """By topic broker: so many of its first queues are divided in every epoch."""
        epochs, grid = self._prepared.epochs, self._prepared.grid
        live = segments.extreme(np.minimum, epochs.live, epochs.of_group, 0) > 0
        fewest = segments.extreme(np.minimum, grid.readable, grid.broker_first, 0)
        return fewest * live[grid.brokers.group]

    def _carry(self, entry: Ints, cells: Cells) -> None:
        """Whoever held a queue keeps it where there is no answer, and alone where no lock is given.

        Frozen topics: whoever is still there keeps what it held. Without locks nobody else gets it.
        """
        roster, cell = self._prepared.roster, np.arange(len(cells))
        frozen = self._prepared.grid.frozen[cells.topic_cell]
        lockless = self._prepared.lockless[cells.broker_cell] & ~frozen
        opening = cells.first[cells.segment] == cell
        entry[opening & lockless & (entry >= 0)] = NOBODY
        following = np.flatnonzero((frozen | lockless) & ~opening)
        ago = segments.rank(following - np.arange(len(following)))
        order = np.argsort(ago, kind="stable")
        bounds = np.searchsorted(ago[order], np.arange(int(ago.max(initial=-1)) + 2))
        group_topic = self.queues.group_topic[cells.queue]
        for begin, end in pairwise(bounds):
            at = following[order[begin:end]]
            held = entry[at - 1]
            keeps = roster.following(held)
            same = (keeps >= 0) & (held >= 0) & (roster.process(keeps) == roster.process(held))
            stays = same & frozen[at] & roster.subscribes(keeps, group_topic[cells.segment[at]])
            refused = lockless[at] & (entry[at] >= 0) & ~(same & (keeps == entry[at]))
            entry[at[stays]] = keeps[stays]
            entry[at[refused]] = NOBODY


# The members of shared groups: who takes and gives up queues, and who is still there.


@dataclass(frozen=True, slots=True)
class Turns:
    """Cells in which more or fewer processes of a client hold the queue than in the one before."""

    segment: Ints
    client: Ints
    cell: Ints
    is_add: Bools
    """They are more."""


def client_turns(piece: Shared) -> Turns:
    """The turns of a piece, by cell and client."""
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
    """Answers about the members of shared groups.

    Args:
        prepared: the groups.
        queues: what the pieces' segments are about.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._reading, self._present = sharing.subscribed_by(prepared), sharing.present(prepared)

    def wants(self, queue: Ints, client: Ints, epoch: Ints) -> Bools:
        """True where some process of a client subscribes the topic of a queue."""
        return self._reading.at(self._queues.group_topic[queue], client, epoch) >= 0

    def hands(self, piece: Shared, turns: Turns) -> tuple[Bools, Ints]:
        """Find who acts in each change: every process is gone, and the entry of the first one.

        The first by channel, of those that take the queue or give it up.
        """
        spans, epoch = piece.spans, piece.cells.epoch
        cell, client, is_add = turns.cell, turns.client, turns.is_add
        by_client = self._prepared.membership.processes.client[spans.process]
        gone, entry = np.zeros(len(cell), np.bool_), np.zeros(len(cell), np.int64)
        ending = np.flatnonzero(spans.end < piece.cells.first[spans.segment + 1])
        for mine, span, at, ago in (
            (is_add, np.arange(len(spans.begin)), spans.begin, 0),
            (~is_add, ending, spans.end[ending], 1),
        ):
            key = segments.pair(at, by_client[span])
            order = np.lexsort((spans.process[span], key))
            key, span, at = key[order], span[order], at[order]
            left = self._present.at(np.zeros_like(at), spans.process[span], epoch[at]) < 0
            bounds = np.append(np.flatnonzero(segments.first_of_run(key)), len(key))
            row = segments.find(key[bounds[:-1]], segments.pair(cell[mine], client[mine]))
            gone[mine] = (segments.sums(~left, bounds) == 0)[row]
            first = bounds[:-1][row]
            node = spans.node[span[first]] + epoch[at[first]] - ago
            entry[mine] = self._prepared.roster.entry_at[node]
        return gone, entry

    def wanted(self, piece: Shared) -> Ints:
        """By cell: clients that held the queue an epoch before and still subscribe the topic."""
        cells, held = piece.cells, sharing.held_by(piece.tenures)
        begin, end = held.begin + 1, np.minimum(held.end + 1, cells.first[held.major + 1])
        offset = (cells.first[:-1] - cells.epoch[cells.first[:-1]])[held.major]
        group_topic = self._queues.group_topic[cells.queue[held.major]]
        row, low, high = self._reading.parts(group_topic, held.minor, begin - offset, end - offset)
        return segments.covered(low + offset[row], high + offset[row], len(cells))


Kinds: TypeAlias = NDArray[np.int8]
INITIAL, NEW, FORCED, VOLUNTARY = range(4)
KINDS = ("INITIAL", "NEW", "FORCED", "VOLUNTARY")


@dataclass(frozen=True, slots=True)
class OwnerChanges:
    """One value a row of ``diffs``."""

    cell: Ints
    """Of the piece."""
    queue: Ints
    epoch: Ints
    is_add: Bools
    entry: Ints
    """Who adds: its entry in this epoch; who drops: its entry in the epoch before."""
    client: Ints
    other: Ints
    """The only client with the opposite action on the queue in the epoch; -1: none, or several."""
    kind: Kinds
    latest_ms: Ints

    def where(self, rows: Bools | Ints) -> OwnerChanges:
        """Some of the rows, by mask or number."""
        at = np.flatnonzero(rows) if rows.dtype == np.bool_ else rows
        return OwnerChanges(*(getattr(self, f.name).take(at) for f in fields(self)))


@dataclass(frozen=True, slots=True)
class _Turned:
    """The cells of a block in which a queue gets another owner, or loses its own."""

    cell: Ints
    now: Ints
    """By turned cell: the client that holds it; negative: nobody."""
    was: Ints
    """By turned cell: the client that held it an epoch before; negative: nobody."""
    row: Ints
    """Which of them each row of the changes is about, all that add first."""
    is_add: Bools
    """By row."""


class Differ:
    """Finds the changes of pieces.

    Args:
        prepared: the groups.
        queues: what the pieces' segments are about.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._retry = prepared.coded.topic_is_retry[prepared.grid.topics.topic]

    def changes(self, piece: Piece) -> OwnerChanges:
        """Every ADD and DROP of a piece.

        Both by queue and epoch; where a queue has many holders by queue, epoch and client (shared
        groups) or queue, client and epoch (BROADCASTING).
        """
        if isinstance(piece, Shared):
            return self._of_shared(piece)
        return self._of_broadcast(piece) if isinstance(piece, Broadcast) else self._of_block(piece)

    def _fates(self, entry: Ints, group_topic: Ints) -> tuple[Bools, Bools]:
        """Say what became of entries that held a queue of a topic in the epoch before.

        Returns:
            Whether the process is no longer a member; whether it still subscribes the topic.
        """
        roster = self._prepared.roster
        still = roster.following(entry)
        gone = (still < 0) | (roster.process(still) != roster.process(entry))
        subscribed = roster.subscribes(still, group_topic)
        return gone, (still >= 0) & subscribed

    def turns(self, piece: Piece) -> tuple[Ints, Bools]:
        """The epoch of every row of `changes`, and whether it is an ADD."""
        if not isinstance(piece, Block):
            changes = self.changes(piece)
            return changes.epoch, changes.is_add
        turned = self._turned(piece)
        cell = turned.cell.take(turned.row)
        return piece.cells.epoch.take(cell), turned.is_add

    def _turned(self, block: Block) -> _Turned:
        client = self._prepared.roster.client(block.entry)
        before = preceding(block.cells, client, NOBODY)
        cell = np.flatnonzero(client != before)
        now, was = client.take(cell), before.take(cell)
        adding, dropping = np.flatnonzero(now >= 0), np.flatnonzero(was >= 0)
        row = np.concatenate([adding, dropping])
        return _Turned(cell, now, was, row, np.arange(len(row)) < len(adding))

    def _of_block(self, block: Block) -> OwnerChanges:
        cells, turned = block.cells, self._turned(block)
        row, is_add, now, was = turned.row, turned.is_add, turned.now, turned.was
        now_entry = block.entry.take(turned.cell)
        past_entry = np.where(was >= 0, block.entry[turned.cell - 1], NOBODY)
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
        self, cells: Cells, cell: Ints, queue: Ints, is_add: Bools, held: Bools, wanted: Bools,
        gone: Bools, wants: Bools,
    ) -> tuple[Kinds, Ints]:  # fmt: skip
        """Kind and latest moment of each change.

        Args:
            cells: of the piece.
            cell: of each change, as all that follow.
            queue: index into `Queues`.
            is_add: the others are drops.
            held: somebody held the queue in the epoch before.
            wanted: one of them is still a member that subscribes the topic.
            gone: who drops is no longer a member.
            wants: who drops still subscribes the topic.
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
        """By epoch: how long a new owner may wait for its lock."""
        ordered = self._prepared.coded.groups.ordered[self._prepared.epochs.group]
        return ordered * np.int64(ORDER_LOCK_MS)


def preceding(cells: Cells, values: Ints, first: int) -> Ints:
    """By cell: the value of the queue in the epoch before; ``first`` where there is none."""
    found = np.empty_like(values)
    found[1:] = values[:-1]
    found[cells.first[:-1]] = first
    return found


def held_before(piece: Broadcast | Shared) -> Ints:
    """By cell: how many held the queue in the epoch before."""
    return preceding(piece.cells, piece.holders, 0)


def _only_other(cell: Ints, is_add: Bools, client: Ints, cells: int) -> Ints:
    """`OwnerChanges.other` where a queue has many holders."""
    other = np.full(len(cell), -1, np.int64)
    for mine, others in ((is_add, ~is_add), (~is_add, is_add)):
        single = np.full(cells, -1, np.int64)
        single[cell[others]] = client[others]
        single[np.bincount(cell[others], minlength=cells) != 1] = -1
        other[mine] = single[cell[mine]]
    return other
