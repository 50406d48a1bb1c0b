"""The rows of ``group_metrics``: movement and balance, per topic and for the whole group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import NO_MEMBER, Block, Broadcast, Shared
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.ownership.changes import (
    VOLUNTARY,
    OwnerChanges,
    held_before,
    preceding,
)
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import (
    PreparedGroups,
)
from rebalance_core.kernels.ownership.sharing import continued, held_by
from rebalance_core.kernels.segments import Bools, Counts, Ints
from rebalance_core.kernels.shared_clients import SharedClients
from rebalance_core.kernels.shared_loads import SharedLoads
from rebalance_core.kernels.table_rows import group_columns, nullable, table_rows
from rebalance_core.kernels.topic_members import (
    ManyHolders,
    TopicMembers,
    add_block,
    count_into,
    epochs_of_cells,
    held_topic_members,
)
from rebalance_core.kernels.topic_runs import clustering


@dataclass(frozen=True, slots=True)
class _Counts:
    """The counts of the cells, for topic cells and for topic members."""

    moved: Ints
    voluntary: Ints
    held: Ints
    """The number of queues that a client held in the previous epoch."""
    kept: Ints
    """The number of those queues that still have a holder."""
    per_topic_member: Counts
    kept_per_seat: Counts
    """The number of readable queues that the member held before."""


def metric_rows(
    prepared: PreparedGroups, holdings: Holdings, sharing: SharedLoads | None
) -> pa.RecordBatch:
    """Return the rows of the topics, then the rows of the groups."""
    topic_members = holdings.topic_members
    counts = _count(prepared, holdings, topic_members)
    grid = prepared.grid
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    topic = grid.topics.topic[of]
    shown = np.flatnonzero(grid.active & ~prepared.encoded.topic_is_retry[topic])
    epoch = epochs_of_cells(prepared)[shown]
    minimum, has_minimum = _minimum_moves(prepared, topic_members, counts.kept_per_seat)
    of_members = balance(topic_members.subscribed, counts.per_topic_member, topic_members.first)
    by_topic = _Rows(
        epoch=epoch,
        topic=topic[shown],
        queues=grid.queues[shown],
        moved=counts.moved[shown],
        voluntary=counts.voluntary[shown],
        minimum=minimum[shown],
        has_minimum=has_minimum[shown],
        held=counts.held[shown],
        kept=counts.kept[shown],
        balance=of_members[:, shown],
    )
    whole = _whole(
        prepared, topic_members, by_topic, counts.per_topic_member, _shares(prepared, sharing)
    )
    return _rows(prepared, by_topic.and_then(whole))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows before they get the table's columns; ``balance`` contains members, most, least and
    idle.
    """

    epoch: Ints
    topic: Ints
    queues: Ints
    moved: Ints
    voluntary: Ints
    minimum: Ints
    has_minimum: Bools
    held: Ints
    kept: Ints
    balance: Ints

    def and_then(self, other: _Rows) -> _Rows:
        """Return these rows followed by the others."""
        pairs = ((getattr(self, n), getattr(other, n)) for n in self.__slots__)
        return _Rows(*(np.concatenate(both, axis=-1) for both in pairs))


