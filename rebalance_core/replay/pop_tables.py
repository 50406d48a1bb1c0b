"""How clients and queues of a shared topic meet, and which queues a client may take messages
from.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Any

from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_state import ProcessKey, SharedTopic
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.settle import Taken
from rebalance_core.strategies.pop import WHOLE_BROKER

# Which queues of shared topics a client may take messages from.


@dataclass(frozen=True, slots=True)
class PopReach:
    """The queues that one process, or all with one client id, may take from.

    Attributes:
        entries: Queues as answers name them, `WHOLE_BROKER` for all of a broker; never that and
            single queues of the broker, too.
        queues: The readable queues among them.
    """

    entries: frozenset[MessageQueue]
    queues: frozenset[MessageQueue]


def process_reach(epoch: Epoch, process: ProcessKey) -> PopReach:
    """Return what one live process may take messages from; empty where no topic is shared."""
    return _reach(epoch.shared, [epoch.taken.get(process, Taken())])


def client_reaches(epoch: Epoch) -> dict[str, PopReach]:
    """Return what each client id may take messages from, all its processes together."""
    if not epoch.shared:
        return {}
    taken: dict[str, list[Taken]] = {}
    for process in epoch.members:
        taken.setdefault(process[0], []).append(epoch.taken.get(process, Taken()))
    return {client_id: _reach(epoch.shared, of_client) for client_id, of_client in taken.items()}


def _reach(shared: Mapping[str, SharedTopic], taken: Iterable[Taken]) -> PopReach:
    named = {
        queue
        for of_process in taken
        for queue in of_process.pulled | of_process.popped
        if queue.topic in shared
    }
    entries = frozenset(queue for queue in named if _whole(queue) not in named - {queue})
    readable = chain.from_iterable(topic.queues for topic in shared.values())
    queues = (queue for queue in readable if queue in entries or _whole(queue) in entries)
    return PopReach(entries, frozenset(queues))


def _whole(queue: MessageQueue) -> MessageQueue:
    return queue._replace(queue_id=WHOLE_BROKER)


# How clients and queues of a shared topic meet, per epoch.

Row = dict[str, Any]


def pop_metric_rows(epoch: Epoch) -> list[Row]:
    """One row per shared topic; an entry for a whole broker counts as its readable queues."""
    reaches = client_reaches(epoch)
    clients = Counter(queue for reach in reaches.values() for queue in reach.queues)
    rows = []
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
                # who may reach them, a member does not say whose subscriptions are not known
                "unreached": counts.count(0) if epoch.all_known else 0,
                "share_queue_num": shared.share_queue_num,
                "ordered": epoch.view.settings.ordered,
            }
        )
    return rows
