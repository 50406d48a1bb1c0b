"""When topics were deleted on a broker: what was seen of their queues before is of other queues."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.cells.queues import Queues
from rebalance_core.kernels.codes.coded_groups import CodedGroups
from rebalance_core.kernels.codes.event_rows import type_code
from rebalance_core.kernels.codes.offset_rows import Observations
from rebalance_core.kernels.ownership.prepared_groups import PreparedGroups
from rebalance_core.kernels.segments import NONE, Bools, Ints, bisect, pair, ranges
from rebalance_core.kernels.state.routes import TopicBrokers
from rebalance_core.model.events import TOPIC_DELETED
from rebalance_core.protocol.start_offset import deletes_offsets


@dataclass(frozen=True, slots=True)
class Deletions:
    """One value a deletion of a topic on a broker; by both, in order."""

    topic_broker: Ints
    at_ms: Ints
    forgets: Bools
    """The commits go, too."""

    def last(self, topic_broker: Ints, at_ms: Ints) -> Ints:
        """The last deletion not later than a moment, or `NONE`."""
        first = np.searchsorted(self.topic_broker, topic_broker)
        end = np.searchsorted(self.topic_broker, topic_broker, side="right")
        at = bisect(self.at_ms, first, end, at_ms, right=True) - 1
        return np.where(at >= first, np.append(self.at_ms, NONE)[at], NONE)

    def forgetting(self) -> Deletions:
        """Those with which the commits go."""
        kept = self.forgets
        return Deletions(self.topic_broker[kept], self.at_ms[kept], kept[kept])


def find_deletions(prepared: PreparedGroups) -> Deletions:
    """The deletions of the topics that the groups read, on all brokers or on one."""
    coded, known = prepared.coded, prepared.grid.brokers
    events = coded.events
    about = np.flatnonzero(
        (events.type == type_code(TOPIC_DELETED))
        & (events.topic != coded.groups.retry_topic[events.group])
    )
    topics = pair(known.group, known.topic)
    wanted = pair(events.group[about], events.topic[about])
    first = np.searchsorted(topics, wanted)
    count = np.searchsorted(topics, wanted, side="right") - first
    topic_broker, event = ranges(first, count), np.repeat(about, count)
    mine = (events.broker[event] < 0) | (events.broker[event] == known.broker[topic_broker])
    topic_broker, event = topic_broker[mine], event[mine]
    order = np.lexsort((event, topic_broker))
    topic_broker, event = topic_broker[order], event[order]
    version = _broker_versions(coded, known, topic_broker, event)
    words = coded.names.words.to_pylist()
    codes, row = np.unique(version, return_inverse=True)
    forgets = np.array([deletes_offsets(words[code]) for code in codes.tolist()], np.bool_)
    return Deletions(topic_broker, events.at_ms[event], forgets[row])


def _broker_versions(
    coded: CodedGroups, known: TopicBrokers, topic_broker: Ints, event: Ints
) -> Ints:
    """Word of the version of each deletion's broker at that moment."""
    events, group = coded.events, known.group[topic_broker]
    ups = np.flatnonzero(events.broker_version >= 0)
    ups = ups[np.lexsort((ups, events.broker[ups], events.group[ups]))]
    keys = pair(events.group[ups], events.broker[ups])
    wanted = pair(group, known.broker[topic_broker])
    first = np.searchsorted(keys, wanted)
    end = np.searchsorted(keys, wanted, side="right")
    at = bisect(ups, first, end, event, right=False) - 1
    named = np.append(events.broker_version[ups], NONE)[np.where(at >= first, at, -1)]
    return np.where(named >= 0, named, coded.groups.broker_version[group])


def emptied(prepared: PreparedGroups, queues: Queues, deletions: Deletions) -> Observations:
    """A deletion as a sight of empty queues: whatever is made anew begins at 0."""
    order = np.argsort(queues.topic_broker, kind="stable")
    of = queues.topic_broker[order]
    first = np.searchsorted(of, deletions.topic_broker)
    count = np.searchsorted(of, deletions.topic_broker, side="right") - first
    queue = order[ranges(first, count)]
    at_ms = np.repeat(deletions.at_ms, count)
    known, topic_broker = prepared.grid.brokers, queues.topic_broker[queue]
    group, nothing = known.group[topic_broker], np.zeros(len(queue), np.int64)
    zero = prepared.coded.groups.empty_queue_is_zero[group]
    return Observations(
        group, known.topic[topic_broker], known.broker[topic_broker], queues.queue_id[queue],
        at_ms, nothing, nothing, zero, ~zero,
    )  # fmt: skip
