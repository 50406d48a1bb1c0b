"""The settled state is what one pass of every member leaves, each on the current view.

`replay.settle` and `run_pass` were written apart: the vectors prove the pass, and this holds the
replay to it. Two rules of the ledger are not the pass's (docs/semantics.md) and are left out here:
CONFIG holds its list on a topic without a route, too, and BROADCASTING freezes on a route without a
readable queue, where a client drops everything.
"""

from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import HealthCheck, given, settings

from rebalance_core.client.broker_answers import BrokerAnswers, QueueAnswers
from rebalance_core.client.pass_record import PassView
from rebalance_core.client.process import ProcessQueue, start_process
from rebalance_core.client.rebalance_pass import run_pass
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, GroupSettings
from rebalance_core.model.queue import MessageQueue, java_string_key
from rebalance_core.protocol.query_assignment import asks_broker
from rebalance_core.replay.history import Epoch, GroupHistory, replay_history
from rebalance_core.replay.member import Member, ProcessKey
from rebalance_core.replay.topic_shares import CONFIG_STRATEGY, strategy_key
from rebalance_core.strategies import AllocationStrategy
from rebalance_core.strategies.config import Config
from tests.unit.replay.histories import strategy_for
from tests.unit.replay.test_random_histories import histories

Route = tuple[MessageQueue, ...] | None
RANDOM = settings(
    max_examples=250, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)


@pytest.mark.parametrize("unreadable", [None, ()], ids=["no route", "no readable queue"])
@RANDOM
@given(group=histories())
def test_the_settled_state_is_one_pass_of_every_member(
    unreadable: Route, group: GroupHistory
) -> None:
    pulled: dict[ProcessKey, frozenset[MessageQueue]] = {}
    for epoch in replay_history(group, strategy_for).epochs:
        for key, member in epoch.members.items():
            before = epoch.before.get(key, frozenset()) | pulled.get(key, frozenset())
            if member.suspended:
                assert epoch.holdings[key] <= before  # runs no pass
                continue
            differ = topics_that_differ(epoch, member, unreadable)
            held = after_one_pass(epoch, member, group.settings, unreadable, before)
            expected = {queue for queue in epoch.holdings[key] if queue.topic not in differ}
            assert {queue for queue in held if queue.topic not in differ} == expected, member
        pulled = {key: taken.pulled for key, taken in epoch.taken.items()}


def topics_that_differ(epoch: Epoch, member: Member, unreadable: Route) -> set[str]:
    """The member's topics on which the ledger has a rule of its own."""
    if unreadable is None:
        own_rule = member.strategy.startswith(CONFIG_STRATEGY)
    else:
        own_rule = member.message_model == BROADCASTING
    return {t for t in topics_of(epoch, member) if own_rule and not epoch.readable[t]}


def topics_of(epoch: Epoch, member: Member) -> list[str]:
    """What the member asks for itself, in the order of its pass."""
    topics = {topic for topic in epoch.readable if member.subscribes(topic)}
    return sorted(topics, key=java_string_key)


def after_one_pass(
    epoch: Epoch,
    member: Member,
    group: GroupSettings,
    unreadable: Route,
    before: frozenset[MessageQueue],
) -> set[MessageQueue]:
    """What the member holds, who pulled this before, once it has run a pass."""
    own = replace(group, client_version=member.version, message_model=member.message_model)
    strategy = strategy_for(strategy_key(member))
    process = start_process(member.client_id, own, strategy)
    process.table = {queue: ProcessQueue(0) for queue in before}
    view = view_of(epoch, member, strategy, group, unreadable)
    run_pass(process, view, answers(epoch, strategy, before))
    return {queue for queue, state in process.table.items() if not state.dropped}


def view_of(
    epoch: Epoch,
    member: Member,
    strategy: AllocationStrategy,
    group: GroupSettings,
    unreadable: Route,
) -> PassView:
    topics = topics_of(epoch, member)
    # A broker answers null to a strategy that it does not know, as if it had no member list.
    null = strategy.name not in BROKER_STRATEGIES and asks_broker(
        member.rebalance_mode,
        group.consumer_type,
        member.message_model,
        group.ordered,
        member.version,
    )
    client_ids = tuple(client_id for client_id, _ in epoch.members)
    return PassView(
        {topic: tuple(epoch.readable[topic]) or unreadable for topic in topics},
        dict.fromkeys(topics, None if null else client_ids),
    )


def answers(
    epoch: Epoch, strategy: AllocationStrategy, before: Iterable[MessageQueue]
) -> BrokerAnswers:
    """Every queue can be started on and, where a master is, locked."""
    queues: list[Iterable[MessageQueue]] = [*epoch.readable.values(), before]
    if isinstance(strategy, Config):
        queues.append(strategy.queues or ())
    known = QueueAnswers(committed=5, max_offset=9, by_timestamp=7)
    return BrokerAnswers(
        {queue: known for some in queues for queue in some}, masters_down=epoch.view.lockless
    )
