"""Movement and balance per epoch, for each topic and for the whole group, without retry topics."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias, cast

from rebalance_core.contracts.ledger import GROUP_METRICS
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.model.queue import MessageQueue, is_retry_topic
from rebalance_core.protocol.minimum_moves import minimum_moves
from rebalance_core.replay.changes import ADD, VOLUNTARY, OwnerChange
from rebalance_core.replay.history import Epoch
from rebalance_core.replay.pop_reach import client_reaches
from rebalance_core.replay.settle import Holdings

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import GroupMetricsBegun

Held: TypeAlias = dict[str, set[MessageQueue]]
"""The queues by client id."""


def metric_rows(epoch: Epoch, changes: list[OwnerChange]) -> list[GroupMetricsBegun]:
    """Return one row per topic of the group and, with topic None, one row for the whole group."""
    topics = [topic for topic in epoch.readable if not is_retry_topic(topic)]
    before, after = _held(epoch.before), _held(epoch.holdings)
    present = {client_id for client_id, _ in epoch.members}
    minima = {topic: _minimum(epoch, topic, present, before.get(topic, {})) for topic in topics}
    unknown = _of_unknown_share(epoch)
    known_minima = [minimum for minimum in minima.values() if minimum is not None]
    total = sum(known_minima) if topics and len(known_minima) == len(minima) else None
    scopes: list[tuple[str | None, list[str], int | None]] = [
        *((topic, [topic], minima[topic]) for topic in topics),
        (None, topics, total),
    ]
    sharing = frozenset(
        client_id for client_id, reach in client_reaches(epoch).items() if reach.queues
    )
    added: dict[str, list[OwnerChange]] = {}
    for change in changes:
        if change.action == ADD:
            added.setdefault(change.queue.topic, []).append(change)
    comparable = epoch.all_known and not epoch.doubtful_before
    rows = []
    for topic, scope, minimum in scopes:
        was, now = ([held.get(t, {}) for t in scope] for held in (before, after))
        rows.append(
            {"epoch": epoch.number, "topic": topic}
            | _moves([change for t in scope for change in added.get(t, ())], minimum)
            | {"stickiness": _stickiness(was, now) if comparable else None}
            | _loads(epoch, scope, now, unknown, sharing if topic is None else frozenset())
        )
    return [cast("GroupMetricsBegun", GROUP_METRICS.with_derived(row)) for row in rows]


def _moves(added: list[OwnerChange], minimum: int | None) -> dict[str, object]:
    return {
        "moved": len({change.queue for change in added}),
        "voluntary_moves": len({c.queue for c in added if c.kind == VOLUNTARY}),
        "minimum_moves": minimum,
    }


def _of_unknown_share(epoch: Epoch) -> set[str]:
    """Return client ids of members whose queues are unknown."""
    unknown = {client_id for client_id, _ in epoch.members.keys() & epoch.doubtful.keys()}
    for kind in epoch.view.kinds:
        if not kind.example.share_known:
            unknown.update(client_id for client_id, _ in kind.keys)
    return unknown


def _loads(
    epoch: Epoch, topics: list[str], held: list[Held], unknown: set[str], sharing: frozenset[str]
) -> dict[str, object]:
    """Return the columns about queues per client; ``sharing`` clients are busy with shared queues.

    For clients in ``unknown``, it is not known whether they are idle or have the fewest queues.
    """
    scope = set(topics)
    queues = sum(len(epoch.readable[topic]) for topic in topics)
    subscribed = (kind for kind in epoch.view.kinds if kind.example.subscriptions & scope)
    clients = {client_id for kind in subscribed for client_id, _ in kind.keys}
    loads: dict[str, int] = {}
    for of_topic in held:
        for client_id in of_topic.keys() & clients:
            loads[client_id] = loads.get(client_id, 0) + len(of_topic[client_id])
    without = clients - loads.keys() - unknown
    most = max(loads.values(), default=0)
    least = 0 if without else min(loads.values(), default=0)
    return {
        "queues": queues,
        "members": len(clients),
        "max_queues": most,
        "min_queues": least,
        "peak_ratio": most * len(clients) / queues
        if queues and clients and epoch.all_known
        else None,
        "idle_members": len(without - sharing),
    }


def _held(holdings: Holdings) -> dict[str, Held]:
    """Return, for each topic, the queues held by any process of each client id."""
    held: dict[str, Held] = {}
    for (client_id, _), queues in holdings.items():
        for queue in queues:
            held.setdefault(queue.topic, {}).setdefault(client_id, set()).add(queue)
    return held


def _minimum(epoch: Epoch, topic: str, present: set[str], before: Held) -> int | None:
    """Return the minimum number of moves to balance, or None if balance is unreachable or not the
    group's aim.
    """
    members = [kind.example for kind in epoch.view.kinds]
    if (
        not members
        or topic in epoch.frozen_topics
        or any(m.message_model == BROADCASTING or not m.share_known for m in members)
        or any(
            queue.topic == topic
            for doubtful in (epoch.doubtful_before, epoch.doubtful)
            for queues in doubtful.values()
            for queue in queues
        )
        or len({m.subscriptions for m in members}) > 1
        or any(queue.broker_name in epoch.view.lockless for queue in epoch.readable[topic])
    ):
        return None
    queues = set(epoch.readable[topic])
    kept = [len(before[client_id] & queues) for client_id in before.keys() & present]
    return minimum_moves(len(queues), len(present), kept)


def _stickiness(before: list[Held], after: list[Held]) -> float | None:
    """Return the share of queues that keep a holder; both arguments have the topics in order."""
    held = kept = 0
    for was, now in zip(before, after, strict=True):
        held += len(set().union(*was.values()))
        kept += len(
            set().union(*(queues & now.get(client_id, set()) for client_id, queues in was.items()))
        )
    return kept / held if held else None
