"""Custom strategies, called once for each distinct list of a topic's queues and members in an
epoch.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from rebalance_core.kernels import group_kinds, segments
from rebalance_core.kernels.cell_holders import NO_MEMBER
from rebalance_core.kernels.cells import Readable
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.grid import Grid, Places
from rebalance_core.kernels.roster import Roster
from rebalance_core.kernels.segments import Ints
from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies import AllocationStrategy

Answers = dict[tuple[int, int], Ints | None]
"""For each group topic and position of the epoch in its group, the index in cidAll of each queue's
owner, or `NO_MEMBER`. None: the strategy throws for a member, returns an unknown queue, or assigns
a queue twice.
"""


def _indices(
    strategy: AllocationStrategy, queues: Sequence[MessageQueue], client_ids: Sequence[str]
) -> Ints | None:
    try:
        shares = strategy.allocate_all(queues, client_ids)
    except AllocationError:
        return None
    owners: dict[MessageQueue, int] = {}
    for client_id, share in shares.items():
        index = client_ids.index(client_id)
        for queue in share:
            if owners.setdefault(queue, index) != index:
                return None
    if not owners.keys() <= set(queues):
        return None
    return np.array([owners.get(queue, NO_MEMBER) for queue in queues], np.int64)


def ask_own(encoded: EncodedGroups, epochs: Epochs, grid: Grid, roster: Roster) -> Answers:
    """Call the custom strategies of all groups for everything that they divide in any epoch."""
    names, answers = encoded.names, Answers()
    topics, brokers, clients = (n.to_pylist() for n in (names.topics, names.brokers, names.clients))
    for topic in np.flatnonzero(
        encoded.groups.kind[grid.topics.group] == group_kinds.ASKED
    ).tolist():
        group, first = int(grid.topics.group[topic]), int(grid.topic_first[topic])
        strategy = encoded.strategies[encoded.groups.allocation[group]]
        its_brokers = np.flatnonzero(grid.topic_of == topic).tolist()
        for step, epoch in enumerate(range(*epochs.of_group[group : group + 2].tolist())):
            members = roster.client(np.arange(*roster.first[epoch : epoch + 2].tolist())).tolist()
            if not (members and grid.queues[first + step]):
                continue
            queues = [
                MessageQueue(topics[grid.topics.topic[topic]], brokers[grid.brokers.broker[b]], n)
                for b in its_brokers
                for n in range(int(grid.readable[grid.broker_first[b] + step]))
            ]
            answers[topic, step] = _indices(strategy, queues, [clients[each] for each in members])
    return answers


def unsettled_groups(grid: Grid, answers: Answers) -> Ints:
    """Return the groups whose custom strategy does more than assign each queue to one member."""
    topics = [topic for (topic, _), indices in answers.items() if indices is None]
    return segments.distinct(grid.topics.group[np.array(topics, np.int64)])


class OwnStrategyOwners:
    """The results of custom strategies for many groups. Cost: O(1) per queue and epoch.

    Args:
        answers: The answers of `ask_own`, including those of other groups.
        epochs: The epochs of all groups.
        grid: The grid of all groups.
        numbered: The numbering of queues over the brokers of their topic.
        roster: The roster of all groups.
    """

    def __init__(
        self, answers: Answers, epochs: Epochs, grid: Grid, numbered: Places, roster: Roster
    ) -> None:
        epochs_of = np.diff(epochs.of_group)[grid.topics.group]
        taken = {
            key: indices
            for key, indices in answers.items()
            if indices is not None and epochs_of[key[0]]  # otherwise, the replay has the group
        }
        self._index = np.concatenate([*taken.values(), np.array([NO_MEMBER], np.int64)])
        begin = np.full(len(grid.queues), len(self._index) - 1, np.int64)
        cells = [grid.topic_first[topic] + step for topic, step in taken]
        lengths = np.array([len(owner_indices) for owner_indices in taken.values()], np.int64)
        begin[cells] = segments.pointers(lengths)[:-1]
        self._begin = begin[grid.topic_cell] + numbered[0]
        self._first = roster.first

    def entries(self, cells: Readable) -> Ints:
        """Return the entry that owns each cell; `NO_MEMBER` for cells of other strategies."""
        index = self._index.take(cells.places(self._begin), mode="clip")
        return np.where(index >= 0, self._first[cells.epoch] + index, NO_MEMBER)
