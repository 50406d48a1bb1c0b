"""Readable queues of every topic on every broker in every epoch, and brokers without a master."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.coded_groups import Events, type_code
from rebalance_core.kernels.epochs import Epochs, RouteChanges, TopicBrokers
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topics import GroupTopics, TopicPeriods
from rebalance_core.model.events import MASTER_DOWN, MASTER_UP

# Readable queues of every topic on every broker in every epoch.
#
# A *cell* of the topic grid is one group topic in one epoch of its group, a cell of the broker
# grid one topic on one broker in one epoch; the epochs of one topic (on one broker) stand
# together.

Places: TypeAlias = tuple[Ints, Ints]
"""By broker cell, see `places`."""


@dataclass(frozen=True, slots=True)
class Grid:
    """The readable queues, by topic and by broker."""

    topics: GroupTopics
    brokers: TopicBrokers
    topic_of: Ints
    """The group topic of each topic broker."""
    topic_first: Ints
    """The first cell of each group topic, and the end."""
    broker_first: Ints
    """The first cell of each topic broker, and the end."""
    active: Bools
    """By topic cell: it is one of the group's topics."""
    read: Bools
    """By topic cell: a live member subscribes it."""
    queues: Ints
    """By topic cell: its readable queues."""
    frozen: Bools
    """By topic cell: members subscribe it and there is nothing to read."""
    readable: Ints
    """By broker cell."""
    most_readable: Ints
    """By topic broker: the most in any epoch."""
    elsewhere: Bools
    """By topic cell: this grid does not say who takes from its queues."""

    @property
    def topic_cell(self) -> Ints:
        """By broker cell: the cell of its topic."""
        return segments.ranges(self.topic_first[:-1][self.topic_of], np.diff(self.broker_first))

    def only(self, cells: Bools) -> Grid:
        """The same with nothing but these topic cells."""
        readable = self.readable * cells[self.topic_cell]
        frozen = self.frozen & cells
        return replace(
            self, active=self.active & cells, read=self.read & cells, queues=self.queues * cells,
            frozen=frozen, readable=readable,
            most_readable=segments.extreme(np.maximum, readable, self.broker_first, 0),
            elsewhere=~cells,
        )  # fmt: skip


def build_grid(
    events: Events,
    epochs: Epochs,
    topics: GroupTopics,
    subscribed: TopicPeriods,
    retry: TopicPeriods,
    brokers: TopicBrokers,
    routes: RouteChanges,
) -> Grid:
    """Spread topics, subscriptions and routes over the epochs."""
    epochs_of = np.diff(epochs.of_group)
    topic_first = segments.pointers(epochs_of[topics.group])
    topic_of = topics.index(brokers.group, brokers.topic)
    broker_first = segments.pointers(epochs_of[brokers.group])
    given = events, epochs, topics, topic_first
    active = spread(*given, topics.periods)
    read = spread(*given, subscribed)
    epoch = segments.ranges(epochs.of_group[:-1][topics.group], np.diff(topic_first))
    retry_cell = _cells_of(topics.index(retry.group, retry.topic), topic_first, len(read))
    read |= retry_cell & active & (epochs.live[epoch] > 0)
    per_broker = _readable(events, epochs, brokers, broker_first, routes)
    broker_cells = np.diff(broker_first)
    topic_cell = segments.ranges(topic_first[:-1][topic_of], broker_cells)
    per_broker *= active[topic_cell]
    queues = np.bincount(topic_cell, per_broker, minlength=len(active)).astype(np.int64)
    frozen = read & (queues == 0)
    return Grid(
        topics=topics,
        brokers=brokers,
        topic_of=topic_of,
        topic_first=topic_first,
        broker_first=broker_first,
        active=active,
        read=read,
        queues=queues,
        frozen=frozen,
        readable=per_broker,
        most_readable=segments.extreme(np.maximum, per_broker, broker_first, 0),
        elsewhere=np.zeros(len(active), np.bool_),
    )


def spread(
    events: Events, epochs: Epochs, topics: GroupTopics, topic_first: Ints, given: TopicPeriods
) -> Bools:
    """By topic cell: whether one of these periods covers the end of the instant."""
    ones = np.ones(len(given.start), np.int64)
    return spread_values(events, epochs, topics, topic_first, given, ones) > 0


def spread_values(
    events: Events,
    epochs: Epochs,
    topics: GroupTopics,
    topic_first: Ints,
    given: TopicPeriods,
    values: Ints,
) -> Ints:
    """By topic cell: the value of the one period that covers the end of the instant; 0: none."""
    group_topic = topics.index(given.group, given.topic)
    known = group_topic >= 0
    given, values, group_topic = given.where(known), values[known], group_topic[known]
    offset = topic_first[:-1][group_topic] - epochs.of_group[:-1][given.group]
    step = np.zeros(topic_first[-1] + 1, np.int64)
    np.add.at(step, offset + _epoch_after(events, epochs, given.group, given.start), values)
    np.add.at(step, offset + _epoch_after(events, epochs, given.group, given.end), -values)
    return np.cumsum(step[:-1])


