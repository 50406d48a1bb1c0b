"""A producer's table of slow and failed brokers (rocketmq.md §9.2).

Upstream: ``LatencyFaultToleranceImpl``.
"""

from collections.abc import Callable, Collection
from dataclasses import dataclass, field

from rebalance_core.model import times
from rebalance_core.producers import concurrent_map
from rebalance_core.producers.concurrent_map import ConcurrentMapOrder
from rebalance_core.producers.counter import Counter

_BUCKETS = 32  # new ConcurrentHashMap(16)


@dataclass(slots=True)
class FaultItem:
    """What is remembered about one broker; times are in ms."""

    broker_name: str
    latency_ms: int = 0
    start_ms: int = 0
    """the time from which the broker is available; 0: it always was"""
    reachable: bool = True
    check_ms: int = 0
    """when the detector may probe again; 0: it has never probed"""

    def is_available(self, now_ms: int) -> bool:
        """Return True once the isolation is over."""
        return now_ms >= self.start_ms


@dataclass(slots=True)
class FaultTable:
    """The brokers, over all topics, for which a producer has had results. rocketmq.md §9.2.

    With ``extends`` (5.1.4+), an isolation is never shortened; in earlier versions, each result
    overwrites it.
    """

    extends: bool
    items: dict[str, FaultItem] = field(default_factory=dict)
    _order: ConcurrentMapOrder[str] = field(
        default_factory=lambda: ConcurrentMapOrder(concurrent_map.java_hash, _BUCKETS)
    )

    def update(
        self, broker_name: str, latency_ms: int, avoid_ms: int, reachable: bool, now_ms: int
    ) -> None:
        """Apply ``updateFaultItem``: record the result of a send to the broker.

        Args:
            broker_name: The broker.
            latency_ms: The latency of the send.
            avoid_ms: The time for which to avoid the broker (`isolation_ms`).
            reachable: If False, the broker is not used until a later result or a probe finds it
                reachable.
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
        """Return True unless the broker is isolated."""
        item = self.items.get(broker_name)
        return item is None or item.is_available(now_ms)

    def is_reachable(self, broker_name: str) -> bool:
        """Return True unless the last result found the broker unreachable (5.1.4+)."""
        item = self.items.get(broker_name)
        return item is None or item.reachable

    def remove(self, broker_name: str) -> None:
        """Forget a broker."""
        if self.items.pop(broker_name, None) is not None:
            self._order.remove(broker_name)

    def pick_one_at_least(self, worst: Counter, now_ms: int) -> str | None:
        """Apply ``pickOneAtLeast`` (up to 5.1.3): return one broker from the better half, in turn,
        or None if the table is empty.

        Brokers are ranked by availability, then by latency, then by when they become available;
        equal brokers keep the order of Java's map (up to 4.9.3, upstream shuffles them).
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
        """Return the brokers from which ``pickOneAtLeast`` (5.1.4+) returns any, or null if there
        are none.
        """
        return {name for name, item in self.items.items() if item.reachable}

    def detect(
        self, has_address: Collection[str], is_alive: Callable[[str], bool], now_ms: int
    ) -> None:
        """Apply ``detectByOneRound`` (5.1.4+): probe brokers that are due, and forget brokers
        without an address.

        Args:
            has_address: Whether the client knows the address of a broker.
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
