"""The queues of a topic, and their message counts at any instant, as arrays."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
import numpy.typing as npt

from rebalance_core.model.times import HOUR_MS
from rebalance_core.synthetic.clusters import Cluster, cluster_of
from rebalance_core.synthetic.draws import key_of, noise
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.message_counts import Longs, away_ms, messages, weighted_ms
from rebalance_core.synthetic.topics import Topic, topic_of

RETENTION_MS = 72 * HOUR_MS  # fileReservedTime
UNEVEN = 0.1  # a queue's rate is at most this share above or below its topic's


@dataclass(frozen=True, slots=True, eq=False)
class QueueTable:
    """All queues that a topic ever had, ordered by (broker, queue id).

    Arrays of equal length: ``broker`` (index in the cluster), ``queue_id``, ``born_ms``,
    ``per_kilosecond``.
    """

    cluster: Cluster
    topic: Topic
    broker: Longs
    queue_id: Longs
    born_ms: Longs
    per_kilosecond: Longs

    def written(self, at_ms: Longs) -> Longs:
        """Return the number of messages ever written to each queue, its max offset at that instant.

        Args:
            at_ms: instants, with a column per queue: shape (queues,) or (any, queues), or (any, 1)
                for the same instants in all queues.
        """
        flow = self._flow(at_ms) - self._flow(self.born_ms)
        return messages(self.per_kilosecond, flow)

    def _flow(self, at_ms: Longs) -> Longs:
        flow = weighted_ms(self.cluster, at_ms)
        for number in set(self.broker.tolist()):
            outages = self.cluster.brokers[number].outages
            if outages:
                flow = flow - (self.broker == number) * away_ms(self.cluster, outages, at_ms)
        return flow

    def shown(self, at_ms: int, *, readable: bool) -> npt.NDArray[np.bool_]:
        """Return whether each queue can be observed: the broker is up and has the queue.

        Args:
            at_ms: the instant.
            readable: True for queues that consumers read; False for those that are written or read.
        """
        configs = self.topic.configs(at_ms)
        limits = np.zeros(len(self.cluster.brokers), np.int64)
        for number, config in configs.items():
            if self.cluster.brokers[number].is_up(at_ms):
                limits[number] = config.read if readable else max(config.read, config.write)
        return np.asarray(self.queue_id < limits[self.broker])


@lru_cache(maxsize=2048)
def queue_table(plan: FleetPlan, cluster_number: int, number: int) -> QueueTable:
    """Return the queues of topic ``number`` of a cluster."""
    cluster = cluster_of(plan, cluster_number)
    topic = topic_of(plan, cluster_number, number)
    born: dict[tuple[int, int], int] = {}
    writable: set[tuple[int, int]] = set()
    for config in topic.history:
        since_ms = topic.born_ms if config.at_ms == plan.start_ms else config.at_ms
        for queue_id in range(max(config.read, config.write)):
            queue = (config.broker, queue_id)
            born.setdefault(queue, since_ms)
            if queue_id < config.write:
                writable.add(queue)
    queues = sorted(born)
    columns = np.array(queues, np.int64).reshape(-1, 2)
    broker, ids = columns[:, 0], columns[:, 1]
    key = key_of(plan.seed, "queue-rates", cluster_number, number)
    uneven = 1.0 + UNEVEN * (2.0 * noise(key, broker, ids) - 1.0)
    written = np.array([queue in writable for queue in queues], np.bool_)
    rates = np.where(written, np.floor(topic.per_kilosecond * uneven), 0.0).astype(np.int64)
    born_ms = np.array([born[queue] for queue in queues], np.int64)
    return QueueTable(cluster, topic, broker, ids, born_ms, rates)
