"""Routes over time, and from events to epochs: when a group's state differs, and why."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.coded_groups import LOST, CodedGroups, Events, Membership, type_code
from rebalance_core.kernels.group_rows import Groups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topics import GroupTopics, LiveCounts, PopModes, TopicPeriods
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, TOPIC_CONFIG, TOPIC_DELETED
from rebalance_core.protocol.members import NOTIFIED_MS

# How many queues of each topic can be read on each broker, as the events say (rocketmq.md §6.3).

UP, DOWN = type_code(BROKER_UP), type_code(BROKER_DOWN)
CONFIG, DELETED = type_code(TOPIC_CONFIG), type_code(TOPIC_DELETED)


@dataclass(frozen=True, slots=True)
class TopicBrokers:
    """Every (group, topic, broker), in this order.

    Where the topic was ever configured, or CONFIG lists a queue of it.
    """

    group: Ints
    topic: Ints
    broker: Ints

    def of(self, group: Ints, broker: Ints) -> tuple[Ints, Ints]:
        """(index of the asker, topic broker) of all topics on each group's broker."""
        known = np.flatnonzero(self.broker >= 0)
        keys = segments.pair(self.group[known], self.broker[known])
        order = np.argsort(keys, kind="stable")
        keys, known = keys[order], known[order]
        asker, row = segments.matching(keys, segments.pair(group, broker))
        return asker, known[row]


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    """Each TOPIC_CONFIG and TOPIC_DELETED about one topic on one broker; by both, in order.

    ``readable`` is the number of queues that can be read while the broker is up.
    """

    group: Ints
    topic: Ints
    broker: Ints
    ordinal: Ints
    readable: Ints
    configured: Bools

    def where(self, rows: Bools | Ints) -> TopicConfigs:
        """Some rows of these, or all in another order."""
        return TopicConfigs(*(getattr(self, f.name)[rows] for f in fields(self)))

    def joined(self, other: TopicConfigs) -> TopicConfigs:
        """These rows, then the others."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return TopicConfigs(*(np.concatenate(pair_) for pair_ in pairs))


@dataclass(frozen=True, slots=True)
class RouteChanges:
    """Events that change the number of readable queues, by topic on broker, then in order."""

    topic_broker: Ints
    ordinal: Ints
    before: Ints
    after: Ints


def listed_places(coded: CodedGroups) -> TopicBrokers:
    """Return where the CONFIG lists of the groups' members have a queue, in any order."""
    lists, divisions = coded.lists, coded.divisions
    at, row = segments.matching(lists.allocation, divisions.listed)
    return TopicBrokers(divisions.listing[at], lists.topic[row], lists.broker[row])


def topic_configs(events: Events) -> TopicConfigs:
    """Topic events, those about all brokers once for each broker that has the topic."""
    about = np.flatnonzero((events.type == CONFIG) | (events.type == DELETED))
    group, topic, broker = (a[about] for a in (events.group, events.topic, events.broker))
    configured = events.type[about] == CONFIG
    known = np.unique(np.stack([group, topic, broker])[:, configured], axis=1)
    known_topics = segments.pair(known[0], known[1])
    everywhere = ~configured & (broker < 0)
    first, end = segments.equal_range(known_topics, segments.pair(group, topic))
    count = end - first
    of_broker = np.where(everywhere, count, 1)
    row = np.repeat(np.arange(len(about)), of_broker)
    spread = known[2][segments.ranges(first[everywhere], count[everywhere])]
    brokers = broker[row]
    brokers[everywhere[row]] = spread
    order = np.lexsort((about[row], brokers, topic[row], group[row]))
    row = row[order]
    return TopicConfigs(
        group[row], topic[row], brokers[order], about[row],
        events.readable[about[row]] * configured[row], configured[row],
    )  # fmt: skip


