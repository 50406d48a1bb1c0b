"""Decides which groups only the reference engine can play, and why."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from itertools import pairwise

from rebalance_core.model.client_profile import DROP, KEPT
from rebalance_core.model.events import BATCHED
from rebalance_core.model.group_settings import BROADCASTING, BROKER_STRATEGIES, PUSH
from rebalance_core.model.intervals import DEFAULT_INTERVALS
from rebalance_core.replay.member import Member
from rebalance_core.replay.topic_shares import CONFIG_STRATEGY
from rebalance_core.timing.group_timeline import GroupTimeline, ProcessLifetime
from rebalance_core.timing.options import SECOND_US
from rebalance_core.timing.shared_instances import wakes_by_passes
from rebalance_core.timing.stretches import stretches_of
from rebalance_core.timing.vectorized.mixed_state import is_mixed

REGULAR = "REGULAR"
"""The vectorized engine plays the futures."""
MIXED_SUBSCRIPTIONS = "MIXED_SUBSCRIPTIONS"
"""Subscriptions differ, and a member of an orderly group changes its topics, or a member or route
changes in a gap.
"""
EDITED_MEMBER = "EDITED_MEMBER"
"""A process rejoins in place with other settings."""
RESUMED = "RESUMED"
"""The pass clock of a client works differently while it is suspended."""
PARTIAL_EVENTS = "PARTIAL_EVENTS"
"""Only one broker saw a process join or leave."""
HOSTS_LOST = "HOSTS_LOST"
"""So many hosts are lost that a heartbeat takes so long that other timers starve
(rocketmq.md §6.1).
"""
MOST_LOST = 9
"""The maximum number of lost hosts: at three seconds each, they take less than the time between a
heartbeat and the next route poll.
"""
BROADCASTING_OUTAGE = "BROADCASTING_OUTAGE"
"""A BROADCASTING member gets no start offset from a broker that is down, so it is unbalanced."""
CONFIG = "CONFIG"
"""CONFIG may assign queues of other topics."""

SHARED_CLIENTS = "SHARED_CLIENTS"
"""Members share client instances with groups whose passes wake them or whose subscriptions
differ.
"""

BROKER_DIVIDES = "BROKER_DIVIDES"
"""Brokers allocate for at least one member, using the routes that they poll themselves
(rocketmq.md §2.8).
"""
STOPPED = "STOPPED"
"""A log shows when processes stood still."""


NOTICES_BATCHED = "NOTICES_BATCHED"
"""A broker batches its notices (realTimeNotifyConsumerChange=false)."""


LOCKS_KEPT = "LOCKS_KEPT"
"""A member keeps the order locks of queues that it releases."""
ENDS_PASS = "ENDS_PASS"
"""A topic without an answer ends the pass of a member with several topics."""
LETS_GO = "LETS_GO"
"""A returned broker knows no member, and a member then releases its queues."""


def _members(timeline: GroupTimeline) -> Iterator[Member]:
    """Yield every process of the group, in each of its states."""
    return (member for lifetime in timeline.lifetimes for _, member in lifetime.states)


def takes_locks(timeline: GroupTimeline) -> bool:
    """Return whether the group's members take order locks."""
    settings = timeline.settings
    return settings.ordered and settings.consumer_type == PUSH


def _mixes_subscriptions(timeline: GroupTimeline) -> bool:
    """Return whether subscriptions differ and also change, in an orderly group or in an unsimulated
    gap.
    """
    if not is_mixed(timeline):
        return False
    return (takes_locks(timeline) and _changes_topics(timeline)) or _changes_unseen(timeline)


def _changes_topics(timeline: GroupTimeline) -> bool:
    """Return whether a process changes its topics during its lifetime."""
    topics_of_lifetimes = (
        {member.subscriptions for _, member in lifetime.states} for lifetime in timeline.lifetimes
    )
    return any(len(topics) > 1 for topics in topics_of_lifetimes)


