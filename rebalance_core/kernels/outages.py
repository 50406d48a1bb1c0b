"""Brokers without a master (rocketmq.md §15): when, and what that does to epochs."""

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