def retry_creations(
    configs: TopicConfigs, subscribed: TopicPeriods, groups: Groups
) -> TopicConfigs:
    """The retry topic's queue on each broker: from when a member first reads a topic there.

    That moment is the first at which some topic is both subscribed and configured on the broker.

    Args:
        configs: of the topics, or of the retry topics themselves: then from when a member first
            finds one there.
        subscribed: the same topics.
        groups: all.
    """
    group, topic, broker, ordinal = configs.group, configs.topic, configs.broker, configs.ordinal
    row, end = segments.on_periods((group, topic, broker), ordinal, configs.configured)
    wanted = groups.has_retry[group[row]]
    row, end = row[wanted], end[wanted]
    keys = segments.pair(subscribed.group, subscribed.topic)
    one, other = segments.matching(keys, segments.pair(group[row], topic[row]))
    start = np.maximum(ordinal[row][one], subscribed.start[other])
    both = start < np.minimum(end[one], subscribed.end[other])
    group, broker, start = group[row][one][both], broker[row][one][both], start[both]
    order = np.lexsort((start, broker, group))
    group, broker, start = group[order], broker[order], start[order]
    born = segments.first_of_run(group, broker)
    ones = np.ones(int(born.sum()), np.int64)
    return TopicConfigs(
        group[born], groups.retry_topic[group[born]], broker[born], start[born], ones, ones > 0
    )


def retry_configs(stated: TopicConfigs, creations: TopicConfigs) -> TopicConfigs:
    """Return what is on each broker of the retry topics: as stated, else the one queue created.

    What was created is there again where nothing is stated any more.

    Args:
        stated: the events about the retry topics themselves.
        creations: as `retry_creations` gives them of all other topics.
    """
    rows = stated.joined(creations)
    created = np.arange(len(rows.ordinal)) >= len(stated.ordinal)
    order = np.lexsort((rows.ordinal, rows.broker, rows.group))
    rows, created = rows.where(order), created[order]
    first = segments.first_of_run(rows.group, rows.broker)
    since = segments.last_true(created, first) >= 0
    holds = segments.last_true(~created, first)  # the last that was stated, itself included
    covered = created & (holds >= 0) & np.append(rows.configured, False)[holds]
    back = ~rows.configured & since
    rows.readable[back], rows.configured[back] = 1, True
    return rows.where(~covered)


def retry_periods(creations: TopicConfigs) -> TopicPeriods:
    """The retry topics, each active from its first queue on."""
    order = np.lexsort((creations.ordinal, creations.group))
    first = order[segments.first_of_run(creations.group[order])]
    never = np.full(len(first), segments.NEVER)
    return TopicPeriods(
        creations.group[first], creations.topic[first], creations.ordinal[first], never
    )


def follow_routes(
    events: Events, configs: TopicConfigs, topics: GroupTopics, listed: TopicBrokers
) -> tuple[TopicBrokers, RouteChanges]:
    """The readable queues of every topic a group reads, on every broker.

    Args:
        events: all events, in order.
        configs: topic configurations, the retry topics' creations among them, in any order.
        topics: what the groups read; other topics are left out.
        listed: where CONFIG lists queues, configured or not.
    """
    read = topics.index(configs.group, configs.topic) >= 0
    group, topic, broker, ordinal, readable = (
        a[read]
        for a in (configs.group, configs.topic, configs.broker, configs.ordinal, configs.readable)
    )
    named = topics.index(listed.group, listed.topic) >= 0
    places = np.stack(
        [
            np.concatenate([group, listed.group[named]]),
            np.concatenate([topic, listed.topic[named]]),
            np.concatenate([broker, listed.broker[named]]),
        ]
    )
    distinct, place_of = np.unique(places, axis=1, return_inverse=True)
    config_of = place_of.reshape(-1)[: len(group)]
    known = TopicBrokers(*distinct)
    about, on = _broker_events(events, known)
    at = np.concatenate([ordinal, about])
    of = np.concatenate([config_of, on])
    is_config = np.arange(len(at)) < len(ordinal)
    value = np.concatenate([readable, events.type[about] == UP])
    order = np.lexsort((at, of))
    at, of, is_config, value = at[order], of[order], is_config[order], value[order]
    first = segments.first_of_run(of)
    config = segments.last_true(is_config, first)
    broker_event = segments.last_true(~is_config, first)
    up = np.where(broker_event >= 0, value[broker_event], 1)
    after = np.where(config >= 0, value[config], 0) * up
    before = np.where(first, 0, np.roll(after, 1))
    changed = before != after
    return known, RouteChanges(of[changed], at[changed], before[changed], after[changed])


