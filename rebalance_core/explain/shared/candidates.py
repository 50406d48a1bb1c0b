"""What a ledger leaves open about a shared topic: the candidates that fit its rows.

Its rows have the number of readable queues, but where whole brokers are reached not which they are;
nor do they have the share number of the request mode, nor whether the group is ordered, nor whether
its consumers are of the kind that asks brokers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

from rebalance_core.explain.shared.broker_queues import (
    BrokerQueues,
    broker_queues,
    brokers_elsewhere,
    likeliest_counts,
    nameless_brokers,
    possible_counts,
)
from rebalance_core.explain.shared.figures import Figures
from rebalance_core.explain.shared.settlement import SharedSettlement
from rebalance_core.explain.shared.share_fit import likeliest_shares, share_fits
from rebalance_core.explain.shared.share_numbers import ShareNumbers
from rebalance_core.explain.view import Entries, View, covers, subscribes
from rebalance_core.model.group_settings import PROXY_REBALANCE
from rebalance_core.model.queue import MessageQueue, sort_queues
from rebalance_core.strategies.pop import WHOLE_BROKER

MOST_COUNTS = 4_096
"""Lists of readable queues that are looked at: do they give the figures of pop_metrics?"""
MOST_LISTS = 256
"""Of these, lists under which everything is worked out again."""


@dataclass(frozen=True, slots=True)
class Worked:
    """How a topic's rows are explained.

    Attributes:
        settled: what fits them, or if nothing does, the likeliest.
        known: what the rows say of the readable queues.
        agrees: something fits; None: nothing does, and there are more lists than could be tried.
        queues_known: no other list of readable queues fits as well.
        one_list: none does if brokers that the group's rows do not name have no queue of the topic.
        shares: the share numbers that fit; several kinds of them, where no row tells them apart.
        mode_known: not both a share number and the request mode PULL fit.
    """

    settled: SharedSettlement
    known: BrokerQueues
    agrees: bool | None
    queues_known: bool
    one_list: bool
    shares: tuple[ShareNumbers, ...]
    mode_known: bool

    def can_read(self, queue: MessageQueue) -> bool | None:
        """Whether a queue is in mqAll; None: the rows leave it open. For a whole broker, True."""
        if queue.queue_id == WHOLE_BROKER:
            return True
        if self.queues_known:
            return queue in self.settled.queues
        fewest, most = self.known.count_range(queue.broker_name)
        return None if fewest <= queue.queue_id < most else queue.queue_id < fewest

    def names(self, entries: Entries, queue: MessageQueue) -> bool:
        """True if the entries name the queue, or its broker unless it cannot be read; of a whole
        broker, if they name anything of it.
        """
        if queue.queue_id == WHOLE_BROKER:
            return any(entry.broker_name == queue.broker_name for entry in entries)
        return queue in entries if self.can_read(queue) is False else covers(entries, queue)


def settle_shared_again(view: View, before: View | None, topic: str) -> Worked:
    """The settlement of a shared topic that fits the ledger's rows.

    Cost: what all members pop, a few times; twice `MOST_LISTS` times that at most.
    """
    known = broker_queues(view, before, topic)
    fitting, all_tried = _fitting(view, before, topic, known, brokers_elsewhere(view))
    # A broker without a row can have a queue only where it is one that nobody reaches.
    complete = known.spare == 0 or known.unreached == 0
    one_list = len(fitting) == 1 and all_tried
    if not fitting and not complete:
        fitting, all_tried = _fitting(view, before, topic, known, nameless_brokers(known))
    if not fitting:
        counts = likeliest_counts(known)
        settled = SharedSettlement(view, before, topic, _queues(topic, counts), None)
        if not (all_tried and complete):
            return Worked(settled, known, None, False, False, (), False)
        settled = _likeliest(settled)
        likeliest = () if settled.share is None else (settled.share,)
        return Worked(settled, known, False, False, False, likeliest, True)
    shares = tuple(one.share for one in fitting[0] if one.share is not None)
    mode_known = len({one.share is None for one in fitting[0]}) == 1
    return Worked(fitting[0][0], known, True, one_list and complete, one_list, shares, mode_known)


def _fitting(
    view: View, before: View | None, topic: str, known: BrokerQueues, others: list[str]
) -> tuple[list[list[SharedSettlement]], bool]:
    """What fits by list of readable queues, two lists at most, and whether all were tried."""
    found: list[list[SharedSettlement]] = []
    figures, tried = Figures(view, topic), 0
    for looked_at, counts in enumerate(possible_counts(known, others)):
        if looked_at == MOST_COUNTS or tried == MOST_LISTS:
            return found, False
        if not figures.fit(counts):
            continue
        tried += 1
        if fits := list(_fits(SharedSettlement(view, before, topic, _queues(topic, counts), None))):
            found.append(fits)
        if len(found) > 1:
            break
    return found, True


def _queues(topic: str, counts: dict[str, int]) -> tuple[MessageQueue, ...]:
    return tuple(
        sort_queues(
            MessageQueue(topic, broker, queue_id)
            for broker, count in counts.items()
            for queue_id in range(count)
        )
    )


def _fits(settled: SharedSettlement) -> Iterator[SharedSettlement]:
    """The settlement with what fits of all that is open beside mqAll, the likeliest first."""
    view = settled.view
    reading = [member for member in view.members if subscribes(member, settled.topic)]
    behind_proxy = any(member["rebalance_mode"] == PROXY_REBALANCE for member in reading)
    shares = list(share_fits(settled))
    yield from shares
    others = [settled] if behind_proxy or not shares else []
    if behind_proxy:
        others += [replace(settled, asks=False), replace(settled, ordered=True)]
    yield from (other for other in map(_with_masters_lost, others) if other.agrees)


def _likeliest(settled: SharedSettlement) -> SharedSettlement:
    """What differs least, where nothing fits."""
    others = [settled, replace(settled, ordered=True), *likeliest_shares(settled)]
    return min(others, key=lambda other: len(other.differing))


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
