"""The readable queues of each topic on each broker, according to the events.

See rocketmq.md §6.3.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events, type_code
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.group_rows import Groups
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import GroupTopics, TopicPeriods
from rebalance_core.model.events import BROKER_DOWN, BROKER_UP, TOPIC_CONFIG, TOPIC_DELETED

UP, DOWN = type_code(BROKER_UP), type_code(BROKER_DOWN)
CONFIG, DELETED = type_code(TOPIC_CONFIG), type_code(TOPIC_DELETED)


@dataclass(frozen=True, slots=True)
class TopicBrokers:
    """Every (group, topic, broker), in this order.

    A triple exists if the topic was ever configured there, or CONFIG lists one of its queues.
    """

    group: Ints
    topic: Ints
    broker: Ints

    def topics_on(self, group: Ints, broker: Ints) -> tuple[Ints, Ints]:
        """Return (query index, topic broker) for all topics on each group's broker."""
        on_broker = np.flatnonzero(self.broker >= 0)
        keys = segments.pair(self.group[on_broker], self.broker[on_broker])
        order = np.argsort(keys, kind="stable")
        keys, on_broker = keys[order], on_broker[order]
        asker, row = segments.matching(keys, segments.pair(group, broker))
        return asker, on_broker[row]


@dataclass(frozen=True, slots=True)
class TopicConfigs:
    """Each TOPIC_CONFIG and TOPIC_DELETED about a topic on a broker, sorted by both, then in order.

    ``readable`` is the number of queues that can be read while the broker is up.
    """

    group: Ints
    topic: Ints
    broker: Ints
    ordinal: Ints
    readable: Ints
    configured: Bools

    def where(self, rows: Bools | Ints) -> TopicConfigs:
        """Return some of these rows, or all in another order."""
        return TopicConfigs(*(getattr(self, f.name)[rows] for f in fields(self)))

    def joined(self, other: TopicConfigs) -> TopicConfigs:
        """Return these rows followed by the others."""
        pairs = ((getattr(self, f.name), getattr(other, f.name)) for f in fields(self))
        return TopicConfigs(*(np.concatenate(pair_) for pair_ in pairs))


@dataclass(frozen=True, slots=True)
class RouteChanges:
    """Events that change the number of readable queues, sorted by topic broker, then in order."""

    topic_broker: Ints
    ordinal: Ints
    before: Ints
    after: Ints


def listed_places(encoded: EncodedGroups) -> TopicBrokers:
    """Return the topic brokers for which the CONFIG lists of the groups' members have a queue, in
    any order.
    """
    lists, member_strategies = encoded.lists, encoded.member_strategies
    asker, row = segments.matching(lists.allocation, member_strategies.listed)
    return TopicBrokers(member_strategies.listing[asker], lists.topic[row], lists.broker[row])


def topic_configs(events: Events) -> TopicConfigs:
    """Return the topic events, with events about all brokers repeated for each broker of the
    topic.
    """
    about = np.flatnonzero((events.type == CONFIG) | (events.type == DELETED))
    group, topic, broker = (a[about] for a in (events.group, events.topic, events.broker))
    configured = events.type[about] == CONFIG
    configured_places = np.unique(np.stack([group, topic, broker])[:, configured], axis=1)
    known_topics = segments.pair(configured_places[0], configured_places[1])
    everywhere = ~configured & (broker < 0)
    first, end = segments.equal_range(known_topics, segments.pair(group, topic))
    count = end - first
    of_broker = np.where(everywhere, count, 1)
    row = np.repeat(np.arange(len(about)), of_broker)
    spread = configured_places[2][segments.ranges(first[everywhere], count[everywhere])]
    brokers = broker[row]
    brokers[everywhere[row]] = spread
    order = np.lexsort((about[row], brokers, topic[row], group[row]))
    row = row[order]
    return TopicConfigs(
        group[row],
        topic[row],
        brokers[order],
        about[row],
        events.readable[about[row]] * configured[row],
        configured[row],
    )