def _cells_of(group_topic: Ints, topic_first: Ints, count: int) -> Bools:
    """True in every cell of these group topics."""
    mask = np.zeros(count, np.bool_)
    first = topic_first[:-1][group_topic]
    mask[segments.ranges(first, topic_first[1:][group_topic] - first)] = True
    return mask


def _epoch_after(events: Events, epochs: Epochs, group: Ints, ordinal: Ints) -> Ints:
    """The first epoch of the group that knows of an event; the end of the group's if none does."""
    happens = ordinal < segments.NEVER
    instant = events.instant[np.where(happens, ordinal, 0)]
    return np.where(happens, epochs.from_instant[instant], epochs.of_group[group + 1])


def _readable(
    events: Events, epochs: Epochs, brokers: TopicBrokers, broker_first: Ints, routes: RouteChanges
) -> Ints:
    """By broker cell: the readable queues, whether or not the topic is active."""
    group = brokers.group[routes.topic_broker]
    epoch = _epoch_after(events, epochs, group, routes.ordinal)
    inside = epoch < epochs.of_group[group + 1]
    of, epoch, after = routes.topic_broker[inside], epoch[inside], routes.after[inside]
    step = np.zeros(broker_first[-1] + 1, np.int64)
    offset = broker_first[:-1][of] - epochs.of_group[:-1][group[inside]]
    np.add.at(step, offset + epoch, after - routes.before[inside])
    last = segments.last_of_run(of)
    np.add.at(step, broker_first[1:][of[last]], -after[last])
    return np.cumsum(step)[:-1]


def places(grid: Grid, counts: Ints, key: Ints | None = None) -> Places:
    """Number the queues of one topic over those brokers that count.

    Args:
        grid: of all groups.
        counts: by broker cell: queues that count.
        key: by topic broker: brokers of one topic with equal keys are numbered together; None:
            all of them.

    Returns:
        By broker cell: the number of queues on earlier brokers, and on all brokers, of that key.
        Cost: a stable sort of the cells, which are in order but for the epochs of their brokers.
    """
    keys: tuple[Ints, ...] = (grid.topic_cell,)
    if key is not None:
        keys = (np.repeat(key, np.diff(grid.broker_first)), *keys)
    cell = np.lexsort(keys)  # brokers keep their order
    first = segments.first_of_run(*(of_cell[cell] for of_cell in keys))
    bounds = np.append(np.flatnonzero(first), len(cell))
    sizes, counted = np.diff(bounds), segments.pointers(counts[cell])
    until = counted[bounds]
    before, total = np.empty_like(counts), np.empty_like(counts)
    before[cell] = counted[:-1] - np.repeat(until[:-1], sizes)
    total[cell] = np.repeat(np.diff(until), sizes)
    return before, total


# Brokers without a master (rocketmq.md §15): when, and what that does to epochs.


@dataclass(frozen=True, slots=True)
class OutageSpans:
    """Stretches of time in which brokers had no master; by group, broker and time."""

    group: Ints
    broker: Ints
    down_ms: Ints
    up_ms: Ints
    """`NEVER` while it lasts."""
    mode: Ints
    """What the slaves do, the last that is known of it: as `Events.mode`."""

    def of(self, group: Ints, broker: Ints) -> tuple[Ints, Ints]:
        """Find where the outages of each group's broker begin, and end; broker -1 has none."""
        wanted = segments.pair(group, np.maximum(broker, 0))
        first, end = segments.equal_range(segments.pair(self.group, self.broker), wanted)
        return np.where(broker < 0, end, first), end


@dataclass(frozen=True, slots=True)
class MasterTurns:
    """The effect of each instant with MASTER events of a broker; by group, broker and instant."""

    event: Ints
    """The last of its events."""
    down: Bools
    """The broker has no master after it."""
    was_down: Bools
    """It had none before."""
    until_ms: Ints
    """The latest end of its events' windows."""


def master_turns(events: Events) -> MasterTurns:
    """Every instant with MASTER events of a broker; they count together."""
    down = events.type == type_code(MASTER_DOWN)
    event = np.flatnonzero(down | (events.type == type_code(MASTER_UP)))
    event = event[np.lexsort((event, events.broker[event], events.group[event]))]
    keys = events.group[event], events.broker[event], events.instant[event]
    first, last = segments.ends_of_runs(*keys)
    bounds = np.append(np.flatnonzero(first), len(event))
    window_ms = segments.extreme(np.maximum, events.window_ms[event], bounds, 0)
    event = event[last]
    now = down[event]
    was = np.roll(now, 1)
    was[segments.first_of_run(events.group[event], events.broker[event])] = False
    return MasterTurns(event, now, was, events.at_ms[event] + window_ms)


