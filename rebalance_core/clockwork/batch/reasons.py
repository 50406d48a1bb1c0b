"""Which groups are left to the plain loop, and why."""

from __future__ import annotations

from itertools import pairwise

from rebalance_core.clockwork.batch.mixed.state import is_mixed
from rebalance_core.clockwork.options import SECOND_US
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.stretches import stretches_of
from rebalance_core.model.group_settings import (
    BROADCASTING,
    BROKER_STRATEGIES,
    PUSH,
    GroupSettings,
)
from rebalance_core.replay.settle import CONFIG_STRATEGY
from rebalance_core.replay.shared_topics import Member

REGULAR = "REGULAR"
"""The futures are played at once."""
MIXED_SUBSCRIPTIONS = "MIXED_SUBSCRIPTIONS"
"""A member of an orderly group changes its topics, or somebody or a route changes unseen."""
EDITED_MEMBER = "EDITED_MEMBER"
"""A process joins again in place, with other settings."""
SUSPENDED = "SUSPENDED"
"""A suspended client's clock of passes is another."""
PARTIAL_EVENTS = "PARTIAL_EVENTS"
"""One broker alone saw a process come or go."""
HOSTS_LOST = "HOSTS_LOST"
"""A heartbeat waits for so many lost hosts that other timers starve (rocketmq.md §6.1)."""
MOST_LOST = 9
"""Three seconds each: less than there are between a heartbeat and the next route poll."""
BROADCASTING_OUTAGE = "BROADCASTING_OUTAGE"
"""A BROADCASTING member finds no start offset on a broker that is down, so it is unbalanced."""
CONFIG = "CONFIG"
"""Shares that do not keep to the topic."""

BROKER_DIVIDES = "BROKER_DIVIDES"
"""Brokers divide for some member, by the routes that they poll themselves (rocketmq.md §2.8)."""
STOPPED = "STOPPED"
"""Somebody knows when processes stood still."""


def reason_of(script: Script) -> str:
    """`REGULAR`, or why every future of the script goes through the plain loop."""
    lives = script.lives
    members = [[member for _, member in life.states] for life in lives]
    changes = any(len({member.subscriptions for member in each}) > 1 for each in members)
    if is_mixed(script) and ((takes_locks(script) and changes) or _changes_unseen(script)):
        return MIXED_SUBSCRIPTIONS
    if any(
        (a.strategy, a.version, a.message_model) != (b.strategy, b.version, b.message_model)
        for each in members
        for a, b in pairwise(each)
    ):
        return EDITED_MEMBER
    if any(_has_a_broker_divide(member, script.settings) for each in members for member in each):
        return BROKER_DIVIDES
    if any(member.suspended for each in members for member in each):
        return SUSPENDED
    if any(life.sightings or life.only_broker is not None for life in lives):
        return PARTIAL_EVENTS
    broadcasts = any(member.message_model == BROADCASTING for each in members for member in each)
    if broadcasts and (script.lockless or any(life.down for life in script.broker_lives)):
        return BROADCASTING_OUTAGE
    if script.known is not None and script.known.stops:
        return STOPPED
    if len({life.broker for life in script.broker_lives if life.host_lost}) > MOST_LOST:
        return HOSTS_LOST
    if any(member.strategy.startswith(CONFIG_STRATEGY) for each in members for member in each):
        return CONFIG
    return REGULAR


def takes_locks(script: Script) -> bool:
    """The group's members take order locks."""
    its = script.settings
    return its.ordered and its.consumer_type == PUSH


def _has_a_broker_divide(member: Member, settings: GroupSettings) -> bool:
    """It asks brokers, and they know its strategy."""
    return member.asks_broker(settings) and member.strategy in BROKER_STRATEGIES


def _changes_unseen(script: Script) -> bool:
    """Somebody comes, or changes topics, or a route does, while nothing is followed.

    Who is only observed later, has come at a time that nobody knows.
    """
    observed_us = [life.joined.event_us for life in script.lives if life.observed]
    if len(set(observed_us)) > 1:
        return True
    stretches = list(stretches_of(script))
    moments = [life.joined for life in script.lives if not life.observed]
    moments += [moment for life in script.lives for moment, _ in life.states[1:]]
    moments += [each.moment for versions in script.routes for each in versions[1:] if each.moment]
    return not all(
        any(
            each.begin_us <= moment.event_us
            and moment.event_us + SECOND_US * moment.to_the_second < each.end_us
            for each in stretches
        )
        for moment in moments
    )
