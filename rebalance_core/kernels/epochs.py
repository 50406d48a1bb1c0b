"""Derives epochs from events: when a group's state changes, and why."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events
from rebalance_core.kernels.group_rows import Groups
from rebalance_core.kernels.pop_modes import PopModes
from rebalance_core.kernels.processes import LOST, Membership
from rebalance_core.kernels.routes import CONFIG, DELETED, RouteChanges, TopicBrokers, TopicConfigs
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import GroupTopics, LiveCounts, TopicPeriods
from rebalance_core.protocol.settling_windows import NOTIFIED_MS

TYPE_BITS = 4
"""The number of bits that hold an event type."""


@dataclass(frozen=True, slots=True)
class Epochs:
    """Epochs, with one value per epoch, sorted by group and number."""

    group: Ints
    number: Ints
    """Counted from 0 in each group."""
    from_ms: Ints
    to_ms: Ints
    """`NEVER` while open."""
    last_ordinal: Ints
    """The last event of the instant that begins the epoch."""
    latest_ms: Ints
    retry_latest_ms: Ints
    seen_late: Bools
    """Whether members may run passes before they, or the brokers that they query, learn of the
    change.
    """
    initial: Bools
    live: Ints
    """The number of live processes."""
    causes: Ints
    """The event types that cause epochs, in chronological order."""
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
class InstantEffects:
    """The events and instants that change a group's state, for all groups."""

    causing: Bools
    """For each event, whether it changes the state."""
    changed: Bools
    """For each instant, whether the state differs before and after it."""

    def without(self, instants: Bools) -> InstantEffects:
        """Return these effects, with the given instants marked as changing nothing."""
        return InstantEffects(self.causing, self.changed & ~instants)


def find_turns(
    events: Events,
    membership: Membership,
    topics: GroupTopics,
    topic_brokers: TopicBrokers,
    routes: RouteChanges,
    retry: TopicPeriods,
    pops: PopModes,
) -> InstantEffects:
    """Return the events that change the state of their group, and the instants that do."""
    instants = int(events.instant[-1]) + 1 if len(events) else 0
    causing, changed = np.zeros(len(events), np.bool_), np.zeros(instants, np.bool_)
    changes = membership.changes
    causing[changes.ordinal[changes.before != changes.after]] = True
    instant = events.instant[changes.ordinal]
    first, last = segments.ends_of_runs(changes.process, instant)
    differs = changes.before[first] != changes.after[last]
    changed[instant[last][differs]] = True
    group_topic = topics.index(topic_brokers.group, topic_brokers.topic)[routes.topic_broker]
    causing[routes.ordinal[topics.active(group_topic, routes.ordinal)]] = True
    instant = events.instant[routes.ordinal]
    first, last = segments.ends_of_runs(routes.topic_broker, instant)
    differs = routes.before[first] != routes.after[last]
    at_end = _last_ordinals(events)[instant[last]]
    differs &= topics.active(group_topic[last], at_end)
    changed[instant[last][differs]] = True
    # The retry topic appears among the group's topics, even on a broker that is down.
    causing[retry.start] = True
    instant = events.instant[retry.start]
    active = topics.active(topics.index(retry.group, retry.topic), _last_ordinals(events)[instant])
    changed[instant[active]] = True
    # A mode has no effect on a topic for which no member asks a broker to pop.
    causing[pops.causing()] = True
    changed[pops.changed(events.instant, _last_ordinals(events))] = True
    return InstantEffects(causing, changed)


def _last_ordinals(events: Events) -> Ints:
    return np.flatnonzero(segments.last_of_run(events.instant))


def build_epochs(
    events: Events, turns: InstantEffects, live: LiveCounts, creations: TopicConfigs, groups: Groups
) -> Epochs:
    """Return one epoch for each instant that changes a group's state, from its first member on.

    A change of a retry topic has the window of a route change, for the retry topic only.
    """
    route_ms = groups.route_ms
    last = _last_ordinals(events)
    group = events.group[last]
    members = _live_at(live, group, last)
    begun = segments.last_true(turns.changed & (members > 0), segments.first_of_run(group)) >= 0
    begins = turns.changed & begun
    epoch_group, ordinal = group[begins], last[begins]
    at_instant = np.where(begins, np.cumsum(begins) - 1, -1)
    from_instant: Ints = np.cumsum(begins) - begins
    count = int(begins.sum())
    of_group = segments.pointers(np.bincount(epoch_group, minlength=len(route_ms)))
    from_ms = events.at_ms[ordinal]
    causing = np.flatnonzero(turns.causing & (at_instant[events.instant] >= 0))
    epoch = at_instant[events.instant[causing]]
    of_retry = np.isin(events.type[causing], (CONFIG, DELETED))
    of_retry &= events.topic[causing] == groups.retry_topic[events.group[causing]]
    settled = np.zeros(count, np.int64)
    np.maximum.at(settled, epoch[~of_retry], events.window_ms[causing[~of_retry]])
    latest = segments.running_max(from_ms + settled, epoch_group)
    grown = at_instant[events.instant[np.append(creations.ordinal, causing[of_retry])]]
    routed = latest.copy()
    grown = grown[grown >= 0]
    shown = from_ms[grown] + route_ms[epoch_group[grown]]
    routed[grown] = np.maximum(routed[grown], shown)
    initial = np.ones(count, np.bool_)
    initial[epoch[~events.observed[causing]]] = False
    types, first_cause = _causes(epoch, events.type[causing], count)
    to_ms = np.where(segments.last_of_run(epoch_group), segments.NEVER, np.roll(from_ms, -1))
    return Epochs(
        group=epoch_group,
        number=np.arange(count) - of_group[epoch_group],
        from_ms=from_ms,
        to_ms=to_ms,
        last_ordinal=ordinal,
        latest_ms=latest,
        retry_latest_ms=segments.running_max(routed, epoch_group),
        seen_late=settled > NOTIFIED_MS,
        initial=initial,
        live=members[begins],
        causes=types,
        first_cause=first_cause,
        of_group=of_group,
        from_instant=from_instant,
        at_instant=at_instant,
    )


def _live_at(live: LiveCounts, group: Ints, ordinal: Ints) -> Ints:
    """Return the number of each group's live processes just after one of its events."""
    if not len(live.ordinal):
        return np.zeros(len(group), np.int64)
    row = np.searchsorted(live.ordinal, ordinal, side="right") - 1
    has_row = (row >= 0) & (live.group[row] == group)
    return np.where(has_row, live.live[row], 0)


def _causes(epoch: Ints, types: Ints, count: int) -> tuple[Ints, Ints]:
    """Return the distinct types of each epoch's causing events, in order of first occurrence."""
    _, first = np.unique((epoch << TYPE_BITS) | types, return_index=True)
    first.sort()
    return types[first], segments.pointers(np.bincount(epoch[first], minlength=count))


def lost_clients(events: Events, membership: Membership, epochs: Epochs) -> tuple[Ints, Ints]:
    """Return (epoch, client) of processes lost at the start of an epoch and not yet back."""
    changes = membership.changes
    instant = events.instant[changes.ordinal]
    process_instant = np.cumsum(segments.first_of_run(changes.process, instant)) - 1
    gone = changes.after[segments.last_of_run(changes.process, instant)] < 0
    lost = (events.type[changes.ordinal] == LOST) & gone[process_instant]
    epoch = epochs.at_instant[instant[lost]]
    client = membership.processes.client[changes.process[lost]]
    return epoch[epoch >= 0], client[epoch >= 0]
