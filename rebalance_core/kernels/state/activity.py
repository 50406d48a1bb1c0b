"""Which topics each group reads, and when.

A topic is *subscribed* while a live member subscribes it, and *active* while it is one of the
group's topics: an empty group keeps those of its last members until somebody joins.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels.codes.topic_sets import TopicSets
from rebalance_core.kernels.segments import (
    NEVER,
    Bools,
    Ints,
    find,
    first_of_run,
    last_of_run,
    pair,
)
from rebalance_core.kernels.state.membership import GONE, Membership


@dataclass(frozen=True, slots=True)
class TopicPeriods:
    """Periods [start, end) in ordinals, by group, topic and start; no two of a topic overlap."""

    group: Ints
    topic: Ints
    start: Ints
    end: Ints


@dataclass(frozen=True, slots=True)
class GroupTopics:
    """Every topic a group ever reads, by group and topic, with the periods it is active in."""

    group: Ints
    topic: Ints
    of_period: Ints
    """Which group topic each period is about."""
    start: Ints
    end: Ints

    def index(self, group: Ints, topic: Ints) -> Ints:
        """The group topic of each (group, topic); -1: never read."""
        return find(pair(self.group, self.topic), pair(group, topic))

    def active(self, group_topic: Ints, ordinal: Ints) -> Bools:
        """Whether each group topic is active right after the event of this ordinal."""
        if not len(self.start):
            return np.zeros(len(ordinal), np.bool_)
        at = np.searchsorted(
            pair(self.of_period, self.start), pair(group_topic, ordinal), side="right"
        )
        period = np.maximum(at - 1, 0)
        return (at > 0) & (self.of_period[period] == group_topic) & (ordinal < self.end[period])


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """How many processes a group has after each event that changes one; by ordinal."""

    group: Ints
    ordinal: Ints
    live: Ints


def count_live(membership: Membership) -> LiveCounts:
    """Follow the number of live processes of every group."""
    changes = membership.changes
    order = np.argsort(changes.ordinal)
    group = membership.processes.group[changes.process][order]
    step = (changes.after != GONE).astype(np.int64) - (changes.before != GONE)
    return LiveCounts(group, changes.ordinal[order], _running(step[order], first_of_run(group)))


def _running(steps: Ints, first: Bools) -> Ints:
    """Sum of the steps so far in each segment."""
    total = np.cumsum(steps)
    starts = np.flatnonzero(first)
    begin = total[starts] - steps[starts]
    return total - np.repeat(begin, np.diff(np.append(starts, len(steps))))


def subscribed_periods(membership: Membership, sets: TopicSets) -> TopicPeriods:
    """When each topic is subscribed by some live member."""
    changes, group_of = membership.changes, membership.processes.group
    parts = [
        _topics_of(membership, sets, changes.before, -1),
        _topics_of(membership, sets, changes.after, 1),
    ]
    rows, topic, step = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    group, ordinal = group_of[changes.process[rows]], changes.ordinal[rows]
    order = np.lexsort((ordinal, topic, group))
    group, topic, ordinal, step = (a[order] for a in (group, topic, ordinal, step))
    subscribed = _running(step, first_of_run(group, topic)) > 0
    last = last_of_run(group, topic, ordinal)
    return periods(group[last], topic[last], ordinal[last], subscribed[last])


def _topics_of(
    membership: Membership, sets: TopicSets, state: Ints, step: int
) -> tuple[Ints, Ints, Ints]:
    """(change, topic, step) of every topic that the state of a change subscribes."""
    live = np.flatnonzero(state != GONE)
    rows, topics = sets.members(membership.states.subscriptions[state[live]])
    return live[rows], topics, np.full(len(rows), step, np.int64)


def periods(group: Ints, topic: Ints, ordinal: Ints, on: Bools) -> TopicPeriods:
    """Periods in which a topic is on; it is off before its first row."""
    first = first_of_run(group, topic)
    turns = on != np.where(first, False, np.roll(on, 1))
    group, topic, ordinal, on = (a[turns] for a in (group, topic, ordinal, on))
    end = np.where(last_of_run(group, topic), NEVER, np.roll(ordinal, -1))
    return TopicPeriods(group[on], topic[on], ordinal[on], end[on])


def group_topics(subscribed: TopicPeriods, live: LiveCounts, retry: TopicPeriods) -> GroupTopics:
    """The topics of every group with the periods they are active in.

    Args:
        subscribed: as `subscribed_periods` gives them.
        live: as `count_live` gives them.
        retry: the retry topics, each from its creation on.
    """
    end = _until_somebody_joins(subscribed, live)
    group = np.concatenate([subscribed.group, retry.group])
    topic = np.concatenate([subscribed.topic, retry.topic])
    start = np.concatenate([subscribed.start, retry.start])
    end = np.concatenate([end, retry.end])
    order = np.lexsort((start, topic, group))
    group, topic, start, end = (a[order] for a in (group, topic, start, end))
    first = first_of_run(group, topic)
    return GroupTopics(group[first], topic[first], np.cumsum(first) - 1, start, end)


def _until_somebody_joins(subscribed: TopicPeriods, live: LiveCounts) -> Ints:
    """The ends of the periods; one that ends because the group is empty lasts until a join."""
    if not len(live.ordinal):
        return subscribed.end
    at = np.minimum(np.searchsorted(live.ordinal, subscribed.end), len(live.ordinal) - 1)
    emptied = (live.ordinal[at] == subscribed.end) & (live.live[at] == 0)
    following = np.minimum(at + 1, len(live.ordinal) - 1)
    same = (following > at) & (live.group[following] == live.group[at])
    return np.where(emptied, np.where(same, live.ordinal[following], NEVER), subscribed.end)
