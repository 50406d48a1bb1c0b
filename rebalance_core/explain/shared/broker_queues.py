"""How many readable queues of a shared topic each broker can have, as the rows of reach show it.

Ids of readable queues count from 0 up on each broker, so a list of them is a number by broker.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from rebalance_core.explain.doubt import may_be_unread
from rebalance_core.explain.view import View
from rebalance_core.explain.ways import ways
from rebalance_core.strategies.pop import WHOLE_BROKER


@dataclass(slots=True)
class Seen:
    """What the rows name of one broker.

    Attributes:
        fewest: readable queues that it has for sure.
        ids: queues that some client reaches one by one, readable or not.
        whole: some client reaches all of its queues, if it has any.
    """

    fewest: int = 0
    ids: set[int] = field(default_factory=set)
    whole: bool = False


@dataclass(frozen=True, slots=True)
class BrokerQueues:
    """What the rows of a shared topic say of its readable queues.

    Attributes:
        seen: by broker; brokers that the rows do not name are missing.
        total: readable queues of the topic.
        unreached: those of them that no client reaches.
    """

    seen: Mapping[str, Seen]
    total: int
    unreached: int

    @property
    def spare(self) -> int:
        """Queues of which the rows do not say for sure on which broker they are."""
        return self.total - sum(of_broker.fewest for of_broker in self.seen.values())

    def count_range(self, broker: str) -> tuple[int, int]:
        """Fewest and most readable queues that a broker can have."""
        if broker in self.seen:
            fewest = self.seen[broker].fewest
            return fewest, fewest + max(0, self.spare)
        return 0, max(0, min(self.spare, self.unreached))


def broker_queues(view: View, before: View | None, topic: str) -> BrokerQueues:
    """What the rows say of the topic in an epoch."""
    seen: dict[str, Seen] = {}
    for client_id, entries in view.reach.get(topic, {}).items():
        for queue in entries:
            of_broker = seen.setdefault(queue.broker_name, Seen())
            if queue.queue_id == WHOLE_BROKER:
                of_broker.whole = True
            else:
                of_broker.ids.add(queue.queue_id)
            # A broker that is reached as a whole has a queue at least.
            count = max(1, queue.queue_id + 1)
            if count > of_broker.fewest and not may_be_unread(view, before, queue, client_id):
                of_broker.fewest = count
    row = view.shared[topic]
    return BrokerQueues(dict(sorted(seen.items())), int(row["queues"]), int(row["unreached"]))


def possible_counts(known: BrokerQueues, others: Iterable[str]) -> Iterator[dict[str, int]]:
    """Numbers of readable queues by broker with the sum that the topic has, the likeliest first.

    Args:
        known: what the rows say of the topic.
        others: brokers that may have queues that nobody reaches.
    """
    brokers = dict(known.seen)
    if known.unreached:
        brokers |= {name: Seen() for name in others if name not in known.seen}
    choices = _choices(brokers, known)
    for found in ways(choices, known.total, known.total):
        yield {name: count for name, count in zip(brokers, found, strict=True) if count}


def brokers_elsewhere(view: View) -> list[str]:
    """Brokers that the group has to do with in the epoch, whatever the topic."""
    reached = (q for clients in view.reach.values() for own in clients.values() for q in own)
    return sorted({queue.broker_name for queue in (*view.holders, *reached)})


def nameless_brokers(known: BrokerQueues) -> list[str]:
    """Stand-ins for brokers that no row names: one before all others, one after each of them.

    What a member takes by its place in mqAll does not depend on the names of others.
    """
    return ["", *(f"{name}\0" for name in known.seen)]


def likeliest_counts(known: BrokerQueues) -> dict[str, int]:
    """All queues that clients reach one by one, and of brokers that are reached as a whole about as
    many each.
    """
    likely = {
        name: max(seen.fewest, max(seen.ids, default=-1) + 1) for name, seen in known.seen.items()
    }
    whole = [name for name, seen in known.seen.items() if seen.whole]
    spare = max(0, known.total - sum(likely.values()))
    for place, name in enumerate(whole):
        likely[name] += spare // len(whole) + (place < spare % len(whole))
    return likely


def _choices(brokers: Mapping[str, Seen], known: BrokerQueues) -> list[Sequence[int]]:
    """The numbers that each broker can have, the likeliest first."""
    likely = likeliest_counts(known)
    return [_one_choice(seen, known, likely.get(name, 0)) for name, seen in brokers.items()]


def _one_choice(seen: Seen, known: BrokerQueues, likely: int) -> Sequence[int]:
    most = seen.fewest + known.spare
    if not seen.whole:
        unreached = [number for number in range(most) if number not in seen.ids]
        if len(unreached) > known.unreached:
            most = unreached[known.unreached]
    likely = min(likely, most)
    return (likely, *(number for number in range(seen.fewest, most + 1) if number != likely))