def find_outages(events: Events) -> OutageSpans:
    """The outages of all groups' brokers; the events of one instant count together."""
    turns = master_turns(events)
    group, broker = events.group[turns.event], events.broker[turns.event]
    begins = np.flatnonzero(turns.down & ~turns.was_down)
    ends = np.append(np.flatnonzero(~turns.down & turns.was_down), len(turns.event))
    of_broker = np.flatnonzero(segments.last_of_run(group, broker)) + 1
    limit = of_broker[np.searchsorted(of_broker, begins, side="right")]
    end = np.minimum(ends[np.searchsorted(ends, begins)], limit)
    up_ms = np.append(events.at_ms[turns.event], segments.NEVER)[end]
    return OutageSpans(
        group[begins],
        broker[begins],
        events.at_ms[turns.event[begins]],
        np.where(end < limit, up_ms, segments.NEVER),
        events.mode[turns.event[end - 1]],
    )


def with_master_windows(events: Events, epochs: Epochs, grid: Grid) -> Epochs:
    """The epochs, their windows open while passes may differ as a master went or came.

    Of a broker with queues that the group can read then: a later epoch has settled no sooner, and
    the epoch at the time is prolonged while one of its windows is open.
    """
    turns = master_turns(events)
    mode = events.mode[turns.event]
    same = (turns.down == turns.was_down) & (~turns.down | (mode == np.roll(mode, 1)))
    event, until_ms = turns.event[~same], turns.until_ms[~same]
    instant, group = events.instant[event], events.group[event]
    begun = epochs.at_instant[instant]
    epoch = np.where(begun >= 0, begun, epochs.from_instant[instant] - 1)
    since = epochs.of_group[group] + (begun >= 0)  # the first epoch of all waits for nothing
    known = np.flatnonzero((epoch >= since) & (epoch < epochs.of_group[group + 1]))
    known = known[_reads(epochs, grid, group[known], events.broker[event[known]], epoch[known])]
    if not len(known):
        return epochs
    epoch, begun, until_ms, event = epoch[known], begun[known], until_ms[known], event[known]
    settled_ms = np.zeros(len(epochs) + 1, np.int64)
    after = np.where(begun >= 0, epoch, epoch + 1)
    within = after < epochs.of_group[events.group[event] + 1]
    np.maximum.at(settled_ms, after[within], until_ms[within])
    settled_ms = segments.running_max(settled_ms[:-1], epochs.group)
    latest_ms = np.maximum(epochs.latest_ms, settled_ms)
    retry_latest_ms = np.maximum(epochs.retry_latest_ms, settled_ms)
    during = np.flatnonzero(begun < 0)
    instants, of = np.unique(events.instant[event[during]], return_inverse=True)
    ends_ms, at = np.zeros(len(instants), np.int64), np.zeros(len(instants), np.int64)
    np.maximum.at(ends_ms, of, until_ms[during])
    at[of] = epoch[during]
    at_ms = np.zeros(len(instants), np.int64)
    at_ms[of] = events.at_ms[event[during]]
    rank = segments.rank(at)
    for turn in range(int(rank.max(initial=-1)) + 1):
        some = np.flatnonzero(rank == turn)
        e = at[some]
        for windows in (latest_ms, retry_latest_ms):
            still = at_ms[some] <= windows[e]
            windows[e[still]] = np.maximum(windows[e[still]], ends_ms[some[still]])
        retry_latest_ms[e] = np.maximum(retry_latest_ms[e], latest_ms[e])
    return replace(epochs, latest_ms=latest_ms, retry_latest_ms=retry_latest_ms)


def _reads(epochs: Epochs, grid: Grid, group: Ints, broker: Ints, epoch: Ints) -> Bools:
    """Whether the group can read a queue of the broker in the epoch."""
    asked, row = grid.brokers.of(group, broker)
    cell = grid.broker_first[row] + epoch[asked] - epochs.of_group[group[asked]]
    found = np.zeros(len(group), np.bool_)
    found[asked[grid.readable[cell] > 0]] = True
    return found


def masterless_queues(events: Events, epochs: Epochs, grid: Grid) -> Ints:
    """By epoch: readable queues of brokers that have no master at some time of it."""
    outages = find_outages(events)
    outage, row = grid.brokers.of(outages.group, outages.broker)
    first, count = grid.broker_first[row], np.diff(grid.broker_first)[row]
    cell = segments.ranges(first, count)
    epoch = segments.ranges(epochs.of_group[outages.group[outage]], count)
    outage = np.repeat(outage, count)
    within = outages.down_ms[outage] < epochs.to_ms[epoch]
    within &= epochs.from_ms[epoch] < outages.up_ms[outage]
    cell, at = np.unique(cell[within], return_index=True)
    found = np.bincount(epoch[within][at], grid.readable[cell], minlength=len(epochs))
    return found.astype(np.int64)
