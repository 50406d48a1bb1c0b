"""Who holds what once every member has seen the current view: one pass of each member."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from rebalance_core.model.errors import AllocationError
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_state import Member, ProcessKey
from rebalance_core.replay.group_view import GroupView
from rebalance_core.strategies import AllocationStrategy

CONFIG_STRATEGY = "CONFIG"

Holdings: TypeAlias = Mapping[ProcessKey, frozenset[MessageQueue]]
StrategyKey: TypeAlias = tuple[str, str]


@dataclass(frozen=True, slots=True)
class Settled:
    """The holdings of every live process, and the topics that some member could not allocate."""

    holdings: dict[ProcessKey, frozenset[MessageQueue]]
    frozen_topics: frozenset[str]


def strategy_key(member: Member) -> StrategyKey:
    """Strategies differ by text and, for the hash of 4.9, by client version."""
    return member.strategy, member.version


def settle(
    state: GroupView, before: Holdings, strategies: Mapping[StrategyKey, AllocationStrategy]
) -> Settled:
    """Run one pass of every member on the current view.

    A queue whose order lock nobody gives stays with who holds it, and has no new owner.

    Args:
        state: the group as its members see it now.
        before: what each process held until now; processes that are gone are ignored.
        strategies: one for the `strategy_key` of each member.
    """
    client_ids = state.sorted_client_ids()
    holdings: dict[ProcessKey, frozenset[MessageQueue]] = {}
    frozen: set[str] = set()
    for key, member in state.members.items():
        held = before.get(key, frozenset())
        if state.shared_topics:
            held = frozenset(queue for queue in held if queue.topic not in state.shared_topics)
        taken: set[MessageQueue] = set()
        for topic in state.topics_of(member):
            if topic in state.shared_topics:
                continue
            share = _share(state, member, topic, state.readable[topic], client_ids, strategies)
            if share is None:
                frozen.add(topic)
                share = [queue for queue in held if queue.topic == topic]
            if state.lockless and member.message_model != BROADCASTING:
                share = [q for q in share if q in held or q.broker_name not in state.lockless]
            taken.update(share)
        # A suspended member runs no pass, but everybody else goes on counting it.
        holdings[key] = held if member.suspended else frozenset(taken)
    return Settled(holdings, frozenset(frozen))


def _share(
    state: GroupView,
    member: Member,
    topic: str,
    queues: Sequence[MessageQueue],
    client_ids: list[str],
    strategies: Mapping[StrategyKey, AllocationStrategy],
) -> Sequence[MessageQueue] | None:
    """One member's share of one topic; None when the pass leaves the topic as it is."""
    if member.message_model == BROADCASTING:
        return queues or None
    strategy = strategies[strategy_key(member)]
    if strategy.name not in BROKER_STRATEGIES and member.asks_broker(state.settings):
        return None
    if strategy.name == CONFIG_STRATEGY:
        # The list comes back whole for every topic; the other topics' passes take their own part.
        listed = strategy.allocate(member.client_id, queues, client_ids)
        return [queue for queue in listed if queue.topic == topic]
    if not queues:
        return None
    try:
        return strategy.allocate(member.client_id, queues, client_ids)
    except AllocationError:
        return None
