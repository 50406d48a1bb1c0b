"""Who may hold, or reach, a queue that cannot be read: kept from before, or named in a list."""

from __future__ import annotations

from rebalance_core.explain.held_before import had_before
from rebalance_core.explain.shares import strategy_of
from rebalance_core.explain.view import Row, View, covers
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_STRATEGIES,
    PROXY_REBALANCE,
)
from rebalance_core.model.queue import MessageQueue
from rebalance_core.model.verdicts import FROZEN
from rebalance_core.strategies.config import Config


def may_be_unread(view: View, before: View | None, queue: MessageQueue, client_id: str) -> bool:
    """True if this client may hold or reach the queue, or whole broker, without reading it.

    A CONFIG list names what it likes. A suspended process, and where the epoch is frozen one that
    gets no answer, keeps what it had. All others take of mqAll.

    Args:
        view: the epoch.
        before: the epoch before; None: there is none, so nobody keeps anything.
        queue: the queue as a row names it.
        client_id: whom the row names.
    """
    processes = view.processes_of.get(client_id, ())
    if any(_lists(member, queue) for member in processes):
        return True
    if before is None or not any(_may_keep(view, member, queue.topic) for member in processes):
        return False
    return any(covers(had, queue) for had in had_before(before, queue.topic, client_id))


def _lists(member: Row, queue: MessageQueue) -> bool:
    strategy = strategy_of(member)
    return isinstance(strategy, Config) and queue in (strategy.queues or ())


def _may_keep(view: View, member: Row, topic: str) -> bool:
    if member["suspended"]:
        return True
    if view.row["status"] != FROZEN:
        return False
    if not view.readable_count(topic):  # none, or it is not known
        return True
    strategy = strategy_of(member)
    never_throws = strategy is not None and strategy.name in BROKER_STRATEGIES
    behind_proxy = member.get("rebalance_mode") == PROXY_REBALANCE
    return not (never_throws or behind_proxy or member["message_model"] == BROADCASTING)