def retry_creations(
    configs: TopicConfigs, subscribed: TopicPeriods, groups: Groups
) -> TopicConfigs:
    """Return the creation of each broker's retry queue, when a member first reads a topic there.

    That is the first moment at which a topic is both subscribed to and configured on the broker.

    Args:
        configs: the configs of the topics, or of the retry topics themselves if it is when a member
            first sees one there.
        subscribed: the same topics.
        groups: all groups.
    """
    group, topic, broker, ordinal = configs.group, configs.topic, configs.broker, configs.ordinal
    row, end = segments.on_periods((group, topic, broker), ordinal, configs.configured)
    wanted = groups.has_retry[group[row]]
    row, end = row[wanted], end[wanted]
    keys = segments.pair(subscribed.group, subscribed.topic)
    asker, other = segments.matching(keys, segments.pair(group[row], topic[row]))
    start = np.maximum(ordinal[row][asker], subscribed.start[other])
    both = start < np.minimum(end[asker], subscribed.end[other])
    group, broker, start = group[row][asker][both], broker[row][asker][both], start[both]
    order = np.lexsort((start, broker, group))
    group, broker, start = group[order], broker[order], start[order]
    born = segments.first_of_run(group, broker)
    ones = np.ones(int(born.sum()), np.int64)
    return TopicConfigs(
        group[born], groups.retry_topic[group[born]], broker[born], start[born], ones, ones > 0
    )


def retry_configs(stated: TopicConfigs, creations: TopicConfigs) -> TopicConfigs:
    """Return the retry topics' configuration on each broker: as stated or, failing that, the
    created queue.

    A created queue counts again after a statement ends.

    Args:
        stated: the events about the retry topics themselves.
        creations: as returned by `retry_creations` for all other topics.
    """
    rows = stated.joined(creations)
    created = np.arange(len(rows.ordinal)) >= len(stated.ordinal)
    order = np.lexsort((rows.ordinal, rows.broker, rows.group))
    rows, created = rows.where(order), created[order]
    first = segments.first_of_run(rows.group, rows.broker)
    since = segments.last_true(created, first) >= 0
    holds = segments.last_true(~created, first)  # the last statement, including this row
    covered = created & (holds >= 0) & np.append(rows.configured, False)[holds]
    back = ~rows.configured & since
    rows.readable[back], rows.configured[back] = 1, True
    return rows.where(~covered)


def retry_periods(creations: TopicConfigs) -> TopicPeriods:
    """Return the retry topics, each active from its first queue on."""
    order = np.lexsort((creations.ordinal, creations.group))
    first = order[segments.first_of_run(creations.group[order])]
    never = np.full(len(first), segments.NEVER)
    return TopicPeriods(
        creations.group[first], creations.topic[first], creations.ordinal[first], never
    )


def follow_routes(
    events: Events, configs: TopicConfigs, topics: GroupTopics, listed: TopicBrokers
) -> tuple[TopicBrokers, RouteChanges]:
    """Return the readable queues of every topic that a group reads, on every broker.

    Args:
        events: all events, in order.
        configs: topic configurations, including the creations of retry topics, in any order.
        topics: the topics that the groups read; other topics are left out.
        listed: the topic brokers for which CONFIG lists queues, configured or not.
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
    topic_brokers = TopicBrokers(*distinct)
    about, on = _broker_events(events, topic_brokers)
    ordinals = np.concatenate([ordinal, about])
    of = np.concatenate([config_of, on])
    is_config = np.arange(len(ordinals)) < len(ordinal)
    value = np.concatenate([readable, events.type[about] == UP])
    order = np.lexsort((ordinals, of))
    ordinals, of, is_config, value = ordinals[order], of[order], is_config[order], value[order]
    first = segments.first_of_run(of)
    config = segments.last_true(is_config, first)
    broker_event = segments.last_true(~is_config, first)
    up = np.where(broker_event >= 0, value[broker_event], 1)
    after = np.where(config >= 0, value[config], 0) * up
    before = np.where(first, 0, np.roll(after, 1))
    changed = before != after
    return topic_brokers, RouteChanges(
        of[changed], ordinals[changed], before[changed], after[changed]
    )


def _broker_events(events: Events, topic_brokers: TopicBrokers) -> tuple[Ints, Ints]:
    """Return (ordinal, topic broker) for every broker event and every topic on that broker."""
    about = np.flatnonzero((events.type == UP) | (events.type == DOWN))
    asker, on = topic_brokers.topics_on(events.group[about], events.broker[about])
    return about[asker], on


def index_of(topic_brokers: TopicBrokers, group: Ints, topic: Ints, broker: Ints) -> Ints:
    """Return the topic broker of each row; -1: never configured."""
    distinct, rank = np.unique(
        segments.pair(topic_brokers.group, topic_brokers.topic), return_inverse=True
    )
    return segments.find(
        segments.pair(rank, topic_brokers.broker),
        segments.pair(segments.find(distinct, segments.pair(group, topic)), broker),
    )
