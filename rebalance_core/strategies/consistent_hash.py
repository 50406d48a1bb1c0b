"""CONSISTENT_HASH: queues and members on one ring."""

import codecs
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache
from hashlib import md5
from struct import unpack
from typing import Any, ClassVar

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.versions import Version
from rebalance_core.strategies.custom import HASH_FUNCTIONS, CustomHash, plugin_of
from rebalance_core.strategies.formula import Formula, Question
from rebalance_core.strategies.parameters import (
    TEXT,
    WHOLE_NUMBER,
    Parameter,
    Params,
    escape,
    text_in_text,
)
from rebalance_core.strategies.spi import (
    AllocationStrategy,
    StrategyRefusedError,
    check_every_member,
    is_member,
)
from rebalance_core.strategies.vectorised import OnRing

DEFAULT_VIRTUAL_NODES = 10  # AllocateMessageQueueConsistentHash()
MOST_VIRTUAL_NODES = 100_000
"""RocketMQ has no limit. A ring costs members x nodes MD5s, and memory in proportion."""
UTF_8 = "UTF-8"
# The differences between Java 17's GBK and Python's outside the private use area; in Java, U+2295
# becomes "?".
_JAVA_GBK = {"\u20ac": b"\xa2\xe3", "\u2641": b"\xa8\x92", "\u2295": b"?"}

Hashing = str | CustomHash
"""A user's function, or the charset in which the default function encodes its key."""


def check_charset(charset: str) -> None:
    """Raise `UsageError` for a charset that Python cannot encode."""
    try:
        "".encode(charset)
    except LookupError as error:
        raise UsageError(
            f"platform_charset {charset!r} is unknown; known are e.g. UTF-8, US-ASCII, ISO-8859-1,"
            " GBK"
        ) from error


def java_bytes(text: str, charset: str) -> bytes:
    """Return ``text.getBytes(charset)``, which 4.9 hashes: unmappable characters become ``?``.

    Equal to Java 17 for every character of UTF-8, US-ASCII, ISO-8859-1 and windows-1252, and for
    GBK outside the private use area. Unpaired UTF-16 surrogates also become ``?``.
    """
    if codecs.lookup(charset).name == "gbk" and not _JAVA_GBK.keys().isdisjoint(text):
        return b"".join(_JAVA_GBK.get(c) or c.encode(charset, "replace") for c in text)
    return text.encode(charset, "replace")


def check_virtual_nodes(number: int) -> None:
    """Raise `UsageError` for more points per member than this package computes."""
    if number > MOST_VIRTUAL_NODES:
        raise UsageError(
            f"virtual_nodes {number} is above {MOST_VIRTUAL_NODES}, the largest supported "
            f"number; RocketMQ's default is {DEFAULT_VIRTUAL_NODES}"
        )


def ring_point(key: str, hashing: Hashing) -> int:
    """Return ``ConsistentHashRouter.MD5Hash``: the first 4 bytes of the MD5, unsigned,
    big-endian.
    """
    if not isinstance(hashing, str):
        return hashing(key)
    digest = md5(java_bytes(key, hashing), usedforsecurity=False).digest()
    return int.from_bytes(digest[:4], "big")


# Most of a group's ids remain from one change to the next.
@lru_cache(maxsize=4_096)
def _node_points(client_id: str, first: int, count: int, hashing: Hashing) -> tuple[int, ...]:
    """Return the points of the id's nodes with these numbers."""
    numbers = range(first, first + count)
    if hashing != UTF_8:
        return tuple([ring_point(f"{client_id}-{number}", hashing) for number in numbers])
    begin = java_bytes(f"{client_id}-", UTF_8)  # the same for all nodes of the id
    digests = [md5(begin + b"%d" % number, usedforsecurity=False).digest() for number in numbers]
    return unpack(">" + "I12x" * count, b"".join(digests))


Ring = tuple[tuple[int, ...], tuple[str, ...]]
"""Sorted points, and the owner of each."""
RingKey = tuple[tuple[str, ...], int, Hashing]
MOST_POINTS = 1_000_000
"""The maximum number of points in all cached rings: about 20 MB."""


class _Rings:
    """Rings by their member lists; the cache is cleared at `MOST_POINTS`."""

    def __init__(self) -> None:
        self._of: dict[RingKey, Ring] = {}
        self._points = 0

    def clear(self) -> None:
        """Forget all rings."""
        self._of.clear()
        self._points = 0

    def ring(self, key: RingKey) -> Ring:
        """Return the ring for a key, which is built at the first call."""
        known = self._of.get(key)
        if known is None:
            known = _made_ring(*key)
            self._points += len(known[0])
            if self._points > MOST_POINTS:
                self.clear()
                self._points = len(known[0])
            self._of[key] = known
        return known


RINGS = _Rings()