def _changes_unseen(timeline: GroupTimeline) -> bool:
    """Return whether a member joins or changes topics, or a route changes, in an unsimulated gap.

    A process that is first observed later joined at an unknown time.
    """
    observed_us = [lifetime.joined.event_us for lifetime in timeline.lifetimes if lifetime.observed]
    if len(set(observed_us)) > 1:
        return True
    stretches = list(stretches_of(timeline))
    moments = [lifetime.joined for lifetime in timeline.lifetimes if not lifetime.observed]
    moments += [moment for lifetime in timeline.lifetimes for moment, _ in lifetime.states[1:]]
    moments += [each.moment for versions in timeline.routes for each in versions[1:] if each.moment]
    return not all(
        any(
            each.begin_us <= moment.event_us
            and moment.event_us + SECOND_US * moment.to_the_second < each.end_us
            for each in stretches
        )
        for moment in moments
    )


def _shares_clients(timeline: GroupTimeline) -> bool:
    """Return whether other groups share its clients, and wake their passes or have different
    subscriptions.
    """
    if not timeline.sharing_groups:
        return False
    return is_mixed(timeline) or any(
        wakes_by_passes(sharing_group) for sharing_group in timeline.sharing_groups
    )


def _edits_a_member(timeline: GroupTimeline) -> bool:
    """Return whether a process changes its strategy, version, message model or profile."""
    return any(
        (before.strategy, before.version, before.message_model, before.profile)
        != (after.strategy, after.version, after.message_model, after.profile)
        for lifetime in timeline.lifetimes
        for (_, before), (_, after) in pairwise(lifetime.states)
    )


def _has_brokers_divide(timeline: GroupTimeline) -> bool:
    """Return whether a member queries brokers, and they know its strategy."""
    return any(
        member.asks_broker(timeline.settings) and member.strategy in BROKER_STRATEGIES
        for member in _members(timeline)
    )


def _batches_notices(timeline: GroupTimeline) -> bool:
    """Return whether a broker ever batches its notices."""
    return any(switch.mode == BATCHED for switch in timeline.notices)


def _resumes(timeline: GroupTimeline) -> bool:
    """Return whether a suspended member resumes."""
    return any(
        before.suspended and not after.suspended
        for lifetime in timeline.lifetimes
        for (_, before), (_, after) in pairwise(lifetime.states)
    )


def _has_partial_events(timeline: GroupTimeline) -> bool:
    """Return whether only one broker saw a process join or leave."""
    return any(
        lifetime.sightings or lifetime.only_broker is not None for lifetime in timeline.lifetimes
    )


def _broadcasts_through_outage(timeline: GroupTimeline) -> bool:
    """Return True if a member is BROADCASTING while a broker or its master goes down."""
    if not any(member.message_model == BROADCASTING for member in _members(timeline)):
        return False
    return bool(timeline.lockless) or any(lifetime.down for lifetime in timeline.broker_lifetimes)


def _knows_stops(timeline: GroupTimeline) -> bool:
    """Return whether the cluster's recorder knows when processes stood still."""
    return timeline.watched is not None and bool(timeline.watched.stops)


def _loses_many_hosts(timeline: GroupTimeline) -> bool:
    """Return whether so many hosts are lost that the clients' timers leave no time to wait for
    them.
    """
    lost = {lifetime.broker for lifetime in timeline.broker_lifetimes if lifetime.host_lost}
    bearable = MOST_LOST if all(_ticks_as_usual(lifetime) for lifetime in timeline.lifetimes) else 0
    return len(lost) > bearable


def _ticks_as_usual(lifetime: ProcessLifetime) -> bool:
    """Return whether a lifetime polls and sends heartbeats at the intervals that `MOST_LOST`
    assumes.
    """
    usual, intervals = DEFAULT_INTERVALS, lifetime.intervals
    return (intervals.poll_name_server_interval_ms, intervals.heartbeat_broker_interval_ms) == (
        usual.poll_name_server_interval_ms,
        usual.heartbeat_broker_interval_ms,
    )


