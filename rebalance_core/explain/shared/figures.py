"""Whether the rows of reach give the figures of pop_metrics, if brokers had so many queues."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from rebalance_core.explain.view import View
from rebalance_core.strategies.pop import WHOLE_BROKER


class Figures:
    """The row of pop_metrics of a shared topic, and what its figures are counted from."""

    def __init__(self, view: View, topic: str) -> None:
        reach = view.reach.get(topic, {})
        self._row = view.shared[topic]
        self._whole = Counter[str]()
        self._single: dict[str, Counter[int]] = {}
        for entries in reach.values():
            for queue in entries:
                if queue.queue_id == WHOLE_BROKER:
                    self._whole[queue.broker_name] += 1
                else:
                    of_broker = self._single.setdefault(queue.broker_name, Counter())
                    of_broker[queue.queue_id] += 1
        subscribers = {m["client_id"] for m in view.members if topic in (m["subscriptions"] or ())}
        self._distinct = {reach.get(client_id, frozenset()) for client_id in subscribers}

    def fit(self, counts: Mapping[str, int]) -> bool:
        """True if these numbers of readable queues by broker give the figures."""
        clients = [number for broker in counts for number in self._clients(broker, counts[broker])]
        queues = [
            sum(
                counts.get(queue.broker_name, 0)
                if queue.queue_id == WHOLE_BROKER
                else queue.queue_id < counts.get(queue.broker_name, 0)
                for queue in entries
            )
            for entries in self._distinct
        ]
        figures = {
            "queues": sum(counts.values()),
            "min_clients_per_queue": min(clients, default=0),
            "max_clients_per_queue": max(clients, default=0),
            "min_queues_per_client": min(queues, default=0),
            "max_queues_per_client": max(queues, default=0),
            "unreached": clients.count(0),
        }
        return all(self._row[name] == number for name, number in figures.items())

    def _clients(self, broker: str, count: int) -> list[int]:
        """How many clients reach each queue of a broker."""
        single = self._single.get(broker, Counter())
        return [self._whole[broker] + single[number] for number in range(count)]