# A ring costs members x virtual nodes MD5s. Every member of a group requests the same ring, as do
# all topics and futures with the same member list.
def build_ring(client_ids: tuple[str, ...], virtual_nodes: int, hashing: Hashing) -> Ring:
    """Return the ring's sorted points and their owners (``ConsistentHashRouter.addNode`` for each
    id).

    A repeated id numbers its additional nodes after those that it owns at that moment; on a
    collision, the later node wins.
    """
    return RINGS.ring((client_ids, virtual_nodes, hashing))


def _made_ring(client_ids: tuple[str, ...], virtual_nodes: int, hashing: Hashing) -> Ring:
    ring: dict[int, str] = {}
    seen: set[str] = set()
    for client_id in client_ids:
        existing = list(ring.values()).count(client_id) if client_id in seen else 0
        seen.add(client_id)
        ring.update(
            dict.fromkeys(_node_points(client_id, existing, virtual_nodes, hashing), client_id)
        )
    points = tuple(sorted(ring))
    return points, tuple([ring[point] for point in points])


@lru_cache(maxsize=256)
def _queue_points(queues: tuple[MessageQueue, ...], hashing: Hashing) -> tuple[int, ...]:
    return tuple([ring_point(str(queue), hashing) for queue in queues])


CHEAP_RING = 8
"""The ratio of a ring's cost per point to a member's cost per queue if the members' nearest nodes
are compared instead.
"""
_CYCLE = 1 << 64
"""More than the distance between any two points, even with a user's function."""


# A member's distances do not change when others join or leave, and a group's topics have few
# queues.
@lru_cache(maxsize=4_096)
def _distances(
    client_id: str, virtual_nodes: int, hashing: Hashing, queues: tuple[MessageQueue, ...]
) -> tuple[int, ...]:
    """Return the distance around the ring from each queue's point to the id's next node."""
    nodes = sorted(_node_points(client_id, 0, virtual_nodes, hashing))
    return tuple(
        [
            (nodes[bisect_left(nodes, point) % virtual_nodes] - point) % _CYCLE
            for point in _queue_points(queues, hashing)
        ]
    )


@lru_cache(maxsize=16)
def _owners(
    queues: tuple[MessageQueue, ...],
    client_ids: tuple[str, ...],
    virtual_nodes: int,
    hashing: Hashing,
) -> tuple[str, ...]:
    """Return the owner of each queue: the owner of the first point not below the queue's,
    cyclically.

    The result is empty if the ring is. For few queues, the members' nearest nodes are compared
    without a ring, except if an id is repeated, since the numbers of its additional nodes depend on
    the other points.
    """
    few = len(queues) <= CHEAP_RING * virtual_nodes
    if few and virtual_nodes and len(set(client_ids)) == len(client_ids):
        # of coinciding points, the later node wins
        backwards = client_ids[::-1]
        rows = [_distances(each, virtual_nodes, hashing, queues) for each in backwards]
        return tuple([backwards[column.index(min(column))] for column in zip(*rows, strict=True)])
    points, owners = build_ring(client_ids, virtual_nodes, hashing)
    if not points:
        return ()
    places = (bisect_left(points, point) for point in _queue_points(queues, hashing))
    return tuple([owners[place % len(owners)] for place in places])


def next_node(
    strategy: str,
    asked: Question,
    ring: tuple[Sequence[int], Sequence[str]],
    index: int,
    *,
    place: int,
    hashed: str,
    end: str,
    node: Callable[[str, int], str],
) -> Formula:
    """Return the formula for a ring: the queue belongs to the node at ``index``, cyclically.

    Args:
        strategy: The strategy text.
        asked: The queue.
        ring: The points, sorted, and their owners.
        index: The index of a point.
        place: The queue's own point.
        hashed: The hash function.
        end: Where the ring ends.
        node: Maps an owner and one of its points to the name of that node.
    """
    points, owners = ring
    if not points:
        empty = ("the ring is empty: no virtual nodes",)
        return Formula(strategy, empty, {"queuePoint": place})
    wraps = index == len(points)
    point, owner = points[index % len(points)], owners[index % len(points)]
    name = node(owner, point)
    where = f"no node follows{end}, so the first node is used: {point}" if wraps else f"{point}"
    lines = (
        f'queue: {hashed}("{asked.queue}") = {place}',
        f'next of {len(points)} nodes on the ring: {where} = "{name}"',
    )
    values = {
        "queuePoint": place,
        "nodePoint": point,
        "node": name,
        "nodes": len(points),
        "wraps": wraps,
    }
    return Formula(strategy, lines, values, asked.client_ids.index(owner), owner)


def _hash_function(key: str, value: Any) -> CustomHash | None:
    return None if value is None else CustomHash(plugin_of(HASH_FUNCTIONS, value))


