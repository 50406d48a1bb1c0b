"""What a ledger leaves open about a shared topic: the candidates that fit its rows.

Its rows have the number of readable queues, but where whole brokers are reached not which they are;
nor do they have the share number of the request mode, nor whether the group is ordered.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from rebalance_core.explain.settlement import parsed_strategy
from rebalance_core.explain.shared.settlement import SharedSettlement
from rebalance_core.explain.shared.share_numbers import EVERYTHING, ShareNumbers
from rebalance_core.explain.view import Row, View, subscribes
from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    PROXY_REBALANCE,
)
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.strategies.pop import WHOLE_BROKER, allocate_for_pop

MOST_LISTS = 256
"""Of readable queues, that are tried."""

Queues = tuple[MessageQueue, ...]


@dataclass(frozen=True, slots=True)
class Worked:
    """How a topic's rows are explained.

    Attributes:
        settled: what fits them, or if nothing does, the likeliest.
        queues_known: no other list of readable queues fits as well.
    """

    settled: SharedSettlement
    queues_known: bool


def settle_shared_again(view: View, before: View | None, topic: str) -> Worked:
    """The settlement of a shared topic that fits the ledger's rows.

    Cost: what all members pop, once or twice; `MOST_LISTS` times at most.
    """
    fitting: list[SharedSettlement] = []
    tried: SharedSettlement | None = None
    lists, complete = _readable_lists(view, topic)
    for queues in lists:
        for ordered, share in _modes(view, topic, queues):
            one = SharedSettlement(view, before, topic, queues, share, ordered)
            tried = tried or one
            if one.agrees:
                fitting.append(one)
                break
        if len(fitting) > 1:
            break
    assert tried is not None
    known = len(fitting) == 1 and (complete or len(lists) < MOST_LISTS)
    return Worked((fitting or [tried])[0], known)


def queue_count_range(view: View, topic: str) -> dict[str, tuple[int, int]]:
    """Broker -> fewest and most readable queues that it can have; ids count from 0 up.

    Of the brokers that the rows name; others may have queues that nobody reaches.
    """
    total = int(view.shared[topic]["queues"])
    fewest = _fewest(view, topic)
    spare = total - sum(fewest.values())
    if spare < 0:  # some are kept that cannot be read
        return dict.fromkeys(fewest, (0, total))
    return {broker: (count, count + spare) for broker, count in fewest.items()}


def _fewest(view: View, topic: str) -> dict[str, int]:
    """Queues of each broker that somebody reaches; a broker reached as a whole has one at least."""
    fewest: dict[str, int] = {}
    for entries in view.reach.get(topic, {}).values():
        for queue in entries:
            count = max(1, queue.queue_id + 1)
            fewest[queue.broker_name] = max(count, fewest.get(queue.broker_name, 0))
    return fewest


def _readable_lists(view: View, topic: str) -> tuple[list[Queues], bool]:
    """Candidates for mqAll, the most even first, and True if there can be no other."""
    total = int(view.shared[topic]["queues"])
    fewest = _fewest(view, topic)
    spare = total - sum(fewest.values())
    if total == 0:
        return [()], True
    if spare < 0 or not fewest:
        reached = {q for entries in view.reach.get(topic, {}).values() for q in entries}
        single = sort_queues(queue for queue in reached if queue.queue_id != WHOLE_BROKER)
        return [tuple(single[:total])], False
    brokers = list(fewest)
    spread = islice(_spread(spare, len(brokers)), MOST_LISTS)
    lists = [
        tuple(
            sort_queues(
                MessageQueue(topic, broker, queue_id)
                for broker, more in zip(brokers, mores, strict=True)
                for queue_id in range(fewest[broker] + more)
            )
        )
        for mores in spread
    ]
    return lists, spare == 0


def _spread(spare: int, brokers: int) -> Iterator[tuple[int, ...]]:
    """All ways to give so many queues to brokers; the most even one first."""
    even = tuple(spare // brokers + (i < spare % brokers) for i in range(brokers))
    yield even
    yield from (found for found in _compositions(spare, brokers) if found != even)


def _compositions(spare: int, parts: int) -> Iterator[tuple[int, ...]]:
    if parts == 1:
        yield (spare,)
        return
    for first in range(spare + 1):
        for rest in _compositions(spare - first, parts - 1):
            yield (first, *rest)


def _modes(view: View, topic: str, queues: Queues) -> Iterator[tuple[bool, ShareNumbers | None]]:
    """Candidates for (ordered, share number), the likeliest first."""
    reading = [member for member in view.members if subscribes(member, topic)]
    behind_proxy = any(member["rebalance_mode"] == PROXY_REBALANCE for member in reading)
    asking = [member for member in reading if member["rebalance_mode"] == BROKER_REBALANCE]
    share = _share(view, topic, queues, asking)
    if share is not None:
        yield False, share
    if share is None or behind_proxy:
        yield False, None
    if behind_proxy:
        yield True, None


def _share(view: View, topic: str, queues: Queues, asking: list[Row]) -> ShareNumbers | None:
    """The share numbers that the rows of those who ask a broker point to; None: no row does."""
    ids = view.client_ids
    rows = view.reach.get(topic, {})
    clear = [m for m in asking if not m["suspended"] and m["client_id"] in rows]
    clear.sort(key=lambda member: ids.count(member["client_id"]))
    if not clear or not queues:
        return None
    if any(q.queue_id == WHOLE_BROKER for m in clear for q in rows[m["client_id"]]):
        return ShareNumbers(EVERYTHING, len(ids), len(queues))
    if len(ids) > len(queues):
        return ShareNumbers(1, len(ids), len(queues))
    client_id = clear[0]["client_id"]
    strategy = parsed_strategy(clear[0]["strategy"], clear[0]["version"])
    if strategy is None or strategy.name not in BROKER_STRATEGIES:
        return None
    for number in range(1, len(ids) - 1):
        popped = frozenset(allocate_for_pop(strategy, client_id, queues, ids, number))
        if len(popped) >= len(rows[client_id]):
            return ShareNumbers(number, len(ids), len(queues))
    return None
