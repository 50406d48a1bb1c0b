"""The topics of each group over time: those that members read or left behind, and retry topics."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events
from rebalance_core.kernels.segments import Ints
from rebalance_core.kernels.topic_periods import (
    GroupTopics,
    LiveCounts,
    TopicPeriods,
    joined_periods,
)


@dataclass(frozen=True, slots=True)
class RetryTopics:
    """The groups' retry topics, each from its first queue on."""

    constant: TopicPeriods
    """The topics of groups in which every member subscribes to the retry topic; they never end."""
    varying: TopicPeriods
    """The topics of groups that also have BROADCASTING members, while another member is live,
    whether or not they have been created.
    """
    created: TopicPeriods
    """The topics of all groups, from the first queue on."""

    def since_created(self, periods_: TopicPeriods) -> TopicPeriods:
        """Return the periods, with those of varying topics cut to begin with the first queue."""
        varying = segments.distinct(segments.pair(self.varying.group, self.varying.topic))
        keys = segments.pair(periods_.group, periods_.topic)
        created = segments.pair(self.created.group, self.created.topic)
        order = np.argsort(created)
        created_row = segments.find(created[order], keys)
        born = np.append(self.created.start[order], segments.NEVER)[created_row]
        start = np.where(
            segments.find(varying, keys) >= 0, np.maximum(born, periods_.start), periods_.start
        )
        kept = start < periods_.end
        return TopicPeriods(
            periods_.group[kept], periods_.topic[kept], start[kept], periods_.end[kept]
        )


def group_topics(
    events: Events, subscribed: TopicPeriods, live: LiveCounts, retry: RetryTopics
) -> GroupTopics:
    """Return the topics of every group with the periods in which they are active.

    Args:
        events: all events, in order.
        subscribed: as returned by `subscribed_periods`.
        live: as returned by `count_live`.
        retry: the retry topics.
    """
    members = joined_periods(subscribed, retry.varying)
    parts = (
        retry.since_created(members),
        retry.since_created(_left_behind(events, members, live)),
        _once_joined(events, retry.constant, live),
    )
    group, topic, start, end = (
        np.concatenate([getattr(part, name) for part in parts])
        for name in ("group", "topic", "start", "end")
    )
    order = np.lexsort((start, topic, group))
    group, topic, start, end = (a[order] for a in (group, topic, start, end))
    first = segments.first_of_run(group, topic)
    return GroupTopics(group[first], topic[first], np.cumsum(first) - 1, start, end)


@dataclass(frozen=True, slots=True)
class _Empty:
    """Periods [start, end), in ordinals, in which a group has no members."""

    group: Ints
    start: Ints
    end: Ints
    since: Ints
    """The last period that began at the same instant, if the group entered that instant with
    members; -1: none.
    """


def _empty_stretches(events: Events, live: LiveCounts) -> _Empty:
    empty = np.flatnonzero(live.live == 0)
    group, start = live.group[empty], live.ordinal[empty]
    following = np.minimum(empty + 1, len(live.group) - 1)
    joined = (following > empty) & (live.group[following] == group)
    end = np.where(joined, live.ordinal[following], segments.NEVER)
    instant = events.instant[start]
    earlier = np.searchsorted(live.ordinal, np.searchsorted(events.instant, instant)) - 1
    emptied = (earlier >= 0) & (live.group[earlier] == group) & (live.live[earlier] > 0)
    return _Empty(group, start, end, segments.last_true(emptied, segments.first_of_run(group)))


def _once_joined(events: Events, retry: TopicPeriods, live: LiveCounts) -> TopicPeriods:
    """Return the retry topics' periods, except in groups that never entered an instant with
    members.

    Such a group has no topic: a client joined and left at the same instant.
    """
    empty = _empty_stretches(events, live)
    bare = np.flatnonzero((empty.since < 0) & np.isin(empty.group, retry.group))
    by_group = np.argsort(retry.group)
    retry_row = by_group[np.searchsorted(retry.group[by_group], empty.group[bare])]
    bare, retry_row = (
        bare[empty.start[bare] > retry.start[retry_row]],
        retry_row[empty.start[bare] > retry.start[retry_row]],
    )
    row = np.concatenate([np.arange(len(retry.group)), retry_row])
    start = np.concatenate([retry.start, empty.end[bare]])
    order = np.lexsort((start, row))
    row, start = row[order], start[order]
    stops = np.full(len(row), segments.NEVER)
    # every part of a row except the last ends where the group is empty
    closing = np.flatnonzero(~segments.last_of_run(row))
    stops[closing] = empty.start[bare][np.lexsort((empty.start[bare], retry_row))]
    kept = start < stops
    return TopicPeriods(retry.group[row[kept]], retry.topic[row[kept]], start[kept], stops[kept])


def _left_behind(events: Events, subscribed: TopicPeriods, live: LiveCounts) -> TopicPeriods:
    """Return the topics that an empty group keeps: all topics read until its last member left.

    The order in which members leave within an instant carries no information, and a client that
    joins and leaves within the same instant leaves nothing behind.
    """
    empty = _empty_stretches(events, live)
    start, end, since = empty.start, empty.end, empty.since
    instant = events.instant[start]
    has_leave = since >= 0
    start, end, instant = start[has_leave], end[has_leave], instant[since[has_leave]]

    period = np.flatnonzero(subscribed.end < segments.NEVER)
    ended = events.instant[subscribed.end[period]]
    first = np.searchsorted(instant, ended)
    count = np.searchsorted(instant, ended, side="right") - first
    count *= events.instant[subscribed.start[period]] < ended
    stretch, of = segments.ranges(first, count), np.repeat(period, count)
    return TopicPeriods(subscribed.group[of], subscribed.topic[of], start[stretch], end[stretch])
