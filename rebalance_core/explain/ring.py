"""CONSISTENT_HASH in numbers: the queue's point on the ring, and the next node."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from typing import Any

from rebalance_core.model.queue import MessageQueue
from rebalance_core.strategies.consistent_hash import ConsistentHash, build_ring, ring_point


def ring_formula(
    strategy: ConsistentHash, queue: MessageQueue, client_ids: Sequence[str]
) -> tuple[tuple[str, ...], dict[str, Any], str | None]:
    """The lines, the numbers, and the owner; None if the ring is empty."""
    points, owners = build_ring(tuple(client_ids), strategy.virtual_nodes, strategy.charset)
    place = ring_point(str(queue), strategy.charset)
    if not points:
        return ("the ring is empty: no virtual nodes",), {"queuePoint": place}, None
    index = bisect_left(points, place)
    wraps = index == len(points)
    point, owner = points[index % len(points)], owners[index % len(points)]
    node = _node_number(strategy, owner, point, client_ids)
    where = f"no node follows up to 2^32, so the first one: {point}" if wraps else f"{point}"
    lines = (
        f'queue: first 4 bytes of md5("{queue}") = {place}',
        f'next of {len(points)} nodes on the ring: {where} = "{owner}-{node}"',
    )
    values = {
        "queuePoint": place, "nodePoint": point, "node": f"{owner}-{node}", "nodes": len(points),
        "wraps": wraps,
    }  # fmt: skip
    return lines, values, owner


def _node_number(
    strategy: ConsistentHash, owner: str, point: int, client_ids: Sequence[str]
) -> int:
    """Which of the owner's virtual nodes is at that point."""
    numbers = range(strategy.virtual_nodes * client_ids.count(owner))
    return next(n for n in numbers if ring_point(f"{owner}-{n}", strategy.charset) == point)
