"""The choice of a queue, and the effect of results on later choices (``MQFaultStrategy``)."""

from dataclasses import dataclass

from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers import counter
from rebalance_core.producers.counter import Counter
from rebalance_core.producers.fault_table import FaultTable
from rebalance_core.producers.profile import ProducerProfile, isolation_ms
from rebalance_core.producers.publish_info import PublishInfo


@dataclass(slots=True)
class FaultStrategy:
    """One producer's strategy. ``enabled`` is sendLatencyFaultEnable, off by default upstream."""

    profile: ProducerProfile
    enabled: bool
    faults: FaultTable
    worst: Counter
    """the counter of pickOneAtLeast, up to 5.1.3"""

    def select(
        self, info: PublishInfo, last_broker: str | None, reset: bool, now_ms: int
    ) -> MessageQueue:
        """Apply ``selectOneMessageQueue``. rocketmq.md §9.1, §9.2.

        Up to 5.1.3, with the strategy on, an entry in the publish list may be overwritten, as
        upstream does.

        Args:
            info: The topic's publish list and counter.
            last_broker: The broker of the previous attempt; None for the first attempt.
            reset: Whether a retry starts from a random index (5.1.4+, strategy on).
            now_ms: The time.

        Returns:
            The queue.

        Raises:
            NoQueueError: The publish list is empty; senders check first.
        """
        if self.profile.filters:
            return self._select_by_filters(info, last_broker, reset, now_ms)
        if self.enabled:
            return self._select_by_scan(info, last_broker, now_ms)
        return info.next_avoiding(last_broker)

    def report(
        self, broker_name: str, latency_ms: int, isolation: bool, reachable: bool, now_ms: int
    ) -> None:
        """Apply ``updateFaultItem`` to the result of an attempt; this has no effect with the
        strategy off.
        """
        if self.enabled:
            avoid_ms = isolation_ms(latency_ms, isolation, self.profile)
            self.faults.update(broker_name, latency_ms, avoid_ms, reachable, now_ms)

    def _select_by_filters(
        self, info: PublishInfo, last_broker: str | None, reset: bool, now_ms: int
    ) -> MessageQueue:
        def other(broker: str) -> bool:
            return last_broker is None or broker != last_broker

        def available(broker: str) -> bool:
            return self.faults.is_available(broker, now_ms)

        if not self.enabled:
            return info.next_passing([other]) or info.next_queue()
        if reset:
            info.counter.reset()
        return (
            info.next_passing([available, other])
            or info.next_passing([self.faults.is_reachable, other])
            or info.next_queue()
        )

    def _select_by_scan(
        self, info: PublishInfo, last_broker: str | None, now_ms: int
    ) -> MessageQueue:
        avoided = last_broker if self.profile.scan_avoids_last else None
        index = info.counter.next()
        for _ in info.queues:
            position = self._scan_position(index, len(info.queues))
            if position is None:
                return info.next_queue()
            index = counter.java_int(index + 1)
            queue = info.queues[position]
            if queue.broker_name != avoided and self.faults.is_available(queue.broker_name, now_ms):
                return queue
        return self._select_worst(info, now_ms)

    def _scan_position(self, index: int, size: int) -> int | None:
        """Return where the scan begins, or None if Java throws, in which case upstream takes the
        plain next queue.
        """
        if self.profile.scan_wraps:
            return max(counter.java_remainder(counter.java_abs(index), size), 0)
        position = counter.java_remainder(index, size)
        return position if position >= 0 else None

    def _select_worst(self, info: PublishInfo, now_ms: int) -> MessageQueue:
        """Return a queue on a broker from the better half, possibly outside the list, since no
        broker is available.
        """
        broker = self.faults.pick_one_at_least(self.worst, now_ms)
        writable = self.profile.pick_needs_write
        writes = info.route.write_queue_nums(broker, writable_only=writable)
        if writes <= 0 or broker is None:
            if broker is not None:
                self.faults.remove(broker)
            return info.next_queue()
        if not info.queues:
            info.counter.next()  # the division fails, but RocketMQ catches the error
            return info.next_queue()
        position = info.position()
        queue_id = counter.java_remainder(info.counter.next(), writes)
        chosen = MessageQueue(info.queues[position].topic, broker, queue_id)
        if self.profile.rewrites_list:
            info.queues[position] = chosen
        return chosen


def new_strategy(profile: ProducerProfile, enabled: bool, worst: Counter) -> FaultStrategy:
    """Return a strategy with an empty table."""
    return FaultStrategy(profile, enabled, FaultTable(extends=profile.filters), worst)
