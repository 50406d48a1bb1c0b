"""Movement beside balance, per epoch, per topic and for the whole group; no retry topics."""

from __future__ import annotations

from typing import Any, TypeAlias

from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.protocol.routes import minimum_moves
from rebalance_core.replay.changes import ADD, VOLUNTARY, Change
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.pop_reach import client_reaches
from rebalance_core.replay.settle import Holdings

Row = dict[str, Any]
Held: TypeAlias = dict[str, set[MessageQueue]]
"""Queues by client id."""


def metric_rows(epoch: Epoch, changes: list[Change]) -> list[Row]:
    """One row per topic of the group and, with topic None, one for the whole group."""
    topics = [topic for topic in epoch.readable if not is_retry_topic(topic)]
    before, after = _held(epoch.before), _held(epoch.holdings)
    minima = {topic: _minimum(epoch, topic, before.get(topic, {})) for topic in topics}
    known = [minimum for minimum in minima.values() if minimum is not None]
    total = sum(known) if topics and len(known) == len(minima) else None
    scopes: list[tuple[str | None, list[str], int | None]] = [
        *((topic, [topic], minima[topic]) for topic in topics),
        (None, topics, total),
    ]
    sharing = frozenset(client_id for client_id, reach in client_reaches(epoch).items()
                        if reach.queues)  # fmt: skip
    added: dict[str, list[Change]] = {}
    for change in changes:
        if change.action == ADD:
            added.setdefault(change.queue.topic, []).append(change)
    rows = []
    for topic, scope, minimum in scopes:
        was, now = ([held.get(t, {}) for t in scope] for held in (before, after))
        rows.append(
            {"epoch": epoch.number, "topic": topic}
            | _moves([change for t in scope for change in added.get(t, ())], minimum)
            | {"stickiness": _stickiness(was, now) if epoch.all_known else None}
            | _loads(epoch, scope, now, sharing if topic is None else frozenset())
        )
    return rows


def _moves(added: list[Change], minimum: int | None) -> Row:
    moved = len({change.queue for change in added})
    return {
        "moved": moved,
        "voluntary_moves": len({c.queue for c in added if c.kind == VOLUNTARY}),
        "minimum_moves": minimum,
        "amplification": moved / minimum if minimum else None,
    }


def _loads(epoch: Epoch, topics: list[str], held: list[Held], sharing: frozenset[str]) -> Row:
    """Queues by client; ``sharing``: clients that shared queues keep busy."""
    scope = set(topics)
    queues = sum(len(epoch.readable[topic]) for topic in topics)
    of_client = {
        client_id: sum(len(of_topic.get(client_id, ())) for of_topic in held)
        for client_id in {m.client_id for m in epoch.members.values() if m.subscriptions & scope}
    }
    loads = list(of_client.values())
    most = max(loads, default=0)
    return {
        "queues": queues,
        "members": len(loads),
        "max_queues": most,
        "min_queues": min(loads, default=0),
        "peak_ratio": most * len(loads) / queues if queues and loads and epoch.all_known else None,
        "idle_members": sum(not load and c not in sharing for c, load in of_client.items()),
    }


def _held(holdings: Holdings) -> dict[str, Held]:
    """By topic: queues that some process of each client id holds."""
    held: dict[str, Held] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues:
            held.setdefault(queue.topic, {}).setdefault(client_id, set()).add(queue)
    return held


def _minimum(epoch: Epoch, topic: str, before: Held) -> int | None:
    """Null where a balanced result is not what the group is after, or cannot reach."""
    members = epoch.members.values()
    if (
        not members
        or topic in epoch.frozen_topics
        or any(m.message_model == BROADCASTING or not m.subscriptions_known for m in members)
        or len({m.subscriptions for m in members}) > 1
        or any(queue.broker_name in epoch.view.lockless for queue in epoch.readable[topic])
    ):
        return None
    queues = set(epoch.readable[topic])
    survivors = {member.client_id for member in members}
    kept = [len(before.get(client_id, set()) & queues) for client_id in survivors]
    return minimum_moves(len(queues), len(survivors), kept)


def _stickiness(before: list[Held], after: list[Held]) -> float | None:
    """Share of the queues held before that keep a holder; both by topic, in one order."""
    held = kept = 0
    for was, now in zip(before, after, strict=True):
        held += len(set().union(*was.values()))
        kept += len(set().union(*(queues & now.get(client_id, set())
                                  for client_id, queues in was.items())))  # fmt: skip
    return kept / held if held else None
