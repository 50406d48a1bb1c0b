"""Round robin over a publish list, with queues to avoid (``TopicPublishInfo``)."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.counter import Counter
from rebalance_core.producers.topic_route import TopicRoute

BrokerFilter = Callable[[str], bool]
"""Returns True if a queue on this broker may be chosen."""


class NoQueueError(AllocationError):
    """Upstream divides by the size of an empty publish list, after advancing the counter."""


@dataclass(slots=True)
class PublishInfo:
    """A producer's view of one topic: its publish list and one thread's counter."""

    queues: list[MessageQueue]
    counter: Counter
    route: TopicRoute

    def next_queue(self) -> MessageQueue:
        """Return the plain next queue. Raises `NoQueueError` for an empty list."""
        return self.queues[self.position()]

    def next_avoiding(self, last_broker: str | None) -> MessageQueue:
        """Return the next queue on another broker or, after a full round, simply the next queue."""
        if last_broker is not None:
            for _ in self.queues:
                queue = self.queues[self.position()]
                if queue.broker_name != last_broker:
                    return queue
        return self.next_queue()

    def next_passing(self, filters: Sequence[BrokerFilter]) -> MessageQueue | None:
        """Return the next queue that passes all filters, or None after an unsuccessful full round
        (5.1.4+).
        """
        for _ in self.queues:
            queue = self.queues[self.position()]
            if all(passes(queue.broker_name) for passes in filters):
                return queue
        return None

    def position(self) -> int:
        """Advance the counter and return its position. The smallest int counts as 0 (up to
        4.9.3).
        """
        index = max(self.counter.next(), 0)
        if not self.queues:
            raise NoQueueError("ArithmeticException", "/ by zero")
        return index % len(self.queues)
