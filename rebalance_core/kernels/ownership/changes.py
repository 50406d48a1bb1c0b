"""What each epoch changes: who drops and who adds which queue, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.shared_members import SharedMembers, client_turns
from rebalance_core.kernels.segments import Bools, Ints, first_of_run
from rebalance_core.kernels.state.cells import Block, Broadcast, Cells, Piece, Queues, Shared
from rebalance_core.protocol.windows import ORDER_LOCK_MS

INITIAL, NEW, FORCED, VOLUNTARY = range(4)
KINDS = ("INITIAL", "NEW", "FORCED", "VOLUNTARY")


@dataclass(frozen=True, slots=True)
class Changes:
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
    kind: Ints
    latest_ms: Ints

    def where(self, rows: Bools | Ints) -> Changes:
        """Some of the rows, by mask or number."""
        return Changes(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class Before:
    """What became of whoever held a queue in the epoch before, by cell of a block."""

    entry: Ints
    """Who it was; -1: nobody."""
    gone: Bools
    """Its process is no longer a member."""
    wants: Bools
    """It is still a member that subscribes the topic."""


class Differ:
    """Finds the changes of pieces.

    Args:
        prepared: the groups.
        queues: what the pieces' segments are about.
    """

    def __init__(self, prepared: PreparedGroups, queues: Queues) -> None:
        self._prepared, self._queues = prepared, queues
        self._retry = prepared.coded.topic_is_retry[prepared.grid.topics.topic]

    def changes(self, piece: Piece) -> Changes:
        """Every ADD and DROP of a piece.

        Both by queue and epoch; where a queue has many holders by queue, epoch and client (shared
        groups) or queue, client and epoch (BROADCASTING).
        """
        if isinstance(piece, Shared):
            return self._of_shared(piece)
        return self._of_broadcast(piece) if isinstance(piece, Broadcast) else self._of_block(piece)

    def before(self, block: Block) -> Before:
        """A look back from every cell of a block."""
        entry = np.full(len(block.entry), -1, np.int64)
        entry[1:] = block.entry[:-1]
        entry[first_of_run(block.cells.segment)] = -1
        group_topic = self._queues.group_topic[block.cells.queue]
        return Before(entry, *self._fates(entry, group_topic[block.cells.segment]))

    def _fates(self, entry: Ints, group_topic: Ints) -> tuple[Bools, Bools]:
        """`Before.gone` and `Before.wants` of entries that held a queue of a topic."""
        roster = self._prepared.roster
        still = roster.following(entry)
        gone = (still < 0) | (roster.process(still) != roster.process(entry))
        subscribed = roster.subscribes(still, group_topic)
        return gone, (still >= 0) & subscribed

    def _of_block(self, block: Block) -> Changes:
        cells = block.cells
        now = self._prepared.roster.client(block.entry)
        past = self.before(block)
        was = self._prepared.roster.client(past.entry)
        differs = now != was
        adding = np.flatnonzero(differs & (now >= 0))
        dropping = np.flatnonzero(differs & (was >= 0))
        cell = np.concatenate([adding, dropping])
        is_add = np.arange(len(cell)) < len(adding)
        gone, wants = past.gone[cell], past.wants[cell]
        kind, latest_ms = self._why(cells, cell, is_add, past.entry[cell] >= 0, wants, gone, wants)
        return Changes(
            cell, cells.queue[cells.segment[cell]], cells.epoch[cell], is_add,
            np.where(is_add, block.entry[cell], past.entry[cell]),
            np.where(is_add, now[cell], was[cell]),
            np.maximum(np.where(is_add, was[cell], now[cell]), -1),
            kind, latest_ms,
        )  # fmt: skip

    def _of_broadcast(self, piece: Broadcast) -> Changes:
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
            cells, cell, is_add, held > 0, held > leaving[cell], gone, wants
        )
        client = piece.client[span]
        return Changes(
            cell, queue, epoch, is_add, entry, client,
            _only_other(cell, is_add, client, len(cells)), kind, latest_ms,
        )  # fmt: skip

    def _of_shared(self, piece: Shared) -> Changes:
        cells, turns = piece.cells, client_turns(piece)
        cell, client, is_add = turns.cell, turns.client, turns.is_add
        epoch, queue = cells.epoch[cell], cells.queue[turns.segment]
        gone, entry = self._shared.hands(piece, turns)
        wants = self._shared.wants(queue, client, epoch)
        held = held_before(piece)[cell] > 0
        wanted = self._shared.wanted(piece)[cell] > 0
        kind, latest_ms = self._why(cells, cell, is_add, held, wanted, gone, wants)
        return Changes(
            cell, queue, epoch, is_add, entry, client,
            _only_other(cell, is_add, client, len(cells)), kind, latest_ms,
        )  # fmt: skip

    @cached_property
    def _shared(self) -> SharedMembers:
        return SharedMembers(self._prepared, self._queues)

    def _why(
        self, cells: Cells, cell: Ints, is_add: Bools, held: Bools, wanted: Bools, gone: Bools,
        wants: Bools,
    ) -> tuple[Ints, Ints]:  # fmt: skip
        """Kind and latest moment of each change.

        Args:
            cells: of the piece.
            cell: of each change, as all that follow.
            is_add: the others are drops.
            held: somebody held the queue in the epoch before.
            wanted: one of them is still a member that subscribes the topic.
            gone: who drops is no longer a member.
            wants: who drops still subscribes the topic.
        """
        epochs, epoch = self._prepared.epochs, cells.epoch[cell]
        retry = self._retry[self._queues.group_topic[cells.queue[cells.segment[cell]]]]
        add = np.select([epochs.initial[epoch], ~held, wanted], [INITIAL, NEW, VOLUNTARY], FORCED)
        forced = gone | ~cells.readable[cell] | ~wants
        settled = np.where(retry, epochs.retry_latest_ms[epoch], epochs.latest_ms[epoch])
        lock = self._prepared.coded.groups.ordered[epochs.group[epoch]] * ORDER_LOCK_MS
        dropped = np.where(gone, epochs.from_ms[epoch], settled)
        return (
            np.where(is_add, add, np.where(forced, FORCED, VOLUNTARY)),
            np.where(is_add, settled + lock, dropped),
        )


def held_before(piece: Broadcast | Shared) -> Ints:
    """By cell: how many held the queue in the epoch before."""
    held = np.zeros(len(piece.cells), np.int64)
    held[1:] = piece.holders[:-1]
    held[first_of_run(piece.cells.segment)] = 0
    return held


def _only_other(cell: Ints, is_add: Bools, client: Ints, cells: int) -> Ints:
    """`Changes.other` where a queue has many holders."""
    other = np.full(len(cell), -1, np.int64)
    for mine, theirs in ((is_add, ~is_add), (~is_add, is_add)):
        single = np.full(cells, -1, np.int64)
        single[cell[theirs]] = client[theirs]
        single[np.bincount(cell[theirs], minlength=cells) != 1] = -1
        other[mine] = single[cell[mine]]
    return other
