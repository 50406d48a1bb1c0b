"""The topics of each group over time: those that members read or left behind, retry topics,
popped ones.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.coded_groups import (
    GONE,
    NO_SHARE,
    CodedGroups,
    Events,
    Membership,
    type_code,
)
from rebalance_core.kernels.codes import TopicSets
from rebalance_core.kernels.group_rows import TYPES
from rebalance_core.kernels.segments import Bools, Ints, Periods
from rebalance_core.model.events import REQUEST_MODE
from rebalance_core.model.group_settings import PROXY_REBALANCE, PUSH
from rebalance_core.protocol.members import asks_broker

# Which topics each group reads, and when.
#
# A topic is *subscribed* while a live member subscribes it, and *active* while it is one of the
# group's topics: an empty group keeps those it had before its last member went until somebody
# joins.


@dataclass(frozen=True, slots=True)
class TopicPeriods:
    """Periods [start, end) in ordinals, by group, topic and start; no two of a topic overlap."""

    group: Ints
    topic: Ints
    start: Ints
    end: Ints

    def where(self, rows: Bools) -> TopicPeriods:
        """Some of the periods."""
        return TopicPeriods(*(getattr(self, f.name)[rows] for f in fields(self)))


@dataclass(frozen=True, slots=True)
class GroupTopics:
    """Every topic a group ever reads, by group and topic, with the periods it is active in."""

    group: Ints
    topic: Ints
    of_period: Ints
    """Which group topic each period is about."""
    start: Ints
    end: Ints

    @property
    def periods(self) -> TopicPeriods:
        """Return when each of them is active."""
        of = self.of_period
        return TopicPeriods(self.group[of], self.topic[of], self.start, self.end)

    def index(self, group: Ints, topic: Ints) -> Ints:
        """The group topic of each (group, topic); -1: never read."""
        return segments.find(segments.pair(self.group, self.topic), segments.pair(group, topic))

    def active(self, group_topic: Ints, ordinal: Ints) -> Bools:
        """True where the group topic is active right after the event of this ordinal."""
        active = Periods(self.of_period, np.zeros_like(self.of_period), self.start, self.end)
        return active.at(group_topic, np.zeros_like(group_topic), ordinal) >= 0


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
    return LiveCounts(
        group, changes.ordinal[order], _running(step[order], segments.first_of_run(group))
    )


def _running(steps: Ints, first: Bools) -> Ints:
    """Sum of the steps so far in each segment."""
    total = np.cumsum(steps)
    starts = np.flatnonzero(first)
    begin = total[starts] - steps[starts]
    return total - np.repeat(begin, np.diff(np.append(starts, len(steps))))


def subscribed_periods(
    membership: Membership, sets: TopicSets, states: Bools | None = None
) -> TopicPeriods:
    """Return when each topic is subscribed by some live member.

    Args:
        membership: states of the members.
        sets: of topics.
        states: by state: whether members in it count; None: all do.
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
    """Return when some member in one of these states is live, as periods of one topic of its group.

    Args:
        membership: states of the members.
        states: by state: whether it is one of these.
        groups: by group: whether it is wanted.
        topic: by group.
    """
    changes = membership.changes
    order = np.argsort(changes.ordinal)
    group = membership.processes.group[changes.process]
    order = order[groups[group[order]]]
    group, ordinal = group[order], changes.ordinal[order]
    live = np.append(states, False)  # gone is the last
    step = live[changes.after[order]].astype(np.int64) - live[changes.before[order]]
    return periods(group, topic[group], ordinal, _running(step, segments.first_of_run(group)) > 0)


def joined_periods(one: TopicPeriods, other: TopicPeriods) -> TopicPeriods:
    """The periods of both, by group, topic and start."""
    columns = [np.concatenate([getattr(one, f.name), getattr(other, f.name)]) for f in fields(one)]
    order = np.lexsort((columns[2], columns[1], columns[0]))
    return TopicPeriods(*(column[order] for column in columns))


def _topics_of(
    membership: Membership, sets: TopicSets, state: Ints, counts: Bools, step: int
) -> tuple[Ints, Ints, Ints]:
    """(change, topic, step) of every topic that the state of a change subscribes."""
    live = np.flatnonzero((state != GONE) & np.append(counts, False)[state])
    rows, topics = sets.members(membership.states.subscriptions[state[live]])
    return live[rows], topics, np.full(len(rows), step, np.int64)


