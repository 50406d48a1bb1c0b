"""POP: the broker's allocation for consumers that pop messages (5.x)."""

from collections.abc import Sequence
from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.spi import AllocationStrategy, escape, is_java_blank, is_member

WHOLE_BROKER = -1  # the queue id that stands for all queues of a broker
DEFAULT_POP_SHARE_QUEUE_NUM = -1  # BrokerConfig.popShareQueueNum


def pops_whole_brokers(pop_share_queue_num: int, members: int) -> bool:
    """True if everybody pops every queue, whoever is a member."""
    return pop_share_queue_num <= 0 or pop_share_queue_num >= members - 1


def allocate_for_pop(
    inner: AllocationStrategy,
    client_id: str,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    pop_share_queue_num: int = DEFAULT_POP_SHARE_QUEUE_NUM,
) -> list[MessageQueue]:
    """``QueryAssignmentProcessor.allocate4Pop``; entries may repeat. rocketmq.md §2.8.

    Args:
        inner: The broker's strategy for the shares: AVG or AVG_BY_CIRCLE.
        client_id: Who asks.
        queues: The broker's readable queues of the topic, sorted.
        client_ids: All members, sorted, duplicates kept.
        pop_share_queue_num: How many following members' shares a member pops from as well.

    Raises:
        AllocationError: As `is_member`; never where everybody gets every broker.
    """
    if pops_whole_brokers(pop_share_queue_num, len(client_ids)):
        return [MessageQueue(q.topic, q.broker_name, WHOLE_BROKER) for q in queues]
    if len(client_ids) > len(queues):
        if not is_member(client_id, queues, client_ids, blank_is_empty=True):
            return []
        return [queues[client_ids.index(client_id) % len(queues)]]
    shares = inner.allocate(client_id, queues, client_ids)
    if client_id in client_ids:
        place = client_ids.index(client_id)
        for step in range(1, pop_share_queue_num + 1):
            neighbour = client_ids[(place + step) % len(client_ids)]
            shares += inner.allocate(neighbour, queues, client_ids)
    return shares


def allocate_all_for_pop(
    inner: AllocationStrategy,
    queues: Sequence[MessageQueue],
    client_ids: Sequence[str],
    pop_share_queue_num: int = DEFAULT_POP_SHARE_QUEUE_NUM,
) -> dict[str, list[MessageQueue]]:
    """`allocate_for_pop` of every distinct member, in the order of ``client_ids``.

    Raises:
        AllocationError: Some member's throws.
    """
    if not queues or any(map(is_java_blank, client_ids)):
        return {
            client_id: allocate_for_pop(inner, client_id, queues, client_ids, pop_share_queue_num)
            for client_id in dict.fromkeys(client_ids)
        }
    places: dict[str, int] = {}
    for place, client_id in enumerate(client_ids):
        places.setdefault(client_id, place)
    if pops_whole_brokers(pop_share_queue_num, len(client_ids)):
        whole = [MessageQueue(q.topic, q.broker_name, WHOLE_BROKER) for q in queues]
        return {client_id: list(whole) for client_id in places}
    if len(client_ids) > len(queues):
        return {client_id: [queues[place % len(queues)]] for client_id, place in places.items()}
    shares = inner.allocate_all(queues, client_ids)
    return {
        client_id: [
            queue
            for step in range(pop_share_queue_num + 1)
            for queue in shares[client_ids[(place + step) % len(client_ids)]]
        ]
        for client_id, place in places.items()
    }


@dataclass(frozen=True)
class Pop(AllocationStrategy):
    """`allocate_for_pop` as a strategy. No client strategy: `parse_strategy` refuses its text."""

    inner: AllocationStrategy
    pop_share_queue_num: int = DEFAULT_POP_SHARE_QUEUE_NUM

    @property
    def name(self) -> str:
        """``getName()``."""
        return "POP"

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """`allocate_for_pop` with these settings."""
        return allocate_for_pop(self.inner, client_id, queues, client_ids, self.pop_share_queue_num)

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """`allocate_all_for_pop` with these settings."""
        return allocate_all_for_pop(self.inner, queues, client_ids, self.pop_share_queue_num)

    def settings(self) -> list[tuple[str, str]]:
        """(key, escaped value) pairs of the strategy text."""
        return [
            ("inner", escape(self.inner.name)),
            ("pop_share_queue_num", str(self.pop_share_queue_num)),
        ]
