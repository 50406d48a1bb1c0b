"""How many queues of each topic each member has, in every epoch.

A *seat* is one member in one topic cell. Seats of a topic cell stand together, in cidAll's order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.cells import Block
from rebalance_core.kernels.holdings import Holdings
from rebalance_core.kernels.roster import subscribes, topic_slots
from rebalance_core.kernels.segments import Bools, Ints, pair, pointers, ranges
from rebalance_core.kernels.world import World


@dataclass(frozen=True, slots=True)
class Seats:
    """The seats of a world; one value a seat but for the last."""

    topic_cell: Ints
    entry: Ints
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
    topic_cell = np.repeat(np.arange(len(counts)), counts)
    entry = ranges(roster.first[epoch], counts)
    group_topic = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))[
        topic_cell
    ]
    retry = world.fleet.topic_is_retry[grid.topics.topic[group_topic]]
    subscribed = subscribes(roster, entry, topic_slots(grid.topics)[group_topic])
    return Seats(topic_cell, entry, subscribed, ~retry, pointers(counts))


def epochs_of_cells(world: World) -> Ints:
    """The epoch of each topic cell."""
    topics, of_group = world.grid.topics, world.epochs.of_group
    return ranges(of_group[topics.group], np.diff(world.grid.topic_first))


def topic_cells(world: World, holdings: Holdings, block: Block) -> Ints:
    """The topic cell of each cell of a block."""
    group_topic = holdings.queues.group_topic[block.queue]
    opening = world.epochs.of_group[holdings.queues.group[block.queue]]
    return (world.grid.topic_first[group_topic] - opening)[block.lane] + block.epoch


def held_seats(world: World, seats: Seats, topic_cell: Ints, entry: Ints) -> Ints:
    """The seat of each entry in a topic cell of its epoch."""
    return seats.first[topic_cell] + entry - world.roster.first[world.roster.epoch[entry]]


def count_into(total: Ints, index: Ints) -> None:
    """Add 1 at every index; cheap where they lie close together."""
    if len(index):
        low = int(index.min())
        found = np.bincount(index - low)
        total[low : low + len(found)] += found


def count_queues(world: World, holdings: Holdings, seats: Seats) -> Ints:
    """Queues on each seat. Cost: all cells."""
    total = np.zeros(len(seats.entry), np.int64)
    for block in holdings.blocks():
        held = np.flatnonzero(block.entry >= 0)
        cells = topic_cells(world, holdings, block)[held]
        count_into(total, held_seats(world, seats, cells, block.entry[held]))
    return total


def once_a_queue(block: Block, cells: Ints) -> Ints:
    """Of cells of one queue in one epoch the first; only BROADCASTING has several."""
    if not block.broadcasting:
        return cells
    keys = pair(block.queue[block.lane[cells]], block.epoch[cells])
    return cells[np.unique(keys, return_index=True)[1]]
