"""What a ledger leaves open about a shared topic: the candidates that fit its rows.

Its rows have the number of readable queues, but where whole brokers are reached not which they are;
nor do they have the share number of the request mode, nor whether the group is ordered.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from itertools import islice

from rebalance_core.explain.settlement import parsed_strategy
from rebalance_core.explain.shared.settlement import SharedSettlement
from rebalance_core.explain.shared.share_numbers import EVERYTHING, ShareNumbers
from rebalance_core.explain.view import Row, View, covers, subscribes
from rebalance_core.model.group_settings import (
    BROKER_REBALANCE,
    BROKER_STRATEGIES,
    PROXY_REBALANCE,
)
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.model.statuses import FROZEN
from rebalance_core.replay.settle import CONFIG_STRATEGY
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
        one_list: none does if brokers that nobody reaches have no queue of the topic.
        mode_known: not both a share number and the request mode PULL fit.
    """

    settled: SharedSettlement
    queues_known: bool
    one_list: bool
    mode_known: bool


def settle_shared_again(view: View, before: View | None, topic: str) -> Worked:
    """The settlement of a shared topic that fits the ledger's rows.

    Cost: what all members pop, once or twice; `MOST_LISTS` times at most.
    """
    fitting: list[list[SharedSettlement]] = []
    tried: SharedSettlement | None = None
    lists, complete = _readable_lists(view, topic)
    for queues in lists:
        ones = [
            _with_masters_lost(SharedSettlement(view, before, topic, queues, share, ordered))
            for ordered, share in _modes(view, topic, queues)
        ]
        tried = tried or ones[0]
        if fits := [one for one in ones if one.agrees]:
            fitting.append(fits)
        if len(fitting) > 1:
            break
    assert tried is not None
    one_list = len(fitting) == 1 and (complete or len(lists) < MOST_LISTS)
    known = one_list and (complete or view.shared[topic]["unreached"] == 0)
    fits = fitting[0] if fitting else [tried]
    modes = {one.share is None for one in fits}
    return Worked(fits[0], known, one_list, len(modes) == 1)


def _with_masters_lost(settled: SharedSettlement) -> SharedSettlement:
    """The same without new order locks where an orderly group's rows lack queues, if masters are
    gone in the epoch.
    """
    if not (settled.ordered and settled.view.row.get("masterless_queues")):
        return settled
    rows = settled.view.reach.get(settled.topic, {})
    lockless = frozenset(
        queue.broker_name
        for client_id, (sure, _) in settled.expected.items()
        for queue in sure
        if not covers(rows.get(client_id, frozenset()), queue)
    )
    return replace(settled, lockless=lockless) if lockless else settled


def queue_count_range(view: View, topic: str) -> dict[str, tuple[int, int]]:
    """Broker -> fewest and most readable queues that it can have; ids count from 0 up.

    Of the brokers that the rows name; others may have queues that nobody reaches.
    """
    total = int(view.shared[topic]["queues"])
    ranges: dict[str, tuple[int, int]] = {}
    for fewest in _evidence(view, topic):
        spare = total - sum(fewest.values())
        for broker, count in fewest.items():
            low, high = ranges.get(broker, (count, 0))
            ranges[broker] = (min(low, count), max(high, count + max(spare, 0)))
    return ranges


def _evidence(view: View, topic: str) -> Iterator[dict[str, int]]:
    """Queues of each broker that somebody reaches; a broker reached as a whole has one at least.

    Once of all clients; and if some may reach what cannot be read, once of the others: of those who
    are suspended or have a CONFIG list, or where the epoch is frozen ask a broker in vain.
    """
    reach = view.reach.get(topic, {})
    doubtful = {member["client_id"] for member in view.members if _doubtful(view, member)}
    for left_out in (frozenset[str](), doubtful & reach.keys()):
        fewest: dict[str, int] = {}
        for client_id in reach.keys() - left_out:
            for queue in reach[client_id]:
                count = max(1, queue.queue_id + 1)
                fewest[queue.broker_name] = max(count, fewest.get(queue.broker_name, 0))
        yield dict(sorted(fewest.items()))
        if not doubtful & reach.keys():
            return


def _doubtful(view: View, member: Row) -> bool:
    listed: bool = member["strategy"].startswith(CONFIG_STRATEGY)
    return listed or view.row["status"] == FROZEN or bool(member["suspended"])


def _readable_lists(view: View, topic: str) -> tuple[list[Queues], bool]:
    """Candidates for mqAll, the likeliest first, and True if the rows leave no other."""
    total = int(view.shared[topic]["queues"])
    if total == 0:
        return [()], True
    lists: dict[Queues, None] = {}
    spare = 0
    for fewest in _evidence(view, topic):
        spare = total - sum(fewest.values())
        if spare >= 0 and fewest:
            for mores in islice(_spread(spare, len(fewest)), MOST_LISTS):
                lists[_queues(topic, fewest, mores)] = None
    if not lists:
        reached = {q for entries in view.reach.get(topic, {}).values() for q in entries}
        single = sort_queues(queue for queue in reached if queue.queue_id != WHOLE_BROKER)
        return [tuple(single[:total])], False
    return list(lists), len(lists) == 1 and spare == 0


def _queues(topic: str, fewest: Mapping[str, int], mores: tuple[int, ...]) -> Queues:
    return tuple(
        sort_queues(
            MessageQueue(topic, broker, queue_id)
            for (broker, count), more in zip(fewest.items(), mores, strict=True)
            for queue_id in range(count + more)
        )
    )


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
