"""How many queues of each topic each member has, in every epoch.

A *topic member* is one member in one topic of one epoch. Those of a topic stand together, in
cidAll's order.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.eligibility import EVERYONE
from rebalance_core.kernels.ownership.holdings import Holdings
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import AnyInts, Bools, Counts, Ints, pointers, ranges
from rebalance_core.kernels.state.cells import Block, Broadcast, Queues
from rebalance_core.kernels.state.roster import topic_slots


@dataclass(frozen=True, slots=True)
class TopicMembers:
    """The topic_members of a prepared; one value a topic_member but for the last."""

    topic_cell: AnyInts
    entry: AnyInts
    subscribed: Bools
    """The member subscribes the topic."""
    countable: Bools
    """The topic is not a retry topic."""
    first: Ints
    """The first topic_member of each topic cell, and the end."""


def topic_members_of(prepared: PreparedGroups) -> TopicMembers:
    """The topic_members of every member in every active topic."""
    grid, roster = prepared.grid, prepared.roster
    epoch = epochs_of_cells(prepared)
    counts = np.diff(roster.first)[epoch] * grid.active
    topic_cell = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    entry = ranges(roster.first[epoch], counts).astype(roster.run.dtype)
    group_topic = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    retry = prepared.coded.topic_is_retry[grid.topics.topic[group_topic]][topic_cell]
    subscribed = roster.subscribes(entry, topic_slots(grid.topics)[group_topic][topic_cell])
    return TopicMembers(topic_cell, entry, subscribed, ~retry, pointers(counts))


def epochs_of_cells(prepared: PreparedGroups) -> Ints:
    """The epoch of each topic cell."""
    topics, of_group = prepared.grid.topics, prepared.epochs.of_group
    return ranges(of_group[topics.group], np.diff(prepared.grid.topic_first))


def held_topic_members(
    prepared: PreparedGroups, topic_members: TopicMembers, topic_cell: AnyInts, entry: Ints
) -> Ints:
    """The topic_member of each entry in a topic cell of its epoch."""
    return (
        topic_members.first[topic_cell]
        + entry
        - prepared.roster.first[prepared.roster.epoch[entry]]
    )


def count_into(total: Counts | Ints, index: Ints) -> None:
    """Add 1 at every index; cheap where they lie close together."""
    if len(index):
        low = int(index.min())
        found = np.bincount(index - low)
        total[low : low + len(found)] += found


def count_queues(
    prepared: PreparedGroups, holdings: Holdings, topic_members: TopicMembers
) -> Counts:
    """Queues on each topic_member. Cost: all cells."""
    total = np.zeros(len(topic_members.entry), np.int32)
    everyone = EveryonesTopics(prepared)
    for piece in holdings.pieces():
        if isinstance(piece, Broadcast):
            everyone.add(holdings.queues, piece)
        else:
            add_block(prepared, topic_members, piece, total)
    everyone.put(topic_members, total)
    return total


def add_block(
    prepared: PreparedGroups, topic_members: TopicMembers, block: Block, total: Counts
) -> None:
    """Add the queues of a block to those on each topic_member."""
    held = np.flatnonzero(block.entry >= 0)
    count_into(
        total,
        held_topic_members(
            prepared, topic_members, block.cells.topic_cell[held], block.entry[held]
        ),
    )


class EveryonesTopics:
    """Queues on the topic_members of BROADCASTING groups, from where their spans begin and end."""

    def __init__(self, prepared: PreparedGroups) -> None:
        self._prepared = prepared
        topics, of_group = prepared.grid.topics, prepared.epochs.of_group
        self._is_everyones = prepared.coded.groups.kind[topics.group] == EVERYONE
        first = prepared.roster.first[of_group[topics.group]]
        sizes = prepared.roster.first[of_group[topics.group + 1]] - first
        nodes = pointers(sizes * self._is_everyones)
        self._offset = nodes[:-1] - first
        """By group topic: where its row of `entry_at` is in the steps."""
        self._steps = np.zeros(nodes[-1] + 1, np.int32)

    def add(self, queues: Queues, piece: Broadcast) -> None:
        """Count the queues of a piece."""
        epoch, group_topic = piece.cells.epoch, queues.group_topic[piece.cells.queue[piece.segment]]
        node = self._offset[group_topic] + piece.node
        np.add.at(self._steps, node + epoch[piece.begin], 1)
        np.add.at(self._steps, node + epoch[piece.end - 1] + 1, -1)

    def put(self, topic_members: TopicMembers, total: Counts) -> None:
        """Set what was counted on the topic_members of these groups."""
        grid, entry_at = self._prepared.grid, self._prepared.roster.entry_at
        group_topic = np.repeat(np.arange(len(self._offset)), np.diff(grid.topic_first))
        first = np.flatnonzero(self._is_everyones[group_topic])
        count = np.diff(topic_members.first)[first]
        mine = ranges(topic_members.first[first], count)
        node = np.empty_like(entry_at)
        node[entry_at] = np.arange(len(entry_at), dtype=entry_at.dtype)
        at = np.repeat(self._offset[group_topic[first]], count) + node[topic_members.entry[mine]]
        total[mine] = np.cumsum(self._steps)[at]
