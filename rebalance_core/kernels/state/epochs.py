"""From events to epochs: when a group's state differs before and after an instant, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.event_rows import Events
from rebalance_core.kernels.segments import (
    NEVER,
    Bools,
    Ints,
    first_of_run,
    last_of_run,
    last_true,
    pointers,
    running_max,
)
from rebalance_core.kernels.state.activity import GroupTopics, LiveCounts, TopicPeriods
from rebalance_core.kernels.state.membership import LOST, Membership
from rebalance_core.kernels.state.pops import Pops
from rebalance_core.kernels.state.routes import RouteChanges, TopicBrokers, TopicConfigs
from rebalance_core.protocol.windows import NOTIFIED_MS, ROUTE_MS

TYPE_BITS = 4
"""Event types fit in these."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """One value an epoch, by group and number."""

    group: Ints
    number: Ints
    """Counts from 0 in each group."""
    from_ms: Ints
    to_ms: Ints
    """`NEVER` while open."""
    last_ordinal: Ints
    """The last event of the instant that begins it."""
    latest_ms: Ints
    retry_latest_ms: Ints
    seen_late: Bools
    """Members may run passes before they, or the broker they ask, know what happened."""
    initial: Bools
    live: Ints
    """Processes."""
    causes: Ints
    """Event types of all epochs, in the order they happened."""
    first_cause: Ints
    """Where each epoch's causes begin, and the end; shape (n + 1,)."""
    of_group: Ints
    """Where each group's epochs begin, and the end; shape (groups + 1,)."""
    from_instant: Ints
    """The first epoch at or after each instant of the events, of any group."""
    at_instant: Ints
    """The epoch that begins at each instant; -1: none."""

    def __len__(self) -> int:
        return len(self.group)


@dataclass(frozen=True, slots=True)
class Turns:
    """What the instants of all groups do."""

    causing: Bools
    """By event: it changes the state."""
    changed: Bools
    """By instant: the state differs before and after it."""

    def without(self, instants: Bools) -> Turns:
        """The same, but these instants change nothing."""
        return Turns(self.causing, self.changed & ~instants)


def find_turns(
    events: Events,
    membership: Membership,
    topics: GroupTopics,
    known: TopicBrokers,
    routes: RouteChanges,
    retry: TopicPeriods,
    pops: Pops,
) -> Turns:
    """The events that change the state of their group, and the instants that do."""
    instants = int(events.instant[-1]) + 1 if len(events) else 0
    causing, changed = np.zeros(len(events), np.bool_), np.zeros(instants, np.bool_)
    changes = membership.changes
    causing[changes.ordinal[changes.before != changes.after]] = True
    instant = events.instant[changes.ordinal]
    first, last = first_of_run(changes.process, instant), last_of_run(changes.process, instant)
    differs = changes.before[first] != changes.after[last]
    changed[instant[last][differs]] = True
    group_topic = topics.index(known.group, known.topic)[routes.topic_broker]
    causing[routes.ordinal[topics.active(group_topic, routes.ordinal)]] = True
    instant = events.instant[routes.ordinal]
    first, last = (
        first_of_run(routes.topic_broker, instant),
        last_of_run(routes.topic_broker, instant),
    )
    differs = routes.before[first] != routes.after[last]
    at_end = _last_ordinals(events)[instant[last]]
    differs &= topics.active(group_topic[last], at_end)
    changed[instant[last][differs]] = True
    # The retry topic appears among the group's topics, even on a broker that is down.
    causing[retry.start] = True
    instant = events.instant[retry.start]
    there = topics.active(topics.index(retry.group, retry.topic), _last_ordinals(events)[instant])
    changed[instant[there]] = True
    # A mode is nothing to a topic that no member asks a broker to pop.
    causing[pops.causing()] = True
    changed[pops.changed(events.instant, _last_ordinals(events))] = True
    return Turns(causing, changed)


def _last_ordinals(events: Events) -> Ints:
    return np.flatnonzero(last_of_run(events.instant))


def build_epochs(
    events: Events, turns: Turns, live: LiveCounts, creations: TopicConfigs, group_count: int
) -> Epochs:
    """One epoch for each instant that changes a group's state, from its first member on."""
    last = _last_ordinals(events)
    group = events.group[last]
    members = _live_at(live, group, last)
    begun = last_true(turns.changed & (members > 0), first_of_run(group)) >= 0
    begins = turns.changed & begun
    epoch_group, ordinal = group[begins], last[begins]
    at_instant = np.where(begins, np.cumsum(begins) - 1, -1)
    from_instant: Ints = np.cumsum(begins) - begins
    count = int(begins.sum())
    of_group = pointers(np.bincount(epoch_group, minlength=group_count))
    from_ms = events.at_ms[ordinal]
    causing = np.flatnonzero(turns.causing & (at_instant[events.instant] >= 0))
    epoch = at_instant[events.instant[causing]]
    settled = np.zeros(count, np.int64)
    np.maximum.at(settled, epoch, events.window_ms[causing])
    latest = running_max(from_ms + settled, epoch_group)
    grown = at_instant[events.instant[creations.ordinal]]
    routed = latest.copy()
    grown = grown[grown >= 0]
    routed[grown] = np.maximum(routed[grown], from_ms[grown] + ROUTE_MS)
    initial = np.ones(count, np.bool_)
    initial[epoch[~events.observed[causing]]] = False
    types, first_cause = _causes(epoch, events.type[causing], count)
    to_ms = np.where(last_of_run(epoch_group), NEVER, np.roll(from_ms, -1))
    return Epochs(
        epoch_group, np.arange(count) - of_group[epoch_group], from_ms, to_ms, ordinal,
        latest, running_max(routed, epoch_group), settled > NOTIFIED_MS, initial, members[begins],
        types, first_cause, of_group, from_instant, at_instant,
    )  # fmt: skip


def _live_at(live: LiveCounts, group: Ints, ordinal: Ints) -> Ints:
    """Processes of each group right after an event of its own."""
    if not len(live.ordinal):
        return np.zeros(len(group), np.int64)
    at = np.searchsorted(live.ordinal, ordinal, side="right") - 1
    known = (at >= 0) & (live.group[at] == group)
    return np.where(known, live.live[at], 0)


def _causes(epoch: Ints, types: Ints, count: int) -> tuple[Ints, Ints]:
    """The distinct types of each epoch's causing events, in the order of their first one."""
    _, first = np.unique((epoch << TYPE_BITS) | types, return_index=True)
    first.sort()
    return types[first], pointers(np.bincount(epoch[first], minlength=count))


def lost_clients(events: Events, membership: Membership, epochs: Epochs) -> tuple[Ints, Ints]:
    """(epoch, client) of processes that were lost at the start of an epoch and are not back."""
    changes = membership.changes
    instant = events.instant[changes.ordinal]
    process_instant = np.cumsum(first_of_run(changes.process, instant)) - 1
    gone = changes.after[last_of_run(changes.process, instant)] < 0
    lost = (events.type[changes.ordinal] == LOST) & gone[process_instant]
    epoch = epochs.at_instant[instant[lost]]
    client = membership.processes.client[changes.process[lost]]
    return epoch[epoch >= 0], client[epoch >= 0]