def periods(group: Ints, topic: Ints, ordinal: Ints, on: Bools) -> TopicPeriods:
    """Periods in which a topic is on; it is off before its first row."""
    row, end = segments.on_periods((group, topic), ordinal, on)
    return TopicPeriods(group[row], topic[row], ordinal[row], end)


# The topics of each group over time: those that members read or left behind, and retry topics.


@dataclass(frozen=True, slots=True)
class RetryTopics:
    """The groups' retry topics, each from its first queue on."""

    constant: TopicPeriods
    """Of groups in which every member subscribes it; they never end."""
    varying: TopicPeriods
    """Of groups with BROADCASTING members too: while another member is live, created or not."""
    created: TopicPeriods
    """Of all groups, from the first queue on."""

    def since_created(self, periods_: TopicPeriods) -> TopicPeriods:
        """Some periods, those of the varying topics not before the first queue."""
        varying = np.unique(segments.pair(self.varying.group, self.varying.topic))
        keys = segments.pair(periods_.group, periods_.topic)
        created = segments.pair(self.created.group, self.created.topic)
        order = np.argsort(created)
        at = segments.find(created[order], keys)
        born = np.append(self.created.start[order], segments.NEVER)[at]
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
    """The topics of every group with the periods they are active in.

    Args:
        events: all events, in order.
        subscribed: as `subscribed_periods` gives them.
        live: as `count_live` gives them.
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
    """Stretches [start, end) in ordinals in which a group has no member, by group and start."""

    group: Ints
    start: Ints
    end: Ints
    since: Ints
    """Which of them last began in an instant that the group entered with members; -1: none."""


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
    """The retry topics' periods without stretches of groups that entered no instant with members.

    Such a group has no topic: whoever came in an instant went in it.
    """
    empty = _empty_stretches(events, live)
    bare = np.flatnonzero((empty.since < 0) & np.isin(empty.group, retry.group))
    by_group = np.argsort(retry.group)
    at = by_group[np.searchsorted(retry.group[by_group], empty.group[bare])]
    bare, at = bare[empty.start[bare] > retry.start[at]], at[empty.start[bare] > retry.start[at]]
    row = np.concatenate([np.arange(len(retry.group)), at])
    start = np.concatenate([retry.start, empty.end[bare]])
    order = np.lexsort((start, row))
    row, start = row[order], start[order]
    stops = np.full(len(row), segments.NEVER)
    # all but a row's last part end where one is empty
    closing = np.flatnonzero(~segments.last_of_run(row))
    stops[closing] = empty.start[bare][np.lexsort((empty.start[bare], at))]
    kept = start < stops
    return TopicPeriods(retry.group[row[kept]], retry.topic[row[kept]], start[kept], stops[kept])


def _left_behind(events: Events, subscribed: TopicPeriods, live: LiveCounts) -> TopicPeriods:
    """Return what an empty group keeps: all topics read until its last member went.

    In what order members go within an instant says nothing, and who comes and goes within one
    leaves nothing behind.
    """
    empty = _empty_stretches(events, live)
    start, end, since = empty.start, empty.end, empty.since
    instant = events.instant[start]
    known = since >= 0
    start, end, instant = start[known], end[known], instant[since[known]]

    period = np.flatnonzero(subscribed.end < segments.NEVER)
    ended = events.instant[subscribed.end[period]]
    first = np.searchsorted(instant, ended)
    count = np.searchsorted(instant, ended, side="right") - first
    count *= events.instant[subscribed.start[period]] < ended
    stretch, of = segments.ranges(first, count), np.repeat(period, count)
    return TopicPeriods(subscribed.group[of], subscribed.topic[of], start[stretch], end[stretch])


# When the topics of each group are popped: by request mode, who asks a broker, and by proxies.
#
# Ordinals all the way; `ownership.sharing` spreads them over the epochs (rocketmq.md §2.8, §14).


@dataclass(frozen=True, slots=True)
class Modes:
    """The mode that each REQUEST_MODE gives a topic; by group, topic and ordinal."""

    group: Ints
    topic: Ints
    ordinal: Ints
    before: Ints
    """Share number, `NO_SHARE` while the mode is PULL."""
    after: Ints


@dataclass(frozen=True, slots=True)
class PopModes:
    """Who pops which topics, and when."""

    modes: Modes
    asked: TopicPeriods
    """When some member asks brokers for its queues of a topic."""
    proxied: TopicPeriods
    """When some member behind a proxy subscribes a topic."""

    def any(self) -> bool:
        """Some member pops something, some time."""
        return len(self.proxied.group) > 0 or len(self.asked.group) > 0

    def groups(self, count: int) -> Bools:
        """By group, of so many: some member pops something, some time."""
        popping = np.zeros(count, np.bool_)
        popping[self.proxied.group] = popping[self.asked.group] = True
        return popping

    def causing(self) -> Ints:
        """Ordinals of events that change how a topic is popped."""
        modes = self.modes
        return modes.ordinal[(modes.before != modes.after) & self._is_asked(modes, modes.ordinal)]

    def changed(self, instant: Ints, last: Ints) -> Ints:
        """Instants before and after which a topic is popped otherwise.

        Args:
            instant: by event.
            last: by instant: the last event.
        """
        modes = self.modes
        at = instant[modes.ordinal]
        first, end = segments.ends_of_runs(modes.group, modes.topic, at)
        asked = self._is_asked(modes, last[at])[end]
        return at[end][(modes.before[first] != modes.after[end]) & asked]

    def _is_asked(self, modes: Modes, ordinal: Ints) -> Bools:
        asked = Periods(self.asked.group, self.asked.topic, self.asked.start, self.asked.end)
        return asked.at(modes.group, modes.topic, ordinal) >= 0

    def popped(self) -> tuple[TopicPeriods, Ints]:
        """Return when the mode of a topic is POP, and the share number of each period."""
        modes = self.modes
        end = np.where(
            segments.last_of_run(modes.group, modes.topic),
            segments.NEVER,
            np.roll(modes.ordinal, -1),
        )
        on = modes.after != NO_SHARE
        periods = TopicPeriods(modes.group, modes.topic, modes.ordinal, end)
        return periods.where(on), modes.after[on]


def find_pops(coded: CodedGroups, membership: Membership) -> PopModes:
    """Follow the request modes and the members that pop."""
    modes = _modes(coded.events)
    nobody = TopicPeriods(*(np.zeros(0, np.int64) for _ in range(4)))
    asked = proxied = nobody
    behind = behind_proxies(coded, membership)
    if behind.any():
        proxied = subscribed_periods(membership, coded.topic_sets, behind)
    if (modes.after != NO_SHARE).any():
        asked = subscribed_periods(membership, coded.topic_sets, asks(coded, membership))
        asked = asked.where(asking_groups(coded)[asked.group])
    return PopModes(modes, asked, proxied)


def _modes(events: Events) -> Modes:
    ordinal = np.flatnonzero(events.type == type_code(REQUEST_MODE))
    ordinal = ordinal[np.lexsort((ordinal, events.topic[ordinal], events.group[ordinal]))]
    group, topic, after = (a[ordinal] for a in (events.group, events.topic, events.share))
    before = np.where(segments.first_of_run(group, topic), NO_SHARE, np.roll(after, 1))
    return Modes(group, topic, ordinal, before, after)


def behind_proxies(coded: CodedGroups, membership: Membership) -> Bools:
    """By state: its members are behind a proxy."""
    proxied = np.isin(coded.names.words, [PROXY_REBALANCE])
    return proxied[membership.states.rebalance_mode]


def asks(coded: CodedGroups, membership: Membership) -> Bools:
    """By state: its members ask a broker, in `asking_groups`."""
    states, texts = membership.states, coded.names.words.to_pylist()
    words = np.stack([states.rebalance_mode, states.message_model, states.rules])
    distinct, of = np.unique(words, axis=1, return_inverse=True)
    asking = [
        asks_broker(texts[mode], PUSH, texts[model], False, texts[version])
        for mode, model, version in distinct.T.tolist()
    ]
    return np.array(asking, np.bool_)[of.reshape(-1)]


def asking_groups(coded: CodedGroups) -> Bools:
    """By group: its members ask a broker, if they are set to."""
    groups = coded.groups
    return (groups.consumer_type == TYPES.index(PUSH)) & ~groups.ordered