def _count(prepared: PreparedGroups, holdings: Holdings, topic_members: TopicMembers) -> _Counts:
    moved, voluntary, held, kept = np.zeros((4, len(prepared.grid.active)), np.int64)
    per_topic_member, kept_per_seat = np.zeros((2, len(topic_members.entry)), np.int32)
    counts = _Counts(moved, voluntary, held, kept, per_topic_member, kept_per_seat)
    owned, keeping = ManyHolders(prepared), ManyHolders(prepared)
    clients = SharedClients(prepared) if prepared.shared.any() else None
    for piece, changes in holdings.changed_pieces():
        moves = _Moves.from_changes(changes)
        if isinstance(piece, Broadcast):
            owned.add_broadcast(holdings.queues, piece)
            stays = held_before(piece) > np.bincount(
                changes.cell[~changes.is_add], minlength=len(piece.cells)
            )
            _add_moves(piece, moves, stays, counts)
        elif isinstance(piece, Shared):
            assert clients is not None
            by_client = held_by(piece.tenures)
            clients.add_owned(holdings.queues, piece, by_client, owned)
            clients.add_kept(holdings.queues, piece, by_client, keeping)
            _add_moves(piece, moves, continued(by_client, len(piece.cells)) > 0, counts)
        else:
            add_block(prepared, topic_members, piece, counts.per_topic_member)
            _add_block(prepared, topic_members, piece, moves, counts)
    owned.put(topic_members, counts.per_topic_member)
    keeping.put(topic_members, counts.kept_per_seat)
    return counts


@dataclass(frozen=True, slots=True)
class _Moves:
    """The cells of a piece in which a queue gets an owner, each one once."""

    cell: Ints
    voluntary: Ints

    @classmethod
    def from_changes(cls, changes: OwnerChanges) -> _Moves:
        cell, kind = changes.cell[changes.is_add], changes.kind[changes.is_add]
        return cls(cell, cell[kind == VOLUNTARY])


def _add_block(
    prepared: PreparedGroups,
    topic_members: TopicMembers,
    block: Block,
    moves: _Moves,
    counts: _Counts,
) -> None:
    of, roster = block.cells.topic_cell, prepared.roster
    count_into(counts.moved, of[moves.cell])
    count_into(counts.voluntary, of[moves.voluntary])
    before = preceding(block.cells, block.entry, NO_MEMBER)
    held = np.flatnonzero(before >= 0)
    before, of_held = before.take(held), of.take(held)
    count_into(counts.held, of_held)
    same = roster.client(before) == roster.client(block.entry.take(held))
    count_into(counts.kept, of_held[same])
    still = roster.following(before)
    could = block.cells.readable.take(held) & (still >= 0)
    could &= prepared.grid.active.take(of_held)
    count_into(
        counts.kept_per_seat,
        held_topic_members(prepared, topic_members, of_held[could], still[could]),
    )


def _add_moves(piece: Broadcast | Shared, moves: _Moves, stays: Bools, counts: _Counts) -> None:
    """Add the moves of a piece; a queue counts once per epoch, however many clients hold it.

    Args:
        piece: the cells.
        moves: the piece's moves.
        stays: for each cell, whether a client that held the queue before still holds it.
        counts: changed in place.
    """
    of, held = piece.cells.topic_cell, held_before(piece)
    count_into(counts.moved, of[segments.distinct(moves.cell)])
    count_into(counts.voluntary, of[segments.distinct(moves.voluntary)])
    count_into(counts.held, of[held > 0])
    count_into(counts.kept, of[stays])


def _minimum_moves(
    prepared: PreparedGroups, topic_members: TopicMembers, kept: Counts
) -> tuple[Ints, Bools]:
    """Return `protocol.minimum_moves.minimum_moves` by topic cell, and which groups aim for
    balance.

    Members that held the most queues may keep the larger shares, so sorting is unnecessary: every
    member keeps up to the smaller share, and as many members as there are larger shares keep one
    more queue if they have it.
    """
    grid, epoch = prepared.grid, epochs_of_cells(prepared)
    members = prepared.roster.distinct[epoch]
    smaller, larger = np.divmod(grid.queues, np.maximum(members, 1))
    share = smaller.astype(np.int32)[topic_members.topic_cell]
    keeps = segments.sums(np.minimum(kept, share), topic_members.first)
    keeps += np.minimum(larger, segments.sums(kept > share, topic_members.first))
    has_minimum = (members > 0) & ~grid.frozen & prepared.roster.uniform[epoch]
    has_minimum &= ~_has_broadcasting(prepared)[epoch]
    # no new client can own a queue whose lock no process grants
    has_minimum[grid.topic_cell[prepared.lockless & (grid.readable > 0)]] = False
    return np.maximum(0, grid.queues - keeps), has_minimum


