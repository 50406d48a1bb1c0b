"""The rows of ``pop_metrics``: how clients are matched with the queues of a shared topic."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa

from rebalance_core.kernels import segments, topic_members
from rebalance_core.kernels.codes import encoded
from rebalance_core.kernels.encoded_events import NO_SHARE
from rebalance_core.kernels.metrics import balance
from rebalance_core.kernels.ownership.client_reach import ClientReach, TakerSpans
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.ownership.shared_topics import SharedTopics, sharing_groups
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.shared_clients import SharedClients
from rebalance_core.kernels.table_rows import group_columns, nullable, table_rows
from rebalance_core.kernels.topic_members import ManyHolders


def pop_metric_rows(reach: ClientReach, shared: SharedTopics) -> pa.RecordBatch:
    """Return one row per epoch and shared topic."""
    prepared = reach.answers.prepared
    grid, epochs = prepared.grid, prepared.epochs
    sharing = np.isin(np.arange(len(prepared.encoded.groups)), sharing_groups(shared))
    counted = _Meetings(reach, replace(prepared, shared=sharing))
    fewest, most, unreached, per_member = counted.over_all_queues()
    members = topic_members.topic_members_of(counted.prepared)
    queues = np.zeros(len(members.entry), np.int32)
    per_member.put(members, queues)
    clients, most_queues, fewest_queues, _ = balance(members.subscribed, queues, members.first)
    shown = np.flatnonzero(shared.cells)
    of = np.repeat(np.arange(len(grid.topics.group)), np.diff(grid.topic_first))
    epoch = topic_members.epochs_of_cells(prepared)[shown]
    share = shared.share[shown]
    return table_rows(
        "pop_metrics",
        group_columns(prepared, epochs.group[epoch])
        | {
            "epoch": epochs.number[epoch],
            "topic": encoded(prepared.encoded.names.topics, grid.topics.topic[of[shown]]),
            "clients": clients[shown],
            "queues": grid.queues[shown],
            "min_clients_per_queue": np.where(most < 0, 0, fewest)[shown],
            "max_clients_per_queue": np.maximum(most, 0)[shown],
            "min_queues_per_client": fewest_queues[shown],
            "max_queues_per_client": most_queues[shown],
            "unreached": unreached[shown],
            "share_queue_num": nullable(share, share != NO_SHARE),
            "ordered": prepared.encoded.groups.ordered[epochs.group[epoch]],
        },
    )


class _Meetings:
    """The counts of clients per queue and of queues per client."""

    def __init__(self, reach: ClientReach, prepared: PreparedGroups) -> None:
        self._reach, self.prepared = reach, prepared
        self._clients, self._per_member = SharedClients(prepared), ManyHolders(prepared)

    def over_all_queues(self) -> tuple[Ints, Ints, Ints, ManyHolders]:
        """Return counts over all queues, by topic cell and by member.

        Returns:
            The fewest and the most clients of a queue (-1: no queue) and the queues without clients
                for
            each topic cell, and the queues by member.
        """
        reach, count = self._reach, len(self.prepared.grid.active)
        fewest = np.full(count, np.iinfo(np.int64).max)
        most, unreached = np.full(count, -1, np.int64), np.zeros(count, np.int64)
        of_brokers = self._of_brokers()
        self._add(reach.readable_brokers(reach.whole))
        for cells, single in reach.blocks():
            offset = (cells.first[:-1] - cells.epoch[cells.first[:-1]])[single.major]
            clients = segments.covered(single.begin + offset, single.end + offset, len(cells))
            clients += of_brokers[cells.broker_cell]
            cell = np.flatnonzero(cells.readable)
            topic_cell, clients = cells.topic_cell[cell], clients[cell]
            np.minimum.at(fewest, topic_cell, clients)
            np.maximum.at(most, topic_cell, clients)
            np.add.at(unreached, topic_cell, clients == 0)
            self._add(reach.readable_queues(cells, single))
        return fewest, most, unreached, self._per_member

    def _of_brokers(self) -> Ints:
        """Return, for each broker cell, the number of clients that may take from every queue."""
        whole, grid, epochs = self._reach.whole, self.prepared.grid, self.prepared.epochs
        first = grid.broker_first[whole.major] - epochs.of_group[grid.brokers.group[whole.major]]
        return segments.covered(first + whole.begin, first + whole.end, len(grid.readable))

    def _add(self, taken: TakerSpans) -> None:
        group = self.prepared.grid.topics.group[taken.group_topic]
        node = self._clients.nodes(group, taken.taker, taken.begin)
        self._per_member.add(taken.group_topic, node, taken.end - taken.begin, taken.queues)
