"""How many queues of each topic can be read on each broker, as the events say
(rocketmq.md §6.3).
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.codes.event_rows import Events, type_code
from rebalance_core.kernels.codes.group_rows import Groups
from rebalance_core.kernels.segments import (
    NEVER,
    Bools,
    Ints,
    find,
    first_of_run,
    last_of_run,
    last_true,
    pair,
    ranges,
)
from rebalance_core.kernels.state.activity import GroupTopics, TopicPeriods
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, TOPIC_CONFIG, TOPIC_DELETED

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
        keys = pair(self.group[known], self.broker[known])
        order = np.argsort(keys, kind="stable")
        keys, known = keys[order], known[order]
        wanted = pair(group, broker)
        first = np.searchsorted(keys, wanted)
        count = np.searchsorted(keys, wanted, side="right") - first
        return np.repeat(np.arange(len(group)), count), known[ranges(first, count)]


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    """What each TOPIC_CONFIG and TOPIC_DELETED says of one topic on one broker; by both, in order.

    ``readable`` is the number of queues that can be read while the broker is up.
    """

    group: Ints
    topic: Ints
    broker: Ints
    ordinal: Ints
    readable: Ints
    configured: Bools

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
    """Where the CONFIG lists of the groups' members have a queue, in any order."""
    lists, divisions = coded.lists, coded.divisions
    first = np.searchsorted(lists.allocation, divisions.listed)
    count = np.searchsorted(lists.allocation, divisions.listed, side="right") - first
    row = ranges(first, count)
    return TopicBrokers(np.repeat(divisions.listing, count), lists.topic[row], lists.broker[row])


def topic_configs(events: Events, groups: Groups) -> TopicConfigs:
    """Topic events, those about all brokers once for each broker that has the topic.

    Events about the group's own retry topic count for nothing: its route is its brokers'.
    """
    about = np.flatnonzero(
        ((events.type == CONFIG) | (events.type == DELETED))
        & (events.topic != groups.retry_topic[events.group])
    )
    group, topic, broker = (a[about] for a in (events.group, events.topic, events.broker))
    configured = events.type[about] == CONFIG
    known = np.unique(np.stack([group, topic, broker])[:, configured], axis=1)
    known_topics = pair(known[0], known[1])
    everywhere = ~configured & (broker < 0)
    first = np.searchsorted(known_topics, pair(group, topic))
    count = np.searchsorted(known_topics, pair(group, topic), side="right") - first
    of_broker = np.where(everywhere, count, 1)
    row = np.repeat(np.arange(len(about)), of_broker)
    spread = known[2][ranges(first[everywhere], count[everywhere])]
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
    """
    on = _configured_periods(configs)
    wanted = groups.has_retry[on.group]
    on = _Configured(*(a[wanted] for a in (on.group, on.topic, on.broker, on.start, on.end)))
    keys = pair(subscribed.group, subscribed.topic)
    first = np.searchsorted(keys, pair(on.group, on.topic))
    count = np.searchsorted(keys, pair(on.group, on.topic), side="right") - first
    one = np.repeat(np.arange(len(on.group)), count)
    other = ranges(first, count)
    start = np.maximum(on.start[one], subscribed.start[other])
    both = start < np.minimum(on.end[one], subscribed.end[other])
    group, broker, start = on.group[one][both], on.broker[one][both], start[both]
    order = np.lexsort((start, broker, group))
    group, broker, start = group[order], broker[order], start[order]
    born = first_of_run(group, broker)
    ones = np.ones(int(born.sum()), np.int64)
    return TopicConfigs(
        group[born], groups.retry_topic[group[born]], broker[born], start[born], ones, ones > 0
    )


def retry_periods(creations: TopicConfigs) -> TopicPeriods:
    """The retry topics, each active from its first queue on."""
    order = np.lexsort((creations.ordinal, creations.group))
    first = order[first_of_run(creations.group[order])]
    never = np.full(len(first), NEVER)
    return TopicPeriods(
        creations.group[first], creations.topic[first], creations.ordinal[first], never
    )


@dataclass(frozen=True, slots=True)
class _Configured:
    group: Ints
    topic: Ints
    broker: Ints
    start: Ints
    end: Ints


def _configured_periods(configs: TopicConfigs) -> _Configured:
    group, topic, broker, on = configs.group, configs.topic, configs.broker, configs.configured
    first = first_of_run(group, topic, broker)
    turns = on != np.where(first, False, np.roll(on, 1))
    group, topic, broker, on = (a[turns] for a in (group, topic, broker, on))
    ordinal = configs.ordinal[turns]
    end = np.where(last_of_run(group, topic, broker), NEVER, np.roll(ordinal, -1))
    return _Configured(group[on], topic[on], broker[on], ordinal[on], end[on])


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
    first = first_of_run(of)
    config, broker_event = last_true(is_config, first), last_true(~is_config, first)
    up = np.where(broker_event >= 0, value[broker_event], 1)
    after = np.where(config >= 0, value[config], 0) * up
    before = np.where(first, 0, np.roll(after, 1))
    changed = before != after
    return known, RouteChanges(of[changed], at[changed], before[changed], after[changed])


def _broker_events(events: Events, known: TopicBrokers) -> tuple[Ints, Ints]:
    """(ordinal, topic broker) of every broker event and every topic on that broker."""
    order = np.lexsort((known.broker, known.group))
    keys = pair(known.group[order], known.broker[order])
    about = np.flatnonzero((events.type == UP) | (events.type == DOWN))
    wanted = pair(events.group[about], events.broker[about])
    first = np.searchsorted(keys, wanted)
    count = np.searchsorted(keys, wanted, side="right") - first
    return np.repeat(about, count), order[ranges(first, count)]


def index_of(known: TopicBrokers, group: Ints, topic: Ints, broker: Ints) -> Ints:
    """The topic broker of each row; -1: never configured."""
    distinct, rank = np.unique(pair(known.group, known.topic), return_inverse=True)
    return find(pair(rank, known.broker), pair(find(distinct, pair(group, topic)), broker))