def _has_broadcasting(prepared: PreparedGroups) -> Bools:
    """Return, for each epoch, whether any member reads every queue."""
    runs = prepared.roster.runs
    mine = ~clustering(prepared.encoded, prepared.membership)[runs.state]
    return segments.covered(runs.from_epoch[mine], runs.to_epoch[mine], len(prepared.epochs)) > 0


def balance(counted: Bools, queues: Counts | Ints, first: Ints) -> Ints:
    """Return (4, segments): the number of members, the maximum and minimum number of queues, and
    the number of members without a queue.
    """
    mine = np.flatnonzero(counted)
    bounds = segments.pointers(counted)[first]
    queues = queues[mine]
    return np.stack(
        [
            np.diff(bounds),
            segments.extreme(np.maximum, queues, bounds, 0),
            segments.extreme(np.minimum, queues, bounds, 0),
            segments.sums(queues == 0, bounds),
        ]
    )


def _whole(
    prepared: PreparedGroups,
    topic_members: TopicMembers,
    topics: _Rows,
    per_topic_member: Counts,
    shares: Bools,
) -> _Rows:
    """Return each epoch's row over all its topics; ``shares`` marks entries with shared queues."""
    count, entries = len(prepared.epochs), len(prepared.roster)

    def total(values: Ints) -> Ints:
        return np.bincount(topics.epoch, values, minlength=count).astype(np.int64)

    countable = topic_members.countable
    queues = np.bincount(
        topic_members.entry[countable], per_topic_member[countable], minlength=entries
    ).astype(np.int64)
    read = topic_members.entry[countable & topic_members.subscribed]
    reading = np.bincount(read, minlength=entries) > 0
    of_members = balance(reading, queues, prepared.roster.first)
    of_members[-1] = segments.sums(reading & (queues == 0) & ~shares, prepared.roster.first)
    shown = total(np.ones(len(topics.epoch), np.int64))
    return _Rows(
        epoch=np.arange(count),
        topic=np.full(count, -1),
        queues=total(topics.queues),
        moved=total(topics.moved),
        voluntary=total(topics.voluntary),
        minimum=total(topics.minimum),
        has_minimum=(shown > 0) & (total(topics.has_minimum.astype(np.int64)) == shown),
        held=total(topics.held),
        kept=total(topics.kept),
        balance=of_members,
    )


def _shares(prepared: PreparedGroups, sharing: SharedLoads | None) -> Bools:
    """Mark entries whose process may take from a shared queue, and the first of the same client."""
    roster = prepared.roster
    if sharing is None:
        return np.zeros(len(roster), np.bool_)
    shares = sharing.queues > 0
    if len(roster.twice):
        copy = roster.copy
        again = np.flatnonzero(shares & (copy > 0))
        shares[again - copy[again]] = True
    return shares


def _rows(prepared: PreparedGroups, rows: _Rows) -> pa.RecordBatch:
    epochs = prepared.epochs
    members, most, fewest, idle = rows.balance

    def ratio(above: Ints, below: Ints) -> pa.Array:
        return nullable(above / np.maximum(below, 1), below > 0)

    return table_rows(
        "group_metrics",
        group_columns(prepared, epochs.group[rows.epoch])
        | {
            "epoch": epochs.number[rows.epoch],
            "topic": encoded(prepared.encoded.names.topics, rows.topic),
            "queues": rows.queues,
            "members": members,
            "moved": rows.moved,
            "voluntary_moves": rows.voluntary,
            "minimum_moves": nullable(rows.minimum, rows.has_minimum),
            "stickiness": ratio(rows.kept, rows.held),
            "max_queues": most,
            "min_queues": fewest,
            "peak_ratio": ratio(most * members, np.where(members > 0, rows.queues, 0)),
            "idle_members": idle,
        },
    )