def _divides_by_config(timeline: GroupTimeline) -> bool:
    """Return whether a member uses the strategy CONFIG."""
    return any(member.strategy.startswith(CONFIG_STRATEGY) for member in _members(timeline))


def _lets_go(timeline: GroupTimeline) -> bool:
    """Return whether a broker returns while a member exists that drops its queues on an empty
    member list.
    """
    if not any(lifetime.up is not None for lifetime in timeline.broker_lifetimes):
        return False
    return any(member.profile.empty_list == DROP for member in _members(timeline))


def _keeps_locks(timeline: GroupTimeline) -> bool:
    """Return whether the group is orderly, and a member keeps the locks of released queues."""
    return takes_locks(timeline) and any(
        member.profile.locks == KEPT for member in _members(timeline)
    )


def _ends_pass(timeline: GroupTimeline) -> bool:
    """Return whether a member with several topics ends its pass at the first topic without an
    answer.
    """
    return any(
        member.profile.ends_pass and len(member.subscriptions) > 1 for member in _members(timeline)
    )


_APPLIES: tuple[tuple[str, Callable[[GroupTimeline], bool]], ...] = (
    (MIXED_SUBSCRIPTIONS, _mixes_subscriptions),
    (SHARED_CLIENTS, _shares_clients),
    (EDITED_MEMBER, _edits_a_member),
    (BROKER_DIVIDES, _has_brokers_divide),
    (NOTICES_BATCHED, _batches_notices),
    (RESUMED, _resumes),
    (PARTIAL_EVENTS, _has_partial_events),
    (BROADCASTING_OUTAGE, _broadcasts_through_outage),
    (STOPPED, _knows_stops),
    (HOSTS_LOST, _loses_many_hosts),
    (CONFIG, _divides_by_config),
    (LETS_GO, _lets_go),
    (LOCKS_KEPT, _keeps_locks),
    (ENDS_PASS, _ends_pass),
)
"""Each reason and its test; the first reason that applies is used."""


def differ_in_strategies(timelines: Sequence[GroupTimeline]) -> bool:
    """Return whether the timelines are all `REGULAR` and differ only in strategies and the
    resulting shares.

    Members that query brokers, and clients shared with other groups, depend on strategies in other
    ways.
    """
    first = timelines[0]
    asks_broker = any(member.asks_broker(first.settings) for member in _members(first))
    if first.sharing_groups or asks_broker:
        return False
    regular = all(reason_of(timeline) == REGULAR for timeline in timelines)
    return regular and all(
        _without_strategies(each) == _without_strategies(first) for each in timelines[1:]
    )


def all_broadcast_alike(timelines: Sequence[GroupTimeline]) -> bool:
    """Return whether the timelines differ only in strategies and all members are BROADCASTING, so
    that no strategy is called.
    """
    first = timelines[0]
    if first.sharing_groups or any(m.message_model != BROADCASTING for m in _members(first)):
        return False
    return all(
        each.initial == first.initial and _without_strategies(each) == _without_strategies(first)
        for each in timelines[1:]
    )


def _without_strategies(timeline: GroupTimeline) -> GroupTimeline:
    """Return the timeline without strategies and what derives from them."""
    lifetimes = tuple(
        replace(
            lifetime,
            states=tuple((at, replace(member, strategy="")) for at, member in lifetime.states),
        )
        for lifetime in timeline.lifetimes
    )
    settings = replace(timeline.settings, strategy="")
    return replace(timeline, settings=settings, lifetimes=lifetimes, initial=(), unknown_members=())


def reason_of(timeline: GroupTimeline) -> str:
    """Return `REGULAR`, or why the reference engine plays every future of the timeline."""
    return next((reason for reason, applies in _APPLIES if applies(timeline)), REGULAR)
