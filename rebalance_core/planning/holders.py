"""Who holds each queue, by client id, out of the holdings of processes."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.strategies.planning_strategy import Owners
from rebalance_core.replay.shared_topics import ProcessKey


def owners_of(holdings: Mapping[ProcessKey, frozenset[MessageQueue]]) -> Owners:
    """The client ids that hold each queue, each once, in the order of the holdings."""
    owners: dict[MessageQueue, tuple[str, ...]] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues:
            others = owners.get(queue, ())
            if client_id not in others:
                owners[queue] = (*others, client_id)
    return owners


def previous_owner(
    before: Mapping[ProcessKey, frozenset[MessageQueue]], present: Collection[str]
) -> dict[MessageQueue, str]:
    """The owner of each queue as strategies are given it: of several the first, as held.

    Args:
        before: The holdings.
        present: Client ids of the members now; what others held has no owner.
    """
    owner: dict[MessageQueue, str] = {}
    for (client_id, _), queues in reversed(list(before.items())):
        if client_id in present:
            owner.update(dict.fromkeys(queues, client_id))
    return owner
