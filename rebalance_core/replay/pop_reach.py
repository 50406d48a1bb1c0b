"""The queues of shared topics from which a client may take messages."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from itertools import chain

from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.member import ProcessKey
from rebalance_core.replay.settle import SharedHoldings
from rebalance_core.replay.shared_topics import SharedTopic
from rebalance_core.strategies.pop import WHOLE_BROKER


@dataclass(frozen=True, slots=True)
class PopReach:
    """The queues from which a process, or all processes of a client id, may take messages.

    Attributes:
        entries: Queues as named in answers, with `WHOLE_BROKER` for all queues of a broker; never
            both for the same broker.
        queues: The readable queues among them.
    """

    entries: frozenset[MessageQueue]
    queues: frozenset[MessageQueue]


def process_reach(epoch: Epoch, process: ProcessKey) -> PopReach:
    """Return the queues from which a live process may take messages; empty if no topic is
    shared.
    """
    return _reach(epoch.shared, [epoch.taken.get(process, SharedHoldings())])


def client_reaches(epoch: Epoch) -> dict[str, PopReach]:
    """Return the queues from which each client id may take messages, over all its processes."""
    if not epoch.shared:
        return {}
    taken: dict[str, list[SharedHoldings]] = {}
    for process in epoch.members:
        taken.setdefault(process[0], []).append(epoch.taken.get(process, SharedHoldings()))
    return {client_id: _reach(epoch.shared, of_client) for client_id, of_client in taken.items()}


def _reach(shared: Mapping[str, SharedTopic], taken: Iterable[SharedHoldings]) -> PopReach:
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
