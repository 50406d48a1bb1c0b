"""What differs between the versions of a producer. rocketmq.md §9."""

from bisect import bisect_right
from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rebalance_core.model import times
from rebalance_core.model.clients import Version
from rebalance_core.model.queue import MessageQueue
from rebalance_core.producers import routes
from rebalance_core.producers.routes import ConcurrentMapOrder, Counter, PublishInfo

# ResponseCode: SYSTEM_ERROR, SERVICE_NOT_AVAILABLE, NO_PERMISSION, TOPIC_NOT_EXIST, NO_BUYER_ID,
# NOT_IN_CURRENT_UNIT
RETRY_CODES = frozenset({1, 14, 16, 17, 204, 205})
SYSTEM_BUSY = 2
GO_AWAY = 1500


@dataclass(frozen=True, slots=True)
class ProducerProfile:
    """The rules of one version, by name; `profile_of` makes it."""

    latency_max_ms: tuple[int, ...]
    not_available_ms: tuple[int, ...]
    isolation_latency_ms: int
    """the latency that a failure counts as"""
    filters: bool
    """5.1.4+: filters, reachability, a detector, isolation only extended"""
    scan_avoids_last: bool
    """5.1.1 to 5.1.3: the scan of available brokers passes over the last one"""
    scan_wraps: bool
    """to 5.0.0: the scan goes on past the largest int; from 5.1.0 it fails there"""
    rewrites_list: bool
    """the picked broker is written into the publish list; 4.9.8 makes a queue of its own"""
    pick_needs_write: bool
    """4.9.8: pickOneAtLeast's broker needs the WRITE bit in the route"""
    raw_seed: bool
    masked_counter: bool
    retry_codes: frozenset[int]
    caps_attempts: bool
    """5.3.3: sendMsgMaxTimeoutPerRequest"""


def profile_of(version: Version) -> ProducerProfile:
    """The rules of a version."""
    filters = version >= (5, 1, 4)
    codes = RETRY_CODES
    codes |= {SYSTEM_BUSY} if version >= (5, 3, 0) else set()
    codes |= {GO_AWAY} if version >= (5, 3, 1) else set()
    return ProducerProfile(
        latency_max_ms=times.PRODUCER_LATENCY_MAX_MS if filters else times.OLD_LATENCY_MAX_MS,
        not_available_ms=times.PRODUCER_NOT_AVAILABLE_MS if filters else times.OLD_NOT_AVAILABLE_MS,
        isolation_latency_ms=times.PRODUCER_ISOLATION_LATENCY_MS
        if filters
        else times.OLD_ISOLATION_LATENCY_MS,
        filters=filters,
        scan_avoids_last=version >= (5, 1, 1) and not filters,
        scan_wraps=version < (5, 1, 0),
        rewrites_list=not filters and version != (4, 9, 8),
        pick_needs_write=version == (4, 9, 8),
        raw_seed=version >= (5, 0, 0),
        masked_counter=version >= (4, 9, 4),
        retry_codes=codes,
        caps_attempts=version >= (5, 3, 3),
    )


# What a producer remembers of slow and failed brokers, and how long it avoids them
# (rocketmq.md §9.2).

# A producer's table of slow and failed brokers (``LatencyFaultToleranceImpl``).

_BUCKETS = 32  # new ConcurrentHashMap(16)


@dataclass(slots=True)
class FaultItem:
    """The memory of one broker; times in ms."""

    broker_name: str
    latency_ms: int = 0
    start_ms: int = 0
    """from when on the broker is available; 0: it always was"""
    reachable: bool = True
    check_ms: int = 0
    """when the detector may probe again; 0: it never did"""

    def is_available(self, now_ms: int) -> bool:
        """True once the isolation is over."""
        return now_ms >= self.start_ms


@dataclass(slots=True)
class FaultTable:
    """Brokers of all topics of one producer that were heard of. rocketmq.md §9.2.

    ``extends``: 5.1.4+, an isolation is never shortened; before, each result overwrites it.
    """

    extends: bool
    items: dict[str, FaultItem] = field(default_factory=dict)
    _order: ConcurrentMapOrder[str] = field(
        default_factory=lambda: ConcurrentMapOrder(routes.java_hash, _BUCKETS)
    )

    def update(
        self, broker_name: str, latency_ms: int, avoid_ms: int, reachable: bool, now_ms: int
    ) -> None:
        """``updateFaultItem``: a result of a send to the broker.

        Args:
            broker_name: The broker.
            latency_ms: Of the send.
            avoid_ms: For how long to avoid the broker (`isolation_ms`).
            reachable: False: do not use it until a later result or a probe says otherwise.
            now_ms: The time.
        """
        item = self.items.get(broker_name)
        if item is None:
            item = self.items[broker_name] = FaultItem(broker_name)
            self._order.add(broker_name)
        item.latency_ms = latency_ms
        start_ms = now_ms + avoid_ms
        if not self.extends or (avoid_ms > 0 and start_ms > item.start_ms):
            item.start_ms = start_ms
        item.reachable = reachable

    def is_available(self, broker_name: str, now_ms: int) -> bool:
        """True unless the broker is isolated."""
        item = self.items.get(broker_name)
        return item is None or item.is_available(now_ms)

    def is_reachable(self, broker_name: str) -> bool:
        """True unless the last result said otherwise (5.1.4+)."""
        item = self.items.get(broker_name)
        return item is None or item.reachable

    def remove(self, broker_name: str) -> None:
        """Forget a broker."""
        if self.items.pop(broker_name, None) is not None:
            self._order.remove(broker_name)

    def pick_one_at_least(self, worst: Counter, now_ms: int) -> str | None:
        """``pickOneAtLeast`` to 5.1.3: one of the better half, in turn; null: the table is empty.

        The best is available, then fast, then soonest available; equal ones stand in the order of
        Java's map (to 4.9.3 upstream shuffles them).
        """
        ranked = sorted(
            (self.items[name] for name in self._order),
            key=lambda item: (not item.is_available(now_ms), item.latency_ms, item.start_ms),
        )
        if not ranked:
            return None
        half = len(ranked) // 2
        return ranked[worst.next() % half if half else 0].broker_name

    def reachable_brokers(self) -> set[str]:
        """``pickOneAtLeast`` from 5.1.4 returns any of these; null if there is none."""
        return {name for name, item in self.items.items() if item.reachable}

    def detect(
        self, has_address: Collection[str], is_alive: Callable[[str], bool], now_ms: int
    ) -> None:
        """``detectByOneRound`` (5.1.4+): probe what is due, forget what has no address.

        Args:
            has_address: Brokers whose address the client knows.
            is_alive: Whether a broker answers a probe.
            now_ms: The time.
        """
        for name, item in list(self.items.items()):
            if now_ms < item.check_ms:
                continue
            item.check_ms = now_ms + times.DETECT_INTERVAL_MS
            if name not in has_address:
                self.remove(name)
            elif is_alive(name):
                item.reachable = True


