"""The assignment of clients to the queues of a shared topic, per epoch."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

from rebalance_core.replay.history import Epoch
from rebalance_core.replay.pop_reach import client_reaches

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PopMetricsBegun


def pop_metric_rows(epoch: Epoch) -> list[PopMetricsBegun]:
    """Return one row per shared topic; an entry for a whole broker counts as its readable
    queues.
    """
    reaches = client_reaches(epoch)
    clients = Counter(queue for reach in reaches.values() for queue in reach.queues)
    rows: list[PopMetricsBegun] = []
    for topic, shared in epoch.shared.items():
        subscribers = {m.client_id for m in epoch.members.values() if m.subscribes(topic)}
        queues = [
            sum(queue.topic == topic for queue in reaches[client_id].queues)
            for client_id in subscribers
        ]
        counts = [clients[queue] for queue in shared.queues]
        rows.append(
            {
                "epoch": epoch.number,
                "topic": topic,
                "clients": len(subscribers),
                "queues": len(shared.queues),
                "min_clients_per_queue": min(counts, default=0),
                "max_clients_per_queue": max(counts, default=0),
                "min_queues_per_client": min(queues, default=0),
                "max_queues_per_client": max(queues, default=0),
                # clients that may reach them, except members with unknown subscriptions
                "unreached": counts.count(0) if epoch.all_known else 0,
                "share_queue_num": shared.share_queue_num,
                "ordered": epoch.view.settings.ordered,
            }
        )
    return rows
