"""The readable queues of every topic on every broker in every epoch.

A *cell* of the topic grid is a group's topic in one epoch of the group; a cell of the broker grid
is a topic on one broker in one epoch; the epochs of a topic (on a broker) are adjacent.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.routes import RouteChanges, TopicBrokers
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.kernels.topic_periods import GroupTopics, TopicPeriods

Places: TypeAlias = tuple[Ints, Ints]
"""Two arrays over broker cells, see `places`."""


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
    """For each topic cell, whether the topic is one of the group's topics."""
    read: Bools
    """For each topic cell, whether a live member subscribes to the topic."""
    queues: Ints
    """The number of readable queues of each topic cell."""
    frozen: Bools
    """For each topic cell, whether members subscribe to the topic while it has no readable
    queue."""
    readable: Ints
    """The number of readable queues of each broker cell."""
    most_readable: Ints
    """The maximum number of readable queues of each topic broker in any epoch."""
    elsewhere: Bools
    """For each topic cell, whether another grid shows which clients take from its queues."""

    @property
    def topic_cell(self) -> Ints:
        """The topic cell of each broker cell."""
        return segments.ranges(self.topic_first[:-1][self.topic_of], np.diff(self.broker_first))

    def only(self, cells: Bools) -> Grid:
        """Return the grid restricted to these topic cells."""
        readable = self.readable * cells[self.topic_cell]
        frozen = self.frozen & cells
        return replace(
            self,
            active=self.active & cells,
            read=self.read & cells,
            queues=self.queues * cells,
            frozen=frozen,
            readable=readable,
            most_readable=segments.extreme(np.maximum, readable, self.broker_first, 0),
            elsewhere=~cells,
        )


def build_grid(
    events: Events,
    epochs: Epochs,
    topics: GroupTopics,
    subscribed: TopicPeriods,
    retry: TopicPeriods,
    brokers: TopicBrokers,
    routes: RouteChanges,
) -> Grid:
    """Build the grid by spreading topics, subscriptions and routes over the epochs."""
    epochs_of = np.diff(epochs.of_group)
    topic_first = segments.pointers(epochs_of[topics.group])
    topic_of = topics.index(brokers.group, brokers.topic)
    broker_first = segments.pointers(epochs_of[brokers.group])
    grid_axes = events, epochs, topics, topic_first
    active = spread(*grid_axes, topics.periods)
    read = spread(*grid_axes, subscribed)
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
    events: Events, epochs: Epochs, topics: GroupTopics, topic_first: Ints, periods: TopicPeriods
) -> Bools:
    """Return, for each topic cell, whether a period covers the end of its instant."""
    ones = np.ones(len(periods.start), np.int64)
    return spread_values(events, epochs, topics, topic_first, periods, ones) > 0


def spread_values(
    events: Events,
    epochs: Epochs,
    topics: GroupTopics,
    topic_first: Ints,
    periods: TopicPeriods,
    values: Ints,
) -> Ints:
    """Return the value of the period that covers the end of each topic cell's instant, or 0."""
    group_topic = topics.index(periods.group, periods.topic)
    has_topic = group_topic >= 0
    periods, values, group_topic = (
        periods.where(has_topic),
        values[has_topic],
        group_topic[has_topic],
    )
    offset = topic_first[:-1][group_topic] - epochs.of_group[:-1][periods.group]
    step = np.zeros(topic_first[-1] + 1, np.int64)
    np.add.at(step, offset + _epoch_after(events, epochs, periods.group, periods.start), values)
    np.add.at(step, offset + _epoch_after(events, epochs, periods.group, periods.end), -values)
    return np.cumsum(step[:-1])


def _cells_of(group_topic: Ints, topic_first: Ints, count: int) -> Bools:
    """Return a mask of all cells of these group topics."""
    mask = np.zeros(count, np.bool_)
    first = topic_first[:-1][group_topic]
    mask[segments.ranges(first, topic_first[1:][group_topic] - first)] = True
    return mask


def _epoch_after(events: Events, epochs: Epochs, group: Ints, ordinal: Ints) -> Ints:
    """Return the group's first epoch after each event, or the end of its epochs."""
    happens = ordinal < segments.NEVER
    instant = events.instant[np.where(happens, ordinal, 0)]
    return np.where(happens, epochs.from_instant[instant], epochs.of_group[group + 1])


def _readable(
    events: Events, epochs: Epochs, brokers: TopicBrokers, broker_first: Ints, routes: RouteChanges
) -> Ints:
    """Return the readable queues of each broker cell, whether or not the topic is active."""
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
    """Return the numbering of each topic's queues over the brokers to be counted.

    Args:
        grid: the grid of all groups.
        counts: for each broker cell, the number of queues that count.
        key: for each topic broker, a key; a topic's brokers with equal keys are numbered
            together. None numbers all of them together.

    Returns:
        For each broker cell, the number of queues with its key on earlier brokers, and on all
        brokers.

    Cost: a stable sort of the cells, which are already in order except for the epochs of their
    brokers.
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