# How long a broker is avoided after a latency (``MQFaultStrategy``).


def latency_level(latency_ms: int, profile: ProducerProfile) -> int:
    """Count the entries of latencyMax that the latency reaches: 0 is faster than all."""
    return bisect_right(profile.latency_max_ms, latency_ms)


def not_available_ms(latency_ms: int, profile: ProducerProfile) -> int:
    """``computeNotAvailableDuration``: ms for which a broker of this latency is avoided.

    >>> from rebalance_core.model.clients import parse_version
    >>> from rebalance_core.producers.strategy import profile_of
    >>> [not_available_ms(600, profile_of(parse_version(v))) for v in ("4.9.7", "5.3.3")]
    [30000, 2000]
    """
    level = latency_level(latency_ms, profile)
    return profile.not_available_ms[level - 1] if level else 0


def isolation_ms(latency_ms: int, isolation: bool, profile: ProducerProfile) -> int:
    """The same for a reported result: a failure counts as the version's isolation latency."""
    return not_available_ms(profile.isolation_latency_ms if isolation else latency_ms, profile)


# The choice of a queue, and what results do to later choices (``MQFaultStrategy``).


@dataclass(slots=True)
class FaultStrategy:
    """One producer's strategy. ``enabled`` is sendLatencyFaultEnable, off by default upstream."""

    profile: ProducerProfile
    enabled: bool
    faults: FaultTable
    worst: Counter
    """the counter of pickOneAtLeast, to 5.1.3"""

    def select(
        self, info: PublishInfo, last_broker: str | None, reset: bool, now_ms: int
    ) -> MessageQueue:
        """``selectOneMessageQueue``. rocketmq.md §9.1, §9.2.

        Up to 5.1.3 with the strategy on, an entry of the publish list may be overwritten, as
        upstream does.

        Args:
            info: The topic's publish list and counter.
            last_broker: Broker of the attempt before; null: the first.
            reset: Of a retry: start from a random index (5.1.4+, strategy on).
            now_ms: The time.

        Returns:
            The queue.

        Raises:
            NoQueueError: The publish list is empty; senders ask before.
        """
        if self.profile.filters:
            return self._select_by_filters(info, last_broker, reset, now_ms)
        if self.enabled:
            return self._select_by_scan(info, last_broker, now_ms)
        return info.next_avoiding(last_broker)

    def report(
        self, broker_name: str, latency_ms: int, isolation: bool, reachable: bool, now_ms: int
    ) -> None:
        """``updateFaultItem``: the result of an attempt; nothing happens with the strategy off."""
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
            index = routes.java_int(index + 1)
            queue = info.queues[position]
            if queue.broker_name != avoided and self.faults.is_available(queue.broker_name, now_ms):
                return queue
        return self._select_worst(info, now_ms)

    def _scan_position(self, index: int, size: int) -> int | None:
        """Null: Java throws, upstream catches it and takes the plain next queue."""
        if self.profile.scan_wraps:
            return max(routes.java_remainder(routes.java_abs(index), size), 0)
        position = routes.java_remainder(index, size)
        return position if position >= 0 else None

    def _select_worst(self, info: PublishInfo, now_ms: int) -> MessageQueue:
        """No broker is available: one of the better half, which may be outside of the list."""
        broker = self.faults.pick_one_at_least(self.worst, now_ms)
        writable = self.profile.pick_needs_write
        writes = info.route.write_queue_nums(broker, writable_only=writable)
        if writes <= 0 or broker is None:
            if broker is not None:
                self.faults.remove(broker)
            return info.next_queue()
        if not info.queues:
            info.counter.next()  # the division fails, upstream catches it
            return info.next_queue()
        position = info.position()
        queue_id = routes.java_remainder(info.counter.next(), writes)
        chosen = MessageQueue(info.queues[position].topic, broker, queue_id)
        if self.profile.rewrites_list:
            info.queues[position] = chosen
        return chosen


def new_strategy(profile: ProducerProfile, enabled: bool, worst: Counter) -> FaultStrategy:
    """A strategy with an empty table."""
    return FaultStrategy(profile, enabled, FaultTable(extends=profile.filters), worst)
