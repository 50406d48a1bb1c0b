"""From a topic's route to the queues that producers see (rocketmq.md §6.3)."""

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Generic, TypeVar

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.queue import MessageQueue, java_string_key

# The order in which Java walks a ``ConcurrentHashMap``: upstream lets it decide ties.

Key = TypeVar("Key")


def java_hash(text: str) -> int:
    """``String.hashCode`` as an unsigned 32-bit value: of UTF-16 code units.

    >>> java_hash("broker-a")
    372697965
    """
    units = text.encode("utf-16-be", "surrogatepass")
    code = 0
    for high, low in zip(units[::2], units[1::2], strict=True):
        code = (31 * code + (high << 8) + low) & 0xFFFFFFFF
    return code


class ConcurrentMapOrder(Generic[Key]):
    """Keys in the order of ``ConcurrentHashMap``'s iterators (JDK 8 and later).

    Buckets by spread hash, doubled when three quarters full as ``transfer`` does it: the last run
    of a bucket keeps its order, what stands before it is reversed. Not followed: buckets of more
    than eight keys, which become trees. Cost: O(1) for each change.
    """

    def __init__(self, hash_code: Callable[[Key], int], buckets: int) -> None:
        """An empty map.

        Args:
            hash_code: Java's ``hashCode`` of a key; its lowest 32 bits count.
            buckets: At the beginning: a power of two.
        """
        self._hash_code = hash_code
        self._buckets: list[list[Key]] = [[] for _ in range(buckets)]
        self._size = 0

    def __iter__(self) -> Iterator[Key]:
        return (key for bucket in self._buckets for key in bucket)

    def add(self, key: Key) -> None:
        """Add a key that is not there."""
        self._buckets[self._spread(key) & (len(self._buckets) - 1)].append(key)
        self._size += 1
        while self._size >= len(self._buckets) * 3 // 4:
            self._double()

    def remove(self, key: Key) -> None:
        """Remove a key that is there; the map never shrinks."""
        self._buckets[self._spread(key) & (len(self._buckets) - 1)].remove(key)
        self._size -= 1

    def _spread(self, key: Key) -> int:
        code = self._hash_code(key) & 0xFFFFFFFF
        return (code ^ (code >> 16)) & 0x7FFFFFFF

    def _double(self) -> None:
        bit = len(self._buckets)
        low, high = [], []
        for bucket in self._buckets:
            sides = [bool(self._spread(key) & bit) for key in bucket]
            run = len(bucket)
            while run > 1 and sides[run - 2] == sides[-1]:
                run -= 1
            start = max(run - 1, 0)  # of the last run
            moved: tuple[list[Key], list[Key]] = ([], [])
            for key, side in reversed(list(zip(bucket[:start], sides[:start], strict=True))):
                moved[side].append(key)
            if bucket:
                moved[sides[-1]].extend(bucket[start:])
            low.append(moved[0])
            high.append(moved[1])
        self._buckets = low + high


# A topic's route as the name server answers it (``TopicRouteData``).

PERM_READ = 4  # PermName.PERM_READ
PERM_WRITE = 2  # PermName.PERM_WRITE
MASTER_ID = 0  # MixAll.MASTER_ID


@dataclass(frozen=True, slots=True)
class QueueData:
    """A topic's configuration on one broker."""

    broker_name: str
    read_queue_nums: int
    write_queue_nums: int
    perm: int


@dataclass(frozen=True, slots=True)
class BrokerData:
    """The replicas of a broker that are registered: their ids, 0 is the master."""

    broker_name: str
    broker_ids: frozenset[int]

    @property
    def has_master(self) -> bool:
        """True if a master can be written to."""
        return MASTER_ID in self.broker_ids


@dataclass(frozen=True, slots=True)
class QueueMapping:
    """A static topic's logical queues on one broker (``TopicQueueMappingInfo``, 5.x).

    ``scope`` null: the broker has none.
    """

    scope: str | None
    total_queues: int
    epoch: int


@dataclass(frozen=True, slots=True)
class TopicRoute:
    """A topic as a client knows it; lists are in the order of the answer."""

    queue_datas: tuple[QueueData, ...]
    broker_datas: tuple[BrokerData, ...]
    order_topic_conf: str | None = None
    mappings: Mapping[str, QueueMapping] = field(default_factory=dict)
    """broker name -> its logical queues; empty: no static topic"""

    def write_queue_nums(self, broker_name: str | None, *, writable_only: bool) -> int:
        """``getQueueIdByBroker``: the broker's writeQueueNums, -1 if the route lacks it.

        Neither perm nor master is looked at; ``writable_only`` (4.9.8) asks for the WRITE bit.
        """
        for data in self.queue_datas:
            if data.broker_name == broker_name and (data.perm & PERM_WRITE or not writable_only):
                return data.write_queue_nums
        return -1


