"""Which queues the members of an epoch could read: the candidates that fit the ledger's rows.

The ledger has a row for each queue that is readable or held, and the number of readable ones, but
not which they are. Nor does it say whether the brokers allocate (``rebalance_mode = BROKER``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from rebalance_core.explain.settlement import Settlement
from rebalance_core.explain.view import View
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.model.statuses import FROZEN
from rebalance_core.replay.settle import CONFIG_STRATEGY

MOST_GUESSES = 4_096


def settle_again(view: View, before: View | None, topic: str) -> tuple[Settlement, bool]:
    """The settlement of a topic that fits the ledger's rows best, and whether it is the only one.

    Cost: one allocation of the topic by each strategy in use; where held queues cannot be read, one
    for each candidate, 4,096 at most.
    """
    listed = view.queues.get(topic, [])
    if view.unreadable == 0 and view.row["status"] != FROZEN:
        return _with_masters_lost(Settlement(view, before, topic, tuple(listed))), True
    first: Settlement | None = None
    fitting: list[Settlement] = []
    for broker_mode in (False, True) if view.row["status"] == FROZEN else (False,):
        for readable in _possible_queues(view, topic):
            one = _with_masters_lost(Settlement(view, before, topic, readable, broker_mode))
            first = first or one
            if all(one.agrees(queue) for queue in listed):
                fitting.append(one)
    assert first is not None
    return (fitting or [first])[0], len({one.queues for one in fitting}) == 1


def _with_masters_lost(settled: Settlement) -> Settlement:
    """The same without new order locks of the brokers where it does not fit the rows, if masters
    are gone in the epoch; the ledger does not say whose, nor whether the group is orderly.
    """
    if not settled.view.row.get("masterless_queues"):
        return settled
    listed = settled.view.queues.get(settled.topic, [])
    lockless = frozenset(queue.broker_name for queue in listed if not settled.agrees(queue))
    return replace(settled, lockless=lockless) if lockless else settled


def _possible_queues(view: View, topic: str) -> Iterator[tuple[MessageQueue, ...]]:
    """Candidates for the topic's readable queues, the likeliest first."""
    listed = view.queues.get(topic, [])
    if view.unreadable == 0:
        yield tuple(listed)
        return
    doubtful = {queue for queue in view.holders if _doubtful(view, queue)}
    if len(doubtful) == view.unreadable:
        yield tuple(queue for queue in listed if queue not in doubtful)
        return
    doubtful_here = [queue for queue in listed if queue in doubtful]
    elsewhere = len(doubtful) - len(doubtful_here)
    brokers = list(dict.fromkeys(queue.broker_name for queue in doubtful_here))
    # A broker that is lost takes all its queues; one scaled in, those of the highest ids.
    of_broker = [[q for q in doubtful_here if q.broker_name == broker] for broker in brokers]
    whole = product(*((0, len(queues)) for queues in of_broker))
    parts = product(*(range(len(queues) + 1) for queues in of_broker))
    seen = set()
    for guess, (lost_counts, _) in enumerate((c, None) for part in (whole, parts) for c in part):
        if guess >= MOST_GUESSES:
            return
        total = sum(lost_counts)
        if lost_counts in seen or not 0 <= view.unreadable - total <= elsewhere:
            continue
        seen.add(lost_counts)
        gone = {
            queue
            for queues, lost in zip(of_broker, lost_counts, strict=True)
            for queue in queues[len(queues) - lost :]
        }
        yield tuple(sort_queues(queue for queue in listed if queue not in gone))


def _doubtful(view: View, queue: MessageQueue) -> bool:
    """True if everybody who holds the queue may hold it without being able to read it."""
    holders = view.holders[queue]
    if not holders:
        return False
    return view.row["status"] == FROZEN or all(
        any(
            member["suspended"] or member["strategy"].startswith(CONFIG_STRATEGY)
            for member in view.members
            if member["client_id"] == client_id
        )
        for client_id in holders
    )
