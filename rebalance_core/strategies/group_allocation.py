"""Allocation for a whole group: which client owns each queue."""

from collections.abc import Iterable
from typing import Any

from rebalance_core.model.queue import MessageQueue, sort_client_ids, sort_queues
from rebalance_core.strategies.texts import as_strategy


def allocate_group(
    strategy: Any, queues: Iterable[MessageQueue], client_ids: Iterable[str]
) -> dict[MessageQueue, tuple[str, ...]]:
    """Return the owners of every queue when all members use ``strategy`` and see the same group.

    Sorts both arguments as the client does and calls the strategy once for every distinct member.
    Keys are the queues in RocketMQ's order, followed, in the same order, by queues in the
    strategy's answers that are not in ``queues`` (CONFIG may list missing queues and other topics).
    Owners are in Java's order, each once, however many processes share its id; () means no owner.
    ``strategy`` is a string, a result of `make_strategy`, or a custom object (`register_strategy`).

    Raises:
        AllocationError: A member's allocation throws upstream; of several, the first one queried.

    >>> from rebalance_core.strategies.averagely import Averagely
    >>> queues = [MessageQueue("T", "broker-a", i) for i in (0, 1)]
    >>> list(allocate_group(Averagely(), queues, ["c2", "c1"]).values())
    [('c1',), ('c2',)]
    """
    sorted_queues = sort_queues(queues)
    shares = as_strategy(strategy).allocate_all(sorted_queues, sort_client_ids(client_ids))
    owners: dict[MessageQueue, list[str]] = {queue: [] for queue in sorted_queues}
    unlisted: dict[MessageQueue, list[str]] = {}
    for client_id, share in shares.items():
        for queue in dict.fromkeys(share):
            holders = owners[queue] if queue in owners else unlisted.setdefault(queue, [])
            holders.append(client_id)
    owners.update((queue, unlisted[queue]) for queue in sort_queues(unlisted))
    return {queue: tuple(clients) for queue, clients in owners.items()}