def _broker_events(events: Events, known: TopicBrokers) -> tuple[Ints, Ints]:
    """(ordinal, topic broker) of every broker event and every topic on that broker."""
    about = np.flatnonzero((events.type == UP) | (events.type == DOWN))
    at, on = known.of(events.group[about], events.broker[about])
    return about[at], on


def index_of(known: TopicBrokers, group: Ints, topic: Ints, broker: Ints) -> Ints:
    """The topic broker of each row; -1: never configured."""
    distinct, rank = np.unique(segments.pair(known.group, known.topic), return_inverse=True)
    return segments.find(
        segments.pair(rank, known.broker),
        segments.pair(segments.find(distinct, segments.pair(group, topic)), broker),
    )


# From events to epochs: when a group's state differs before and after an instant, and why.

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
class InstantEffects:
    """The effect of the instants of all groups."""

    causing: Bools
    """By event: it changes the state."""
    changed: Bools
    """By instant: the state differs before and after it."""

    def without(self, instants: Bools) -> InstantEffects:
        """The same, but these instants change nothing."""
        return InstantEffects(self.causing, self.changed & ~instants)


def find_turns(
    events: Events,
    membership: Membership,
    topics: GroupTopics,
    known: TopicBrokers,
    routes: RouteChanges,
    retry: TopicPeriods,
    pops: PopModes,
) -> InstantEffects:
    """The events that change the state of their group, and the instants that do."""
    instants = int(events.instant[-1]) + 1 if len(events) else 0
    causing, changed = np.zeros(len(events), np.bool_), np.zeros(instants, np.bool_)
    changes = membership.changes
    causing[changes.ordinal[changes.before != changes.after]] = True
    instant = events.instant[changes.ordinal]
    first, last = segments.ends_of_runs(changes.process, instant)
    differs = changes.before[first] != changes.after[last]
    changed[instant[last][differs]] = True
    group_topic = topics.index(known.group, known.topic)[routes.topic_broker]
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
    # A mode is nothing to a topic that no member asks a broker to pop.
    causing[pops.causing()] = True
    changed[pops.changed(events.instant, _last_ordinals(events))] = True
    return InstantEffects(causing, changed)


def _last_ordinals(events: Events) -> Ints:
    return np.flatnonzero(segments.last_of_run(events.instant))


def build_epochs(
    events: Events, turns: InstantEffects, live: LiveCounts, creations: TopicConfigs, groups: Groups
) -> Epochs:
    """One epoch for each instant that changes a group's state, from its first member on.

    A change of a retry topic has the window of a change of routes, on the retry topic alone.
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
    return types[first], segments.pointers(np.bincount(epoch[first], minlength=count))


def lost_clients(events: Events, membership: Membership, epochs: Epochs) -> tuple[Ints, Ints]:
    """(epoch, client) of processes that were lost at the start of an epoch and are not back."""
    changes = membership.changes
    instant = events.instant[changes.ordinal]
    process_instant = np.cumsum(segments.first_of_run(changes.process, instant)) - 1
    gone = changes.after[segments.last_of_run(changes.process, instant)] < 0
    lost = (events.type[changes.ordinal] == LOST) & gone[process_instant]
    epoch = epochs.at_instant[instant[lost]]
    client = membership.processes.client[changes.process[lost]]
    return epoch[epoch >= 0], client[epoch >= 0]
