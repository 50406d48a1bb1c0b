"""Which queues the members of an epoch could read: the candidates that fit the ledger's rows.

The ledger has a row for each queue that is readable or held, and the number of readable ones, but
not which they are. Nor does it say whether the brokers allocate (``rebalance_mode = BROKER``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import chain, islice

from rebalance_core.explain.doubt import may_be_unread
from rebalance_core.explain.settlement import Settlement
from rebalance_core.explain.view import View
from rebalance_core.explain.ways import ways
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import FROZEN

MOST_GUESSES = 4_096


def settle_again(view: View, before: View | None, topic: str) -> tuple[Settlement, bool]:
    """The settlement of a topic that fits the ledger's rows best, and whether it is the only one.

    Cost: one allocation of the topic by each strategy in use; where held queues cannot be read, one
    for each candidate until two fit, 4,096 at most.
    """
    listed = view.queues.get(topic, [])
    first: Settlement | None = None
    fitting: list[Settlement] = []
    for broker_mode in (False, True) if view.row["status"] == FROZEN else (False,):
        for readable in _possible_queues(view, before, topic):
            one = _with_masters_lost(Settlement(view, before, topic, readable, broker_mode))
            first = first or one
            if all(one.agrees(queue) for queue in listed):
                fitting.append(one)
                if one.queues != fitting[0].queues:
                    return fitting[0], False
    assert first is not None
    return (fitting or [first])[0], bool(fitting)


def _with_masters_lost(settled: Settlement) -> Settlement:
    """The same without new order locks of the brokers where it does not fit the rows, if masters
    are gone in the epoch; the ledger does not say whose, nor whether the group is orderly.
    """
    if not settled.view.row.get("masterless_queues"):
        return settled
    listed = settled.view.queues.get(settled.topic, [])
    lockless = frozenset(queue.broker_name for queue in listed if not settled.agrees(queue))
    return replace(settled, lockless=lockless) if lockless else settled


def _possible_queues(
    view: View, before: View | None, topic: str
) -> Iterator[tuple[MessageQueue, ...]]:
    """Candidates for the topic's readable queues, the likeliest first.

    Ids of readable queues count from 0 up on each broker, and each has a row.
    """
    listed = view.queues.get(topic, [])
    if len(listed) == view.readable_count(topic) or view.unreadable == 0:
        yield tuple(listed)
        return
    of_broker: dict[str, list[MessageQueue]] = {}
    for queue in listed:
        of_broker.setdefault(queue.broker_name, []).append(queue)
    ranges = [_count_range(view, before, queues) for queues in of_broker.values()]
    # A broker that is lost takes all its queues; one scaled in, those of the highest ids.
    whole = [tuple(dict.fromkeys((most, fewest))) for fewest, most in ranges]
    parts = [range(most, fewest - 1, -1) for fewest, most in ranges]
    low, high = _total_range(view, before, topic)
    found = dict.fromkeys(islice(chain(ways(whole, low, high), ways(parts, low, high)),
                                 MOST_GUESSES))  # fmt: skip
    for counts in found or [tuple(most for _, most in ranges)]:
        readable = (
            queue
            for queues, count in zip(of_broker.values(), counts, strict=True)
            for queue in queues[:count]
        )
        yield tuple(readable)


def _count_range(view: View, before: View | None, queues: list[MessageQueue]) -> tuple[int, int]:
    """Fewest and most readable queues that a broker can have.

    Args:
        view: the epoch.
        before: the epoch before.
        queues: all of one topic and broker that have a row, sorted.
    """
    most = 0
    while most < len(queues) and queues[most].queue_id == most:
        most += 1
    sure = (number for number in range(most) if not _doubtful(view, before, queues[number]))
    return max(sure, default=-1) + 1, most


def _total_range(view: View, before: View | None, topic: str) -> tuple[int, int]:
    """Fewest and most readable queues that the topic can have."""
    count = view.readable_count(topic)
    if count is not None:
        return count, count
    here = len(view.queues.get(topic, []))
    doubtful_elsewhere = sum(
        _doubtful(view, before, queue)
        for queue in view.holders
        if queue.topic != topic and queue.topic in view.open_topics
    )
    listed = sum(len(view.queues[other]) for other in view.open_topics)
    unread = listed - (int(view.row["queues"]) - sum(view.counts.values()))
    return max(0, here - unread), min(here, here - unread + doubtful_elsewhere)


def _doubtful(view: View, before: View | None, queue: MessageQueue) -> bool:
    """True if everybody who holds the queue may hold it without being able to read it."""
    holders = view.holders[queue]
    return bool(holders) and all(may_be_unread(view, before, queue, c) for c in holders)
