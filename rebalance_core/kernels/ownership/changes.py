"""What each epoch changes: who drops and who adds which queue, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cached_property

import numpy as np

from rebalance_core.kernels.ownership.passes import present, subscribed_by
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.sharing import covered, held_by
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import Bools, Ints, find, first_of_run, pair, sums
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
        cells, segment, client, cell, is_add = _turns(piece)
        epoch, queue = cells.epoch[cell], cells.queue[segment]
        group_topic = self._queues.group_topic[queue]
        gone, entry = self._hands(piece, cell, client, is_add)
        wants = self._reading.at(group_topic, client, epoch) >= 0
        held = held_before(piece)[cell] > 0
        wanted = self._wanted(piece)[cell] > 0
        kind, latest_ms = self._why(cells, cell, is_add, held, wanted, gone, wants)
        return Changes(
            cell, queue, epoch, is_add, entry, client,
            _only_other(cell, is_add, client, len(cells)), kind, latest_ms,
        )  # fmt: skip

    @cached_property
    def _reading(self) -> Periods:
        return subscribed_by(self._prepared)

    @cached_property
    def _present(self) -> Periods:
        return present(self._prepared)

    def _hands(self, piece: Shared, cell: Ints, client: Ints, is_add: Bools) -> tuple[Bools, Ints]:
        """Who acts in each change: every process is gone, and the entry of the first one.

        The first by channel, of those that take the queue or give it up.
        """
        spans, epoch = piece.spans, piece.cells.epoch
        by_client = self._prepared.membership.processes.client[spans.process]
        gone, entry = np.zeros(len(cell), np.bool_), np.zeros(len(cell), np.int64)
        ending = np.flatnonzero(spans.end < piece.cells.first[spans.segment + 1])
        for mine, span, at, ago in (
            (is_add, np.arange(len(spans.begin)), spans.begin, 0),
            (~is_add, ending, spans.end[ending], 1),
        ):
            key = pair(at, by_client[span])
            order = np.lexsort((spans.process[span], key))
            key, span, at = key[order], span[order], at[order]
            left = self._present.at(np.zeros_like(at), spans.process[span], epoch[at]) < 0
            bounds = np.append(np.flatnonzero(first_of_run(key)), len(key))
            row = find(key[bounds[:-1]], pair(cell[mine], client[mine]))
            gone[mine] = (sums(~left, bounds) == 0)[row]
            first = bounds[:-1][row]
            node = spans.node[span[first]] + epoch[at[first]] - ago
            entry[mine] = self._prepared.roster.entry_at[node]
        return gone, entry

    def _wanted(self, piece: Shared) -> Ints:
        """By cell: clients that held the queue in the epoch before and still subscribe the topic."""
        cells, held = piece.cells, held_by(piece.tenures)
        begin, end = held.begin + 1, np.minimum(held.end + 1, cells.first[held.major + 1])
        offset = (cells.first[:-1] - cells.epoch[cells.first[:-1]])[held.major]
        group_topic = self._queues.group_topic[cells.queue[held.major]]
        row, period = self._reading.meeting(group_topic, held.minor, begin - offset, end - offset)
        low = np.maximum(begin[row], self._reading.begin[period] + offset[row])
        high = np.minimum(end[row], self._reading.end[period] + offset[row])
        return covered(low, high, len(cells))

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


def _turns(piece: Shared) -> tuple[Cells, Ints, Ints, Ints, Bools]:
    """Cells in which a client has more or fewer processes that hold the queue than before.

    Returns:
        The piece's cells, and by change: segment, client, cell and whether it is a rise.
    """
    tenures, cells = piece.tenures, piece.cells
    touches = ~first_of_run(tenures.segment, tenures.client)
    touches &= tenures.begin == np.roll(tenures.end, 1)
    before = np.where(touches, np.roll(tenures.processes, 1), 0)
    ending = tenures.end < cells.first[tenures.segment + 1]
    ending &= ~np.append(touches[1:], False)
    segment, client, cell, is_add = (
        np.concatenate(columns)
        for columns in (
            (tenures.segment, tenures.segment[ending]),
            (tenures.client, tenures.client[ending]),
            (tenures.begin, tenures.end[ending]),
            (tenures.processes > before, np.zeros(int(ending.sum()), np.bool_)),
        )
    )
    order = np.lexsort((client, cell))
    return cells, segment[order], client[order], cell[order], is_add[order]


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
