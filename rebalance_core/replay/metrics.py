"""Movement beside balance, per epoch, per topic and for the whole group; no retry topics."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.replay.changes import ADD, VOLUNTARY, Change
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.settle import Holdings
from rebalance_core.rules.minimum_moves import minimum_moves

Row = dict[str, Any]


def metric_rows(epoch: Epoch, changes: list[Change]) -> list[Row]:
    """One row per topic of the group and, with topic None, one for the whole group."""
    topics = [topic for topic in epoch.readable if not is_retry_topic(topic)]
    minima = {topic: _minimum(epoch, topic) for topic in topics}
    rows = [_row(epoch, changes, topic, [topic], minima[topic]) for topic in topics]
    known = [minimum for minimum in minima.values() if minimum is not None]
    total = sum(known) if topics and len(known) == len(minima) else None
    return [*rows, _row(epoch, changes, None, topics, total)]


def _row(
    epoch: Epoch, changes: list[Change], topic: str | None, topics: list[str], minimum: int | None
) -> Row:
    scope = set(topics)
    queues = sum(len(epoch.readable[t]) for t in topics)
    added = [change for change in changes if change.action == ADD and change.queue.topic in scope]
    moved = len({change.queue for change in added})
    held = _held(epoch.holdings, scope)
    loads = [
        len(held.get(client_id, ()))
        for client_id in {m.client_id for m in epoch.members.values() if m.subscriptions & scope}
    ]
    most = max(loads, default=0)
    return {
        "epoch": epoch.number,
        "topic": topic,
        "queues": queues,
        "members": len(loads),
        "moved": moved,
        "voluntary_moves": len({c.queue for c in added if c.kind == VOLUNTARY}),
        "minimum_moves": minimum,
        "amplification": moved / minimum if minimum else None,
        "stickiness": _stickiness(epoch, scope),
        "max_queues": most,
        "min_queues": min(loads, default=0),
        "peak_ratio": most * len(loads) / queues if queues and loads else None,
        "idle_members": loads.count(0),
    }


def _held(holdings: Holdings, topics: set[str]) -> dict[str, set[MessageQueue]]:
    """Queues of these topics that some process of each id holds."""
    held: dict[str, set[MessageQueue]] = {}
    for (client_id, _), queues in holdings.items():
        held.setdefault(client_id, set()).update(q for q in queues if q.topic in topics)
    return held


def _minimum(epoch: Epoch, topic: str) -> int | None:
    """Null where a balanced result is not what the group is after, or cannot reach."""
    members = epoch.members.values()
    if (
        not members
        or topic in epoch.frozen_topics
        or any(m.message_model == BROADCASTING for m in members)
        or len({m.subscriptions for m in members}) > 1
    ):
        return None
    queues = set(epoch.readable[topic])
    survivors = {member.client_id for member in members}
    before = _held(epoch.before, {topic})
    kept = [len(before.get(client_id, set()) & queues) for client_id in survivors]
    return minimum_moves(len(queues), len(survivors), kept)


def _stickiness(epoch: Epoch, topics: set[str]) -> float | None:
    """Share of the queues held before that keep a holder."""
    before = _pairs(epoch.before, topics)
    held = {queue for _, queue in before}
    kept = {queue for _, queue in before & _pairs(epoch.holdings, topics)}
    return len(kept) / len(held) if held else None


def _pairs(holdings: Holdings, topics: Iterable[str]) -> set[tuple[str, MessageQueue]]:
    return {
        (client_id, queue)
        for (client_id, _), queues in holdings.items()
        for queue in queues
        if queue.topic in topics
    }
