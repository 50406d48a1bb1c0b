"""The topics that each group reads, and when it reads them.

A topic is *subscribed* while a live member subscribes to it, and *active* while it is one of the
group's topics: until a client joins, an empty group keeps the topics that it had before its last
member left.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.processes import GONE, Membership
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_sets import TopicSets


@dataclass(frozen=True, slots=True)
class TopicPeriods:
    """Periods [start, end) in ordinals, sorted by group, topic and start, without overlaps."""

    group: Ints
    topic: Ints
    start: Ints
    end: Ints

    def where(self, rows: Bools) -> TopicPeriods:
        """Return the selected periods."""
        return TopicPeriods(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class GroupTopics:
    """Every topic that a group ever reads, with the periods in which it is active."""

    group: Ints
    topic: Ints
    of_period: Ints
    """The group topic of each period."""
    start: Ints
    end: Ints

    @property
    def periods(self) -> TopicPeriods:
        """The periods in which each topic is active."""
        of = self.of_period
        return TopicPeriods(self.group[of], self.topic[of], self.start, self.end)

    def index(self, group: Ints, topic: Ints) -> Ints:
        """Return the group topic of each (group, topic); -1: never read."""
        return segments.find(segments.pair(self.group, self.topic), segments.pair(group, topic))

    def active(self, group_topic: Ints, ordinal: Ints) -> Bools:
        """Return True where the group topic is active just after the event with this ordinal."""
        active = Periods(self.of_period, np.zeros_like(self.of_period), self.start, self.end)
        return active.at(group_topic, np.zeros_like(group_topic), ordinal) >= 0


@dataclass(frozen=True, slots=True)
class LiveCounts:
    """The number of processes in a group after each event that changes it."""

    group: Ints
    ordinal: Ints
    live: Ints


def count_live(membership: Membership) -> LiveCounts:
    """Follow the number of live processes of every group."""
    changes = membership.changes
    order = np.argsort(changes.ordinal)
    group = membership.processes.group[changes.process][order]
    step = (changes.after != GONE).astype(np.int64) - (changes.before != GONE)
    return LiveCounts(
        group, changes.ordinal[order], _running(step[order], segments.first_of_run(group))
    )


def _running(steps: Ints, first: Bools) -> Ints:
    """Return the running sum of the steps, which restarts at each segment."""
    total = np.cumsum(steps)
    starts = np.flatnonzero(first)
    begin = total[starts] - steps[starts]
    return total - np.repeat(begin, np.diff(np.append(starts, len(steps))))


def subscribed_periods(
    membership: Membership, sets: TopicSets, states: Bools | None = None
) -> TopicPeriods:
    """Return the periods in which any live member subscribes to each topic.

    Args:
        membership: the states of the members.
        sets: the sets of topics.
        states: for each state, whether members in that state count; None: all do.
    """
    changes, group_of = membership.changes, membership.processes.group
    counts = np.ones(len(membership.states.version), np.bool_) if states is None else states
    parts = [
        _topics_of(membership, sets, changes.before, counts, -1),
        _topics_of(membership, sets, changes.after, counts, 1),
    ]
    rows, topic, step = (np.concatenate(columns) for columns in zip(*parts, strict=True))
    group, ordinal = group_of[changes.process[rows]], changes.ordinal[rows]
    order = np.lexsort((ordinal, topic, group))
    group, topic, ordinal, step = (a[order] for a in (group, topic, ordinal, step))
    subscribed = _running(step, segments.first_of_run(group, topic)) > 0
    last = segments.last_of_run(group, topic, ordinal)
    return periods(group[last], topic[last], ordinal[last], subscribed[last])


def live_periods(membership: Membership, states: Bools, groups: Bools, topic: Ints) -> TopicPeriods:
    """Return the periods in which any member in one of these states is live, as periods of one
    topic per group.

    Args:
        membership: the states of the members.
        states: for each state, whether it counts.
        groups: for each group, whether it is wanted.
        topic: the topic of each group.
    """
    changes = membership.changes
    order = np.argsort(changes.ordinal)
    group = membership.processes.group[changes.process]
    order = order[groups[group[order]]]
    group, ordinal = group[order], changes.ordinal[order]
    live = np.append(states, False)  # `GONE` is the last
    step = live[changes.after[order]].astype(np.int64) - live[changes.before[order]]
    return periods(group, topic[group], ordinal, _running(step, segments.first_of_run(group)) > 0)


def joined_periods(left: TopicPeriods, right: TopicPeriods) -> TopicPeriods:
    """Return the periods of both, sorted by group, topic and start."""
    columns = [
        np.concatenate([getattr(left, f.name), getattr(right, f.name)]) for f in fields(left)
    ]
    order = np.lexsort((columns[2], columns[1], columns[0]))
    return TopicPeriods(*(column[order] for column in columns))


def _topics_of(
    membership: Membership, sets: TopicSets, state: Ints, counts: Bools, step: int
) -> tuple[Ints, Ints, Ints]:
    """Return (change, topic, step) for every topic to which the state in a change subscribes."""
    live = np.flatnonzero((state != GONE) & np.append(counts, False)[state])
    rows, topics = sets.members(membership.states.subscriptions[state[live]])
    return live[rows], topics, np.full(len(rows), step, np.int64)


def periods(group: Ints, topic: Ints, ordinal: Ints, on: Bools) -> TopicPeriods:
    """Return the periods in which topics are on; a topic is off before its first row."""
    row, end = segments.on_periods((group, topic), ordinal, on)
    return TopicPeriods(group[row], topic[row], ordinal[row], end)
