"""Deletions of topics on a broker; earlier observations belong to other queues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import type_code
from rebalance_core.kernels.encoded_groups import EncodedGroups
from rebalance_core.kernels.encoded_offsets import Observations
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.queues import Queues
from rebalance_core.kernels.routes import TopicBrokers
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.events import TOPIC_DELETED
from rebalance_core.protocol.commits import (
    deletes_offsets,
)


@dataclass(frozen=True, slots=True)
class Deletions:
    """Deletions of topics on brokers, sorted by topic broker, then in order."""

    topic_broker: Ints
    at_ms: Ints
    forgets: Bools
    """Whether the deletion also removes the commits."""

    def last(self, topic_broker: Ints, at_ms: Ints) -> Ints:
        """Return the last deletion up to a given moment, or `NONE`."""
        first, end = segments.equal_range(self.topic_broker, topic_broker)
        row = segments.bisect(self.at_ms, first, end, at_ms, right=True) - 1
        return np.where(row >= first, np.append(self.at_ms, segments.NONE)[row], segments.NONE)

    def forgetting(self) -> Deletions:
        """Return the deletions that also remove the commits."""
        kept = self.forgets
        return Deletions(self.topic_broker[kept], self.at_ms[kept], kept[kept])


def find_deletions(prepared: PreparedGroups) -> Deletions:
    """Return the deletions of the topics that the groups read, on all brokers or on one."""
    encoded, topic_brokers = prepared.encoded, prepared.grid.brokers
    events = encoded.events
    about = np.flatnonzero(events.type == type_code(TOPIC_DELETED))
    topics = segments.pair(topic_brokers.group, topic_brokers.topic)
    wanted = segments.pair(events.group[about], events.topic[about])
    asker, topic_broker = segments.matching(topics, wanted)
    event = about[asker]
    mine = (events.broker[event] < 0) | (events.broker[event] == topic_brokers.broker[topic_broker])
    topic_broker, event = topic_broker[mine], event[mine]
    order = np.lexsort((event, topic_broker))
    topic_broker, event = topic_broker[order], event[order]
    version = _broker_versions(encoded, topic_brokers, topic_broker, event)
    words = encoded.names.words.to_pylist()
    codes, row = np.unique(version, return_inverse=True)
    forgets = np.array([deletes_offsets(words[code]) for code in codes.tolist()], np.bool_)
    return Deletions(topic_broker, events.at_ms[event], forgets[row])


def _broker_versions(
    encoded: EncodedGroups, topic_brokers: TopicBrokers, topic_broker: Ints, event: Ints
) -> Ints:
    """Return the word for the broker's version at the moment of each deletion."""
    events, group = encoded.events, topic_brokers.group[topic_broker]
    ups = np.flatnonzero(events.broker_version >= 0)
    ups = ups[np.lexsort((ups, events.broker[ups], events.group[ups]))]
    keys = segments.pair(events.group[ups], events.broker[ups])
    wanted = segments.pair(group, topic_brokers.broker[topic_broker])
    first, end = segments.equal_range(keys, wanted)
    last_up = segments.bisect(ups, first, end, event, right=False) - 1
    named = np.append(events.broker_version[ups], segments.NONE)[
        np.where(last_up >= first, last_up, -1)
    ]
    return np.where(named >= 0, named, encoded.groups.broker_version[group])


def emptied(prepared: PreparedGroups, queues: Queues, deletions: Deletions) -> Observations:
    """Return deletions as observations of empty queues, since a recreated queue begins at 0."""
    order = np.argsort(queues.topic_broker, kind="stable")
    deletion, row = segments.matching(queues.topic_broker[order], deletions.topic_broker)
    queue, at_ms = order[row], deletions.at_ms[deletion]
    topic_brokers, topic_broker = prepared.grid.brokers, queues.topic_broker[queue]
    group, nothing = topic_brokers.group[topic_broker], np.zeros(len(queue), np.int64)
    zero = prepared.encoded.groups.empty_queue_is_zero[group]
    return Observations(
        group=group,
        topic=topic_brokers.topic[topic_broker],
        broker=topic_brokers.broker[topic_broker],
        queue_id=queues.queue_id[queue],
        at_ms=at_ms,
        min_offset=nothing,
        max_offset=nothing,
        zero=zero,
        never_zero=~zero,
    )
