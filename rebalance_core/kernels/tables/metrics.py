"""The rows of ``group_metrics``: movement beside balance, per topic and for the whole group."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from rebalance_core.kernels.codes.codes import names_of
from rebalance_core.kernels.codes.shapes import EVERYONE
from rebalance_core.kernels.ownership.changes import VOLUNTARY, Before, Changes, Differ, held_before
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.world import World
from rebalance_core.kernels.segments import Bools, Counts, Ints, extreme, pointers, sums
from rebalance_core.kernels.state.cells import Block, Broadcast
from rebalance_core.kernels.tables.output import group_columns, nullable, table_rows
from rebalance_core.kernels.tables.seats import (
    EveryonesSeats,
    Seats,
    add_block,
    count_into,
    epochs_of_cells,
    held_seats,
    seats_of,
)


@dataclass(frozen=True, slots=True)
class _Counts:
    """What the cells say; by topic cell, then by seat."""

    moved: Ints
    voluntary: Ints
    held: Ints
    """Queues that somebody held in the epoch before."""
    kept: Ints
    """Of these, queues that keep a holder."""
    per_seat: Counts
    kept_per_seat: Counts
    """Queues that can be read and that the member held before."""


def metric_rows(world: World, holdings: Holdings) -> pa.RecordBatch:
    """Rows of the topics, then rows of the groups."""
    seats = seats_of(world)
    counts = _count(world, holdings, seats)
    grid = world.grid
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    topic = grid.topics.topic[of]
    shown = np.flatnonzero(grid.active & ~world.fleet.topic_is_retry[topic])
    epoch = epochs_of_cells(world)[shown]
    minimum, known = _minimum_moves(world, seats, counts.kept_per_seat)
    balance = _balance(seats.subscribed, counts.per_seat, seats.first)
    by_topic = _Rows(
        epoch, topic[shown], grid.queues[shown], counts.moved[shown], counts.voluntary[shown],
        minimum[shown], known[shown], counts.held[shown], counts.kept[shown],
        balance[:, shown],
    )  # fmt: skip
    whole = _whole(world, seats, by_topic, counts.per_seat)
    return _rows(world, by_topic.and_then(whole))


@dataclass(frozen=True, slots=True)
class _Rows:
    """Rows to be; ``balance`` has members, most, least and idle."""

    epoch: Ints
    topic: Ints
    queues: Ints
    moved: Ints
    voluntary: Ints
    minimum: Ints
    known: Bools
    held: Ints
    kept: Ints
    balance: Ints

    def and_then(self, other: _Rows) -> _Rows:
        """These rows and the others."""
        pairs = ((getattr(self, n), getattr(other, n)) for n in self.__slots__)
        return _Rows(*(np.concatenate(both, axis=-1) for both in pairs))


def _count(world: World, holdings: Holdings, seats: Seats) -> _Counts:
    moved, voluntary, held, kept = np.zeros((4, len(world.grid.active)), np.int64)
    per_seat, kept_per_seat = np.zeros((2, len(seats.entry)), np.int32)
    counts = _Counts(moved, voluntary, held, kept, per_seat, kept_per_seat)
    differ, everyone = Differ(world, holdings.queues), EveryonesSeats(world)
    for piece in holdings.pieces():
        changes = differ.changes(piece)
        adds = changes.where(changes.is_add)
        if isinstance(piece, Broadcast):
            everyone.add(holdings.queues, piece)
            _add_broadcast(piece, adds, changes.cell[~changes.is_add], counts)
        else:
            add_block(world, seats, piece, counts.per_seat)
            _add_block(world, seats, piece, adds, differ.before(piece), counts)
    everyone.put(seats, counts.per_seat)
    return counts


def _add_block(
    world: World, seats: Seats, block: Block, adds: Changes, before: Before, counts: _Counts
) -> None:
    of, roster = block.cells.topic_cell, world.roster
    count_into(counts.moved, of[adds.cell])
    count_into(counts.voluntary, of[adds.cell[adds.kind == VOLUNTARY]])
    held = np.flatnonzero(before.entry >= 0)
    count_into(counts.held, of[held])
    same = roster.client(before.entry[held]) == roster.client(block.entry[held])
    count_into(counts.kept, of[held[same]])
    still = roster.following(before.entry)
    could = np.flatnonzero(block.cells.readable & (still >= 0) & world.grid.active[of])
    count_into(counts.kept_per_seat, held_seats(world, seats, of[could], still[could]))


def _add_broadcast(piece: Broadcast, adds: Changes, dropping: Ints, counts: _Counts) -> None:
    """A queue counts once an epoch, however many hold it; there is no minimum to compare with."""
    of, held = piece.cells.topic_cell, held_before(piece)
    count_into(counts.moved, of[np.unique(adds.cell)])
    count_into(counts.voluntary, of[np.unique(adds.cell[adds.kind == VOLUNTARY])])
    count_into(counts.held, of[held > 0])
    stays = held > np.bincount(dropping, minlength=len(held))
    count_into(counts.kept, of[stays])


def _minimum_moves(world: World, seats: Seats, kept: Counts) -> tuple[Ints, Bools]:
    """`rules.minimum_moves` by topic cell, and where a balanced result is what the group is after.

    Members that held most may keep the larger shares, so no sorting is needed: every member keeps
    up to the smaller share, and as many keep one more as there are larger shares, if they have it.
    """
    grid, epoch = world.grid, epochs_of_cells(world)
    members = np.diff(world.roster.first)[epoch]
    smaller, larger = np.divmod(grid.queues, np.maximum(members, 1))
    share = smaller.astype(np.int32)[seats.topic_cell]
    keeps = sums(np.minimum(kept, share), seats.first)
    keeps += np.minimum(larger, sums(kept > share, seats.first))
    kind = world.fleet.groups.kind[world.epochs.group[epoch]]
    known = (members > 0) & ~grid.frozen & world.roster.uniform[epoch] & (kind != EVERYONE)
    return np.maximum(0, grid.queues - keeps), known


def _balance(counted: Bools, queues: Counts | Ints, first: Ints) -> Ints:
    """Members, most queues, fewest queues and members without one, of each segment."""
    mine = np.flatnonzero(counted)
    bounds = pointers(counted)[first]
    queues = queues[mine]
    return np.stack(
        [
            np.diff(bounds),
            extreme(np.maximum, queues, bounds, 0),
            extreme(np.minimum, queues, bounds, 0),
            sums(queues == 0, bounds),
        ]
    )


def _whole(world: World, seats: Seats, topics: _Rows, per_seat: Counts) -> _Rows:
    """The row of each epoch over all its topics."""
    count, entries = len(world.epochs), len(world.roster)

    def total(values: Ints) -> Ints:
        return np.bincount(topics.epoch, values, minlength=count).astype(np.int64)

    own = seats.countable
    queues = np.bincount(seats.entry[own], per_seat[own], minlength=entries).astype(np.int64)
    reading = np.bincount(seats.entry[own & seats.subscribed], minlength=entries) > 0
    shown = total(np.ones(len(topics.epoch), np.int64))
    return _Rows(
        np.arange(count), np.full(count, -1), total(topics.queues), total(topics.moved),
        total(topics.voluntary), total(topics.minimum),
        (shown > 0) & (total(topics.known.astype(np.int64)) == shown),
        total(topics.held), total(topics.kept),
        _balance(reading, queues, world.roster.first),
    )  # fmt: skip


def _rows(world: World, rows: _Rows) -> pa.RecordBatch:
    epochs = world.epochs
    members, most, fewest, idle = rows.balance

    def ratio(above: Ints, below: Ints, known: Bools) -> pa.Array:
        return nullable(above / np.maximum(below, 1), known & (below > 0))

    always = np.ones(len(rows.epoch), np.bool_)
    return table_rows(
        "group_metrics",
        group_columns(world, epochs.group[rows.epoch])
        | {
            "epoch": epochs.number[rows.epoch],
            "topic": names_of(world.fleet.names.topics, rows.topic),
            "queues": rows.queues,
            "members": members,
            "moved": rows.moved,
            "voluntary_moves": rows.voluntary,
            "minimum_moves": nullable(rows.minimum, rows.known),
            "amplification": ratio(rows.moved, rows.minimum, rows.known),
            "stickiness": ratio(rows.kept, rows.held, always),
            "max_queues": most,
            "min_queues": fewest,
            "peak_ratio": ratio(most * members, rows.queues, members > 0),
            "idle_members": idle,
        },
    )
