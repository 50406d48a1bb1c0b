"""Periods in which brokers have no master (rocketmq.md §15), and their effect on epochs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.encoded_events import Events, type_code
from rebalance_core.kernels.epochs import Epochs
from rebalance_core.kernels.grid import Grid
from rebalance_core.kernels.segments import Bools, Ints
from rebalance_core.model.events import MASTER_DOWN, MASTER_UP


@dataclass(frozen=True, slots=True)
class OutageSpans:
    """Periods in which brokers had no master, sorted by group, broker and time."""

    group: Ints
    broker: Ints
    down_ms: Ints
    up_ms: Ints
    """The end; `NEVER` while the outage lasts."""
    mode: Ints
    """What the slaves do, according to the latest evidence; as in `Events.mode`."""

    def outages_of(self, group: Ints, broker: Ints) -> tuple[Ints, Ints]:
        """Return the range of the outages of each group's broker; a broker of -1 has none."""
        wanted = segments.pair(group, np.maximum(broker, 0))
        first, end = segments.equal_range(segments.pair(self.group, self.broker), wanted)
        return np.where(broker < 0, end, first), end


@dataclass(frozen=True, slots=True)
class MasterTurns:
    """The effect of each instant with MASTER events of a broker, sorted by group and broker."""

    event: Ints
    """The last of the instant's events."""
    down: Bools
    """Whether the broker has no master after the instant."""
    was_down: Bools
    """Whether the broker had no master before the instant."""
    until_ms: Ints
    """The latest end of its events' windows."""


def master_turns(events: Events) -> MasterTurns:
    """Return every instant with MASTER events of a broker; an instant's events count together."""
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
    """Return the outages of all groups' brokers; simultaneous events count together."""
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
    """Return the epochs with windows that cover passes affected by the loss or return of a master.

    For a broker with queues that the group can then read, no later epoch settles sooner, and the
    current epoch is prolonged if its window is open.
    """
    turns = master_turns(events)
    mode = events.mode[turns.event]
    same = (turns.down == turns.was_down) & (~turns.down | (mode == np.roll(mode, 1)))
    event, until_ms = turns.event[~same], turns.until_ms[~same]
    instant, group = events.instant[event], events.group[event]
    begun = epochs.at_instant[instant]
    epoch = np.where(begun >= 0, begun, epochs.from_instant[instant] - 1)
    since = epochs.of_group[group] + (begun >= 0)  # the very first epoch waits for nothing
    reading = np.flatnonzero((epoch >= since) & (epoch < epochs.of_group[group + 1]))
    reading = reading[
        _reads(epochs, grid, group[reading], events.broker[event[reading]], epoch[reading])
    ]
    if not len(reading):
        return epochs
    epoch, begun, until_ms, event = (
        epoch[reading],
        begun[reading],
        until_ms[reading],
        event[reading],
    )
    settled_ms = np.zeros(len(epochs) + 1, np.int64)
    after = np.where(begun >= 0, epoch, epoch + 1)
    within = after < epochs.of_group[events.group[event] + 1]
    np.maximum.at(settled_ms, after[within], until_ms[within])
    settled_ms = segments.running_max(settled_ms[:-1], epochs.group)
    latest_ms = np.maximum(epochs.latest_ms, settled_ms)
    retry_latest_ms = np.maximum(epochs.retry_latest_ms, settled_ms)
    during = np.flatnonzero(begun < 0)
    instants, of = np.unique(events.instant[event[during]], return_inverse=True)
    ends_ms, epoch_of = np.zeros(len(instants), np.int64), np.zeros(len(instants), np.int64)
    np.maximum.at(ends_ms, of, until_ms[during])
    epoch_of[of] = epoch[during]
    at_ms = np.zeros(len(instants), np.int64)
    at_ms[of] = events.at_ms[event[during]]
    rank = segments.rank(epoch_of)
    for turn in range(int(rank.max(initial=-1)) + 1):
        some = np.flatnonzero(rank == turn)
        e = epoch_of[some]
        for windows in (latest_ms, retry_latest_ms):
            still = at_ms[some] <= windows[e]
            windows[e[still]] = np.maximum(windows[e[still]], ends_ms[some[still]])
        retry_latest_ms[e] = np.maximum(retry_latest_ms[e], latest_ms[e])
    return replace(epochs, latest_ms=latest_ms, retry_latest_ms=retry_latest_ms)


def _reads(epochs: Epochs, grid: Grid, group: Ints, broker: Ints, epoch: Ints) -> Bools:
    """Return whether the group can read a queue of the broker in the epoch."""
    asked, row = grid.brokers.topics_on(group, broker)
    cell = grid.broker_first[row] + epoch[asked] - epochs.of_group[group[asked]]
    reads = np.zeros(len(group), np.bool_)
    reads[asked[grid.readable[cell] > 0]] = True
    return reads


def masterless_queues(events: Events, epochs: Epochs, grid: Grid) -> Ints:
    """Return the number of each epoch's readable queues on brokers that lack a master for part of
    the epoch.
    """
    outages = find_outages(events)
    outage, row = grid.brokers.topics_on(outages.group, outages.broker)
    first, count = grid.broker_first[row], np.diff(grid.broker_first)[row]
    cell = segments.ranges(first, count)
    epoch = segments.ranges(epochs.of_group[outages.group[outage]], count)
    outage = np.repeat(outage, count)
    within = outages.down_ms[outage] < epochs.to_ms[epoch]
    within &= epochs.from_ms[epoch] < outages.up_ms[outage]
    cell, distinct = np.unique(cell[within], return_index=True)
    queues = np.bincount(epoch[within][distinct], grid.readable[cell], minlength=len(epochs))
    return queues.astype(np.int64)
