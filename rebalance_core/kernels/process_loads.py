"""The load of each process in a shared group in each epoch: topics, queues and retry queues."""

import numpy as np

from rebalance_core.kernels.cell_holders import Shared
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.segments import Ints


class ProcessLoads:
    """Counts derived from the starts and ends of holdings, in the order of
    `roster.Roster.entry_at`.

    Args:
        prepared: the groups.
    """

    def __init__(self, prepared: PreparedGroups) -> None:
        self._prepared = prepared
        self._retry = prepared.encoded.topic_is_retry[prepared.grid.topics.topic]
        self._queues, self._retry_queues = np.zeros((2, len(prepared.roster) + 1), np.int64)
        self._held: list[tuple[Ints, Ints, Ints, Ints]] = []

    def add(self, queues: Queues, piece: Shared) -> None:
        """Count the holdings in a piece."""
        cells, spans = piece.cells, piece.spans
        epoch = cells.epoch[spans.begin]
        node, count = spans.node + epoch, spans.end - spans.begin
        group_topic = queues.group_topic[cells.queue[spans.segment]]
        retry = self._retry[group_topic]
        for total, mine in ((self._queues, ~retry), (self._retry_queues, retry)):
            np.add.at(total, node[mine], 1)
            np.add.at(total, (node + count)[mine], -1)
        plain = ~retry
        held = Periods.union(
            group_topic[plain], spans.process[plain], node[plain], (node + count)[plain]
        )
        self._held.append((held.major, held.minor, held.begin, held.end))

    def counts(self) -> tuple[Ints, Ints, Ints]:
        """Return each entry's numbers of topics with a queue, queues and retry queues; 0 in other
        groups.
        """
        topics = np.zeros_like(self._queues)
        if self._held:
            held = Periods.union(*(np.concatenate(c) for c in zip(*self._held, strict=True)))
            np.add.at(topics, held.begin, 1)
            np.add.at(topics, held.end, -1)
        entry = self._prepared.roster.entry_at
        counts = []
        for steps in (topics, self._queues, self._retry_queues):
            of_entry = np.zeros(len(entry), np.int64)
            of_entry[entry] = np.cumsum(steps)[:-1]
            counts.append(of_entry)
        return counts[0], counts[1], counts[2]
