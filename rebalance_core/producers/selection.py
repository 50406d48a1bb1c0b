"""Round robin over a publish list, with what to avoid (``TopicPublishInfo``,
``ThreadLocalIndex``).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers.routes import TopicRoute

# The counter of round robin (``ThreadLocalIndex``): a Java int that wraps.

POSITIVE_MASK = 0x7FFFFFFF
_INT_MIN = -(2**31)
_MAX_INT = 2**31 - 1

Draw = Callable[[], int]
"""``Random.nextInt()``: any int."""


def java_int(value: int) -> int:
    """The value as a signed 32-bit int, wrapped.

    >>> java_int(2**31)
    -2147483648
    """
    return (value + 2**31) % 2**32 - 2**31


def java_abs(value: int) -> int:
    """``Math.abs`` of an int: the smallest stays negative."""
    return value if value == _INT_MIN else abs(value)


def java_remainder(value: int, size: int) -> int:
    """``value % size`` of Java: its sign is that of the value."""
    return -((-value) % size) if value < 0 else value % size


@dataclass(slots=True)
class Counter:
    """One thread's counter of one topic; ``value`` null: not drawn yet. rocketmq.md §9.1."""

    value: int | None
    draw: Draw
    raw_seed: bool
    """from 5.0.0 the first value is drawn as it is, before its absolute value"""
    masked: bool = True
    """from 4.9.4 the sign bit is cut off, before the absolute value is taken"""

    def next(self) -> int:
        """``incrementAndGet``: the position before the modulus.

        Not negative, but for the smallest int up to 4.9.3.
        """
        if self.value is None:
            drawn = java_int(self.draw())
            self.value = drawn if self.raw_seed else java_abs(drawn)
        self.value = java_int(self.value + 1)
        return self.value & POSITIVE_MASK if self.masked else java_abs(self.value)

    def reset(self) -> None:
        """``reset`` (5.1.4+): a new random value, as a retry asks for it."""
        self.value = self.draw() % _MAX_INT


# Round robin over a publish list, with what to avoid (``TopicPublishInfo``).

BrokerFilter = Callable[[str], bool]
"""True: a queue of this broker may be chosen."""


class NoQueueError(AllocationError):
    """Upstream divides by the size of an empty publish list; the counter has advanced."""


@dataclass(slots=True)
class PublishInfo:
    """A producer's view of one topic: its publish list and one thread's counter."""

    queues: list[MessageQueue]
    counter: Counter
    route: TopicRoute

    def next_queue(self) -> MessageQueue:
        """The plain next queue. Raises `NoQueueError` for an empty list."""
        return self.queues[self.position()]

    def next_avoiding(self, last_broker: str | None) -> MessageQueue:
        """The next queue on another broker; after a full round the plain next one."""
        if last_broker is not None:
            for _ in self.queues:
                queue = self.queues[self.position()]
                if queue.broker_name != last_broker:
                    return queue
        return self.next_queue()

    def next_passing(self, filters: Sequence[BrokerFilter]) -> MessageQueue | None:
        """The next queue that passes all filters; null after a full round without one (5.1.4+)."""
        for _ in self.queues:
            queue = self.queues[self.position()]
            if all(passes(queue.broker_name) for passes in filters):
                return queue
        return None

    def position(self) -> int:
        """Advance the counter; where it stands. The smallest int counts as 0 (to 4.9.3)."""
        index = max(self.counter.next(), 0)
        if not self.queues:
            raise NoQueueError("ArithmeticException", "/ by zero")
        return index % len(self.queues)
