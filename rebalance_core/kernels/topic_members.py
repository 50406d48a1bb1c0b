"""The number of queues that each member has in each topic in every epoch.

A *topic member* is a member of a topic in an epoch. A topic's members are adjacent, in cidAll's
order.
"""

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.cell_holders import Block, Broadcast
from rebalance_core.kernels.group_kinds import BROADCAST
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import AnyInts, Bools, Counts, Ints


@dataclass(frozen=True, slots=True)
class TopicMembers:
    """The topic members of prepared groups, with one value per topic member except in the last
    array.
    """

    topic_cell: AnyInts
    entry: AnyInts
    subscribed: Bools
    """Whether the member subscribes to the topic; the first of several with the same client id
    represents all of them.
    """
    countable: Bools
    """Whether the topic is not a retry topic."""
    first: Ints
    """The first topic member of each topic cell, and the end."""


def topic_members_of(prepared: PreparedGroups) -> TopicMembers:
    """Return a topic member for every member and active topic."""
    grid, roster = prepared.grid, prepared.roster
    epoch = epochs_of_cells(prepared)
    counts = np.diff(roster.first)[epoch] * grid.active
    topic_cell = np.repeat(np.arange(len(counts), dtype=np.int32), counts)
    entry = segments.ranges(roster.first[epoch], counts).astype(roster.run.dtype)
    group_topic = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    retry = prepared.encoded.topic_is_retry[grid.topics.topic[group_topic]][topic_cell]
    subscribed = roster.subscribes(entry, group_topic[topic_cell])
    if len(roster.twice):
        copy = roster.copy[entry]
        again = np.flatnonzero(subscribed & (copy > 0))
        subscribed[again - copy[again]] = True
        subscribed &= copy == 0
    return TopicMembers(topic_cell, entry, subscribed, ~retry, segments.pointers(counts))


def epochs_of_cells(prepared: PreparedGroups) -> Ints:
    """Return the epoch of each topic cell."""
    topics, of_group = prepared.grid.topics, prepared.epochs.of_group
    return segments.ranges(of_group[topics.group], np.diff(prepared.grid.topic_first))


def held_topic_members(
    prepared: PreparedGroups, topic_members: TopicMembers, topic_cell: AnyInts, entry: Ints
) -> Ints:
    """Return the topic member for each entry in a topic cell of the entry's epoch."""
    return topic_members.first[topic_cell] + prepared.roster.index[entry]


def count_into(total: Counts | Ints, index: Ints) -> None:
    """Add 1 at every index; this is cheap if the indexes are close together."""
    if len(index):
        low = int(index.min())
        counts = np.bincount(index - low)
        total[low : low + len(counts)] += counts


def add_block(
    prepared: PreparedGroups, topic_members: TopicMembers, block: Block, total: Counts
) -> None:
    """Add the queues of a block to the counts of its topic members."""
    held = np.flatnonzero(block.entry >= 0)
    count_into(
        total,
        held_topic_members(
            prepared, topic_members, block.cells.topic_cell[held], block.entry[held]
        ),
    )


class ManyHolders:
    """The queues of topic members in groups whose queues have many holders.

    Counts are derived from the starts and ends of holdings, for BROADCASTING groups and shared
    groups.
    """

    def __init__(self, prepared: PreparedGroups) -> None:
        self._prepared = prepared
        topics, of_group = prepared.grid.topics, prepared.epochs.of_group
        many = (prepared.encoded.groups.kind == BROADCAST) | prepared.shared
        self._has_many = many[topics.group]
        first = prepared.roster.first[of_group[topics.group]]
        sizes = prepared.roster.first[of_group[topics.group + 1]] - first
        nodes = segments.pointers(sizes * self._has_many)
        self._offset = nodes[:-1] - first
        """For each group topic, the position of its row of `by_client` in the steps."""
        self._steps = np.zeros(nodes[-1] + 1, np.int32)

    def add(self, group_topic: Ints, node: Ints, epochs: Ints, queues: Ints | int = 1) -> None:
        """Count holdings of queues.

        Args:
            group_topic: the group topic of each queue.
            node: the position in `roster.Roster.by_client` of the client's entry in the first
                epoch.
            epochs: the number of epochs for which the holding lasts.
            queues: the number of queues that it covers.
        """
        np.add.at(self._steps, self._offset[group_topic] + node, queues)
        np.add.at(self._steps, self._offset[group_topic] + node + epochs, np.negative(queues))

    def add_broadcast(self, queues: Queues, piece: Broadcast) -> None:
        """Count the queues in a piece."""
        group_topic = queues.group_topic[piece.cells.queue[piece.segment]]
        node = piece.node + piece.cells.epoch[piece.begin]
        self.add(group_topic, node, piece.end - piece.begin)

    def put(self, topic_members: TopicMembers, total: Counts) -> None:
        """Set the counts of the topic members of these groups."""
        grid, by_client = self._prepared.grid, self._prepared.roster.by_client
        group_topic = np.repeat(np.arange(len(self._offset)), np.diff(grid.topic_first))
        first = np.flatnonzero(self._has_many[group_topic])
        count = np.diff(topic_members.first)[first]
        mine = segments.ranges(topic_members.first[first], count)
        node = np.empty_like(by_client)
        node[by_client] = np.arange(len(by_client), dtype=by_client.dtype)
        step = np.repeat(self._offset[group_topic[first]], count) + node[topic_members.entry[mine]]
        total[mine] = np.cumsum(self._steps)[step]