# Logical queues of a static topic (``topicRouteData2EndpointsForStaticTopic``, 5.x).

MOCK_BROKER_PREFIX = "__syslo__"  # MixAll.LOGICAL_QUEUE_MOCK_BROKER_PREFIX
GLOBAL_SCOPE = "__global__"  # MixAll.METADATA_SCOPE_GLOBAL
_DEFAULT_CAPACITY = 16  # new ConcurrentHashMap<>()


def static_queues(topic: str, mappings: Mapping[str, QueueMapping]) -> list[MessageQueue]:
    """The logical queues, in the order of upstream's map. rocketmq.md §9.3.

    A scope has as many as its broker with the most says; mappings without a scope count for
    nothing.
    """
    totals: dict[str, int] = {}
    for mapping in mappings.values():
        if mapping.scope is not None:
            total = mapping.total_queues if mapping.epoch >= -1 else 0
            totals[mapping.scope] = max(totals.get(mapping.scope, 0), total)
    order = ConcurrentMapOrder(_queue_hash, _DEFAULT_CAPACITY)
    for scope, total in totals.items():
        for queue_id in range(total):
            order.add(MessageQueue(topic, mock_broker_name(scope), queue_id))
    return list(order)


def mock_broker_name(scope: str) -> str:
    """``TopicQueueMappingUtils.getMockBrokerName``: the broker name of a scope's queues."""
    return MOCK_BROKER_PREFIX + (scope[2:] if scope == GLOBAL_SCOPE else scope)


def _queue_hash(queue: MessageQueue) -> int:
    """``MessageQueue.hashCode``."""
    code = 31 + java_hash(queue.broker_name)
    code = 31 * code + queue.queue_id
    return (31 * code + java_hash(queue.topic)) & 0xFFFFFFFF


# The queues a producer may choose from, in its order (``topicRouteData2TopicPublishInfo``).

_JAVA_INT = re.compile(r"[+-]?\d+")


class RouteError(AllocationError):
    """The route cannot be turned into a publish list; the class and message are Java's."""


def publish_list(topic: str, route: TopicRoute) -> list[MessageQueue]:
    """The publish list: what round robin walks, in its order. rocketmq.md §6.3, §9.3.

    An order configuration is taken as it stands; a static topic gives its logical queues; else
    brokers in UTF-16 order with the WRITE bit and a master, queue ids ascending.

    Raises:
        RouteError: The order configuration is malformed.
    """
    if route.order_topic_conf:
        return _ordered_queues(topic, route.order_topic_conf)
    if route.order_topic_conf is None and route.mappings:
        return sorted(static_queues(topic, route.mappings), key=lambda queue: queue.queue_id)
    masters: dict[str, bool] = {}
    for broker in route.broker_datas:
        masters.setdefault(broker.broker_name, broker.has_master)  # the first of a name decides
    return [
        MessageQueue(topic, data.broker_name, queue_id)
        for data in sorted(route.queue_datas, key=lambda data: java_string_key(data.broker_name))
        if data.perm & PERM_WRITE and masters.get(data.broker_name, False)
        for queue_id in range(data.write_queue_nums)
    ]


def is_order_topic(route: TopicRoute) -> bool:
    """True if an order configuration decides: "" counts as none."""
    return bool(route.order_topic_conf)


def _ordered_queues(topic: str, conf: str) -> list[MessageQueue]:
    """``broker:number;broker:number`` as ``String.split`` and ``Integer.parseInt`` read it."""
    queues = []
    for entry in _java_split(conf, ";"):
        items = _java_split(entry, ":")
        if len(items) < 2:
            message = f"Index 1 out of bounds for length {len(items)}"
            raise RouteError("ArrayIndexOutOfBoundsException", message)
        queues += [MessageQueue(topic, items[0], i) for i in range(_java_int(items[1]))]
    return queues


def _java_split(text: str, separator: str) -> list[str]:
    """``String.split``: empty strings at the end are dropped, "" stays one."""
    parts = text.split(separator)
    if len(parts) == 1:
        return parts
    while parts and not parts[-1]:
        parts.pop()
    return parts


def _java_int(text: str) -> int:
    number = int(text) if _JAVA_INT.fullmatch(text) else None
    if number is None or not -(2**31) <= number < 2**31:
        raise RouteError("NumberFormatException", f'For input string: "{text}"')
    return number


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
