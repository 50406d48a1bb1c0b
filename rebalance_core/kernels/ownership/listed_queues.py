"""The queues that CONFIG strategies list for members."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.routes import index_of
from rebalance_core.kernels.segments import Ints


@dataclass(frozen=True, slots=True)
class ListedQueues:
    """Listed queues, with one value per queue and CONFIG list, in groups that have the queue."""

    key: Ints
    """(topic broker, queue id) as a pair."""
    allocation: Ints
    """The list, as an index into `encoded_groups.EncodedGroups.strategies`."""

    def sorted_among(self, queues: Queues) -> ListedQueues:
        """Return the lists for some queues, sorted by queue index, which becomes the key."""
        queue = segments.find(segments.pair(queues.topic_broker, queues.queue_id), self.key)
        existing = np.flatnonzero(queue >= 0)
        existing = existing[np.argsort(queue[existing], kind="stable")]
        return ListedQueues(queue[existing], self.allocation[existing])


def listed_queues(prepared: PreparedGroups) -> ListedQueues:
    """Return the queues in members' CONFIG lists whose topics their groups read."""
    lists, member_strategies = prepared.encoded.lists, prepared.encoded.member_strategies
    if not len(member_strategies.listed):
        return ListedQueues(member_strategies.listed, member_strategies.listed)
    of, row = segments.matching(lists.allocation, member_strategies.listed)
    group = member_strategies.listing[of]
    topic_broker = index_of(prepared.grid.brokers, group, lists.topic[row], lists.broker[row])
    epochs = np.diff(prepared.epochs.of_group)[group]
    read = (topic_broker >= 0) & (epochs > 0)
    row = row[read]
    return ListedQueues(
        segments.pair(topic_broker[read], lists.queue_id[row]), lists.allocation[row]
    )
