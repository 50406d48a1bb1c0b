"""Which groups are left to the reference engine, and why."""

from collections.abc import Callable, Iterator
from itertools import pairwise

from rebalance_core.model.client_profile import DROP, KEPT
from rebalance_core.model.events import BATCHED
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, PUSH
from rebalance_core.model.intervals import DEFAULT_INTERVALS
from rebalance_core.replay.member import Member
from rebalance_core.replay.topic_shares import CONFIG_STRATEGY
from rebalance_core.timing.group_timeline import Life, Script
from rebalance_core.timing.options import SECOND_US
from rebalance_core.timing.shared_instances import wakes_by_passes
from rebalance_core.timing.stretches import stretches_of
from rebalance_core.timing.vectorized.mixed_state import is_mixed

REGULAR = "REGULAR"
"""The futures are played at once."""
MIXED_SUBSCRIPTIONS = "MIXED_SUBSCRIPTIONS"
"""A member of an orderly group changes its topics, or a member or a route changes unseen."""
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

SHARED_CLIENTS = "SHARED_CLIENTS"
"""Members share clients with groups whose passes wake these, or subscribe differently."""

BROKER_DIVIDES = "BROKER_DIVIDES"
"""Brokers divide for some member, by the routes that they poll themselves (rocketmq.md §2.8)."""
STOPPED = "STOPPED"
"""A log shows when processes stood still."""


NOTICES_BATCHED = "NOTICES_BATCHED"
"""A broker gathers its notices (realTimeNotifyConsumerChange=false)."""


LOCKS_KEPT = "LOCKS_KEPT"
"""A member keeps the order locks of what it gives up."""
ENDS_PASS = "ENDS_PASS"
"""A topic without an answer ends the pass of a member that has several."""
LETS_GO = "LETS_GO"
"""A broker that comes back knows no member, and one of them then lets go of what it holds."""


def _members(script: Script) -> Iterator[Member]:
    """Every process of the group, in each of its states."""
    return (member for life in script.lives for _, member in life.states)


def takes_locks(script: Script) -> bool:
    """The group's members take order locks."""
    settings = script.settings
    return settings.ordered and settings.consumer_type == PUSH


def _mixes_subscriptions(script: Script) -> bool:
    """Subscriptions differ, and change in an orderly group or while nothing is followed."""
    if not is_mixed(script):
        return False
    return (takes_locks(script) and _changes_topics(script)) or _changes_unseen(script)


def _changes_topics(script: Script) -> bool:
    """A process does not subscribe the same topics all its life."""
    topics_of_lives = ({member.subscriptions for _, member in life.states} for life in script.lives)
    return any(len(topics) > 1 for topics in topics_of_lives)


def _changes_unseen(script: Script) -> bool:
    """A member comes, or changes topics, or a route does, while nothing is followed.

    Who is only observed later, came at an unknown time.
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


def _shares_clients(script: Script) -> bool:
    """Other groups share its clients, and wake their passes or meet different subscriptions."""
    if not script.mates:
        return False
    return is_mixed(script) or any(wakes_by_passes(mate) for mate in script.mates)


def _edits_a_member(script: Script) -> bool:
    """A process goes on with another strategy, version, message model or profile."""
    return any(
        (before.strategy, before.version, before.message_model, before.profile)
        != (after.strategy, after.version, after.message_model, after.profile)
        for life in script.lives
        for (_, before), (_, after) in pairwise(life.states)
    )


def _has_brokers_divide(script: Script) -> bool:
    """A member asks brokers, and they know its strategy."""
    return any(
        member.asks_broker(script.settings) and member.strategy in BROKER_STRATEGIES
        for member in _members(script)
    )


def _batches_notices(script: Script) -> bool:
    """A broker gathers its notices at some time."""
    return any(switch.mode == BATCHED for switch in script.notices)


def _is_suspended(script: Script) -> bool:
    """A member is suspended at some time."""
    return any(member.suspended for member in _members(script))


def _has_partial_events(script: Script) -> bool:
    """One broker alone saw a process come or go."""
    return any(life.sightings or life.only_broker is not None for life in script.lives)


def _broadcasts_through_outage(script: Script) -> bool:
    """A member is BROADCASTING, and a broker or its master goes down."""
    if not any(member.message_model == BROADCASTING for member in _members(script)):
        return False
    return bool(script.lockless) or any(life.down for life in script.broker_lives)


def _knows_stops(script: Script) -> bool:
    """The watcher of the cluster knows when processes stood still."""
    return script.known is not None and bool(script.known.stops)


def _loses_many_hosts(script: Script) -> bool:
    """More hosts are lost than its clients' timers leave time to wait for."""
    lost = {life.broker for life in script.broker_lives if life.host_lost}
    bearable = MOST_LOST if all(_ticks_as_usual(life) for life in script.lives) else 0
    return len(lost) > bearable


def _ticks_as_usual(life: Life) -> bool:
    """Its polls and heartbeats are those that `MOST_LOST` counts on."""
    usual, intervals = DEFAULT_INTERVALS, life.intervals
    return (intervals.poll_name_server_interval_ms, intervals.heartbeat_broker_interval_ms) == (
        usual.poll_name_server_interval_ms,
        usual.heartbeat_broker_interval_ms,
    )


def _divides_by_config(script: Script) -> bool:
    """The strategy of a member is CONFIG."""
    return any(member.strategy.startswith(CONFIG_STRATEGY) for member in _members(script))


def _lets_go(script: Script) -> bool:
    """A broker comes back, and some member drops its queues when a member list is empty."""
    if not any(life.up is not None for life in script.broker_lives):
        return False
    return any(member.profile.empty_list == DROP for member in _members(script))


def _keeps_locks(script: Script) -> bool:
    """The group is orderly, and some member keeps the locks of queues that it gives up."""
    return takes_locks(script) and any(member.profile.locks == KEPT for member in _members(script))


def _ends_pass(script: Script) -> bool:
    """Some member has several topics and ends its pass at the first without an answer."""
    return any(
        member.profile.ends_pass and len(member.subscriptions) > 1 for member in _members(script)
    )


_APPLIES: tuple[tuple[str, Callable[[Script], bool]], ...] = (
    (MIXED_SUBSCRIPTIONS, _mixes_subscriptions),
    (SHARED_CLIENTS, _shares_clients),
    (EDITED_MEMBER, _edits_a_member),
    (BROKER_DIVIDES, _has_brokers_divide),
    (NOTICES_BATCHED, _batches_notices),
    (SUSPENDED, _is_suspended),
    (PARTIAL_EVENTS, _has_partial_events),
    (BROADCASTING_OUTAGE, _broadcasts_through_outage),
    (STOPPED, _knows_stops),
    (HOSTS_LOST, _loses_many_hosts),
    (CONFIG, _divides_by_config),
    (LETS_GO, _lets_go),
    (LOCKS_KEPT, _keeps_locks),
    (ENDS_PASS, _ends_pass),
)
"""Each reason with the question that decides it; the first that applies counts."""


def reason_of(script: Script) -> str:
    """`REGULAR`, or why every future of the script goes through the reference engine."""
    return next((reason for reason, applies in _APPLIES if applies(script)), REGULAR)
