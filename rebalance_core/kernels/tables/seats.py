"""How many queues of each topic each member has, in every epoch.

A *seat* is one member in one topic cell. Seats of a topic cell stand together, in cidAll's order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.shapes import EVERYONE
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.world import World
from rebalance_core.kernels.segments import AnyInts, Bools, Counts, Ints, pointers, ranges
from rebalance_core.kernels.state.cells import Block, Broadcast, Queues
from rebalance_core.kernels.state.roster import topic_slots


@dataclass(frozen=True, slots=True)
class Seats:
    """The seats of a world; one value a seat but for the last."""

    topic_cell: AnyInts
    entry: AnyInts
    subscribed: Bools
    """The member subscribes the topic."""
    countable: Bools
    """The topic is not a retry topic."""
    first: Ints
    """The first seat of each topic cell, and the end."""


def seats_of(world: World) -> Seats:
    """The seats of every member in every active topic."""
    grid, roster = world.grid, world.roster
    epoch = epochs_of_cells(world)
    counts = np.diff(roster.first)[epoch] * grid.active
    topic_cell = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    entry = ranges(roster.first[epoch], counts).astype(roster.run.dtype)
    group_topic = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    retry = world.fleet.topic_is_retry[grid.topics.topic[group_topic]][topic_cell]
    subscribed = roster.subscribes(entry, topic_slots(grid.topics)[group_topic][topic_cell])
    return Seats(topic_cell, entry, subscribed, ~retry, pointers(counts))


def epochs_of_cells(world: World) -> Ints:
    """The epoch of each topic cell."""
    topics, of_group = world.grid.topics, world.epochs.of_group
    return ranges(of_group[topics.group], np.diff(world.grid.topic_first))


def held_seats(world: World, seats: Seats, topic_cell: AnyInts, entry: Ints) -> Ints:
    """The seat of each entry in a topic cell of its epoch."""
    return seats.first[topic_cell] + entry - world.roster.first[world.roster.epoch[entry]]


def count_into(total: Counts | Ints, index: Ints) -> None:
    """Add 1 at every index; cheap where they lie close together."""
    if len(index):
        low = int(index.min())
        found = np.bincount(index - low)
        total[low : low + len(found)] += found


def count_queues(world: World, holdings: Holdings, seats: Seats) -> Counts:
    """Queues on each seat. Cost: all cells."""
    total = np.zeros(len(seats.entry), np.int32)
    everyone = EveryonesSeats(world)
    for piece in holdings.pieces():
        if isinstance(piece, Broadcast):
            everyone.add(holdings.queues, piece)
        else:
            add_block(world, seats, piece, total)
    everyone.put(seats, total)
    return total


def add_block(world: World, seats: Seats, block: Block, total: Counts) -> None:
    """Add the queues of a block to those on each seat."""
    held = np.flatnonzero(block.entry >= 0)
    count_into(total, held_seats(world, seats, block.cells.topic_cell[held], block.entry[held]))


class EveryonesSeats:
    """Queues on the seats of BROADCASTING groups, from where their spans begin and end."""

    def __init__(self, world: World) -> None:
        self._world = world
        topics, of_group = world.grid.topics, world.epochs.of_group
        self._is_everyones = world.fleet.groups.kind[topics.group] == EVERYONE
        first = world.roster.first[of_group[topics.group]]
        sizes = world.roster.first[of_group[topics.group + 1]] - first
        nodes = pointers(sizes * self._is_everyones)
        self._offset = nodes[:-1] - first
        """By group topic: where its row of `entry_at` is in the steps."""
        self._steps = np.zeros(nodes[-1] + 1, np.int32)

    def add(self, queues: Queues, piece: Broadcast) -> None:
        """Count the queues of a piece."""
        epoch, group_topic = piece.cells.epoch, queues.group_topic[piece.cells.queue[piece.lane]]
        node = self._offset[group_topic] + piece.node
        np.add.at(self._steps, node + epoch[piece.begin], 1)
        np.add.at(self._steps, node + epoch[piece.end - 1] + 1, -1)

    def put(self, seats: Seats, total: Counts) -> None:
        """Set what was counted on the seats of these groups."""
        grid, entry_at = self._world.grid, self._world.roster.entry_at
        group_topic = np.repeat(np.arange(len(self._offset)), np.diff(grid.topic_first))
        first = np.flatnonzero(self._is_everyones[group_topic])
        count = np.diff(seats.first)[first]
        mine = ranges(seats.first[first], count)
        node = np.empty_like(entry_at)
        node[entry_at] = np.arange(len(entry_at), dtype=entry_at.dtype)
        at = np.repeat(self._offset[group_topic[first]], count) + node[seats.entry[mine]]
        total[mine] = np.cumsum(self._steps)[at]