@dataclass(frozen=True)
class ConsistentHash(AllocationStrategy):
    """``AllocateMessageQueueConsistentHash``. rocketmq.md §2.7.

    Except for collisions of ring points, a departing member moves only its own queues, and a
    joining member takes only the queues that it then owns. All processes with a duplicated id share
    one set. No queue is orphaned, except that without virtual nodes all are.

    Attributes:
        virtual_nodes: The number of ring points per listed id.
        charset: The charset in which 4.9 hashes, its JVM's default; 5.x always uses UTF-8.
        hash_function: ``customHashFunction``; None: the default function.
    """

    NAME = "CONSISTENT_HASH"
    PARAMETERS: ClassVar = {
        "virtual_nodes": WHOLE_NUMBER,
        "platform_charset": TEXT,
        "hash_function": Parameter(_hash_function, text_in_text),
    }
    JAVA_CLASS = "AllocateMessageQueueConsistentHash"
    CANDIDATE = True
    LEAGUE = tuple(f"CONSISTENT_HASH(virtual_nodes={nodes})" for nodes in (10, 100, 500))

    virtual_nodes: int = DEFAULT_VIRTUAL_NODES
    charset: str = UTF_8
    hash_function: CustomHash | None = None

    def __post_init__(self) -> None:
        if self.virtual_nodes < 0:
            raise StrategyRefusedError(
                "IllegalArgumentException", f"illegal virtualNodeCnt :{self.virtual_nodes}"
            )
        check_virtual_nodes(self.virtual_nodes)
        check_charset(self.charset)

    @classmethod
    def make(cls, params: Params, version: Version) -> "ConsistentHash":
        """Return the strategy; only 4.9 uses the charset."""
        return cls(
            params.get("virtual_nodes", DEFAULT_VIRTUAL_NODES),
            params.get("platform_charset", UTF_8) if version.is_v4 else UTF_8,
            params.get("hash_function"),
        )

    @property
    def hashing(self) -> Hashing:
        """The function that computes the points of the ring."""
        return self.hash_function or self.charset

    @property
    def throws_for_all(self) -> bool:
        """Whether only an empty argument or a user's function makes it throw."""
        return self.hash_function is None

    def allocate(
        self, client_id: str, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> list[MessageQueue]:
        """Return the queues whose next point on the ring belongs to ``client_id``."""
        if not is_member(client_id, queues, client_ids):
            return []
        owners = _owners(tuple(queues), tuple(client_ids), self.virtual_nodes, self.hashing)
        return [queue for queue, owner in zip(queues, owners, strict=False) if owner == client_id]

    def allocate_all(
        self, queues: Sequence[MessageQueue], client_ids: Sequence[str]
    ) -> dict[str, list[MessageQueue]]:
        """Return `allocate` of every distinct member in one sweep."""
        check_every_member(queues, client_ids)
        shares: dict[str, list[MessageQueue]] = {client_id: [] for client_id in client_ids}
        owners = _owners(tuple(queues), tuple(client_ids), self.virtual_nodes, self.hashing)
        for queue, owner in zip(queues, owners, strict=False):
            shares[owner].append(queue)
        return shares

    def vectorised(self) -> OnRing | None:
        """Return the ring, or None for a user's hash function, which may throw."""
        return OnRing(self._process_points, self._point) if self.hash_function is None else None

    def _process_points(self, client_id: str, process: int) -> tuple[int, ...]:
        """Return the points of an id's first process, or of an additional one, whose nodes continue
        the numbering.
        """
        first = process * self.virtual_nodes
        return _node_points(client_id, first, self.virtual_nodes, self.hashing)

    def _point(self, key: object) -> int:
        return ring_point(str(key), self.hashing)

    def formula(self, asked: Question) -> Formula:
        """Return the points of the queue and of the node that owns it."""
        client_ids, hashing = asked.client_ids, self.hashing
        ring = build_ring(tuple(client_ids), self.virtual_nodes, hashing)
        place = self._point(asked.queue)

        def node(owner: str, point: int) -> str:
            names = (f"{owner}-{n}" for n in range(self.virtual_nodes * client_ids.count(owner)))
            return next(name for name in names if self._point(name) == point)

        function = "first 4 bytes of md5" if isinstance(hashing, str) else str(hashing)
        return next_node(
            str(self),
            asked,
            ring,
            bisect_left(ring[0], place),
            place=place,
            hashed=function,
            end=" up to 2^32" if isinstance(hashing, str) else "",
            node=node,
        )

    def settings(self) -> list[tuple[str, str]]:
        """Return the (key, escaped value) pairs of the strategy text."""
        settings = [("virtual_nodes", str(self.virtual_nodes))]
        if self.charset != UTF_8:
            settings.append(("platform_charset", escape(self.charset)))
        if self.hash_function is not None:
            settings.append(("hash_function", str(self.hash_function)))
        return settings
