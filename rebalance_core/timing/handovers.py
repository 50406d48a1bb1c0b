"""Queues passed from one holder to the next: gaps and overlaps."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from rebalance_core.kernels import segments
from rebalance_core.kernels.segments import NONE, Bools, Ints, first_of_run, last_of_run
from rebalance_core.kernels.segments import running_max as _running_max
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.times import FIRST_PULL_DELAY_MS
from rebalance_core.model.versions import parse_version
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.holdings import MeasuredHoldings
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.readable_spans import ReadableSpans
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER
from rebalance_core.timing.windows import Windows

NO_TIME = -(1 << 62)
"""Stands for a missing drop or start."""
FIRST_PULL_WAITS = (5,)
"""From 5.0 on RebalanceImpl dispatches pull requests with a delay (rocketmq.md §4.3)."""


@dataclass(frozen=True, eq=False)
class Handovers:
    """Hand-overs as columns of equal length.

    Attributes:
        seed: the index of the seed.
        change: the index of the change that caused it.
        queue: the number of the queue.
        giver: the previous holder's row in the holdings, or -1.
        taker: the next holder's row, or -1.
        drop_ms: when the giver released the queue; `NO_TIME` without a giver or if it still held
            the queue once the group had settled.
        start_ms: when the taker took the queue; `NO_TIME` without a taker.
        gap_ms: how long the queue was readable without a holder, suspended or not.
        idle_ms: how long it was readable without being read by a holder: `gap_ms` plus the time in
            which only suspended members held it.
        unread_ms: how long it was readable and unread, up to the taker's first pull.
        overlap_ms: how long both read it.
    """

    seed: Ints
    change: Ints
    queue: Ints
    giver: Ints
    taker: Ints
    drop_ms: Ints
    start_ms: Ints
    gap_ms: Ints
    idle_ms: Ints
    unread_ms: Ints
    overlap_ms: Ints

    @property
    def between_two(self) -> Bools:
        """Whether the row has both a giver and a taker."""
        return (self.giver >= 0) & (self.taker >= 0)

    def take(self, rows: Ints | Bools) -> Handovers:
        """Return the selected rows."""
        return Handovers(*(getattr(self, field.name)[rows] for field in fields(self)))


def first_pulls_ms(timeline: GroupTimeline) -> Ints:
    """Return (lifetimes,) the time from taking a queue to its first pull, which push clients delay
    since 5.0.
    """
    push = timeline.settings.consumer_type == PUSH
    versions = [
        parse_version(lifetime.states[0][1].rules_version) for lifetime in timeline.lifetimes
    ]
    waits = [push and version >= FIRST_PULL_WAITS for version in versions]
    return np.array(waits, np.int64) * FIRST_PULL_DELAY_MS


def handovers_of(
    held: MeasuredHoldings, readable: ReadableSpans, windows: Windows, first_pull_ms: Ints
) -> Handovers:
    """Return the hand-overs between holdings, in no particular order.

    The giver is the last of the earlier takers. There is no giver if the queue was unreadable or
    had no subscriber in between, or if the group came to rest while it had no owner; its former
    owner then has a row without a taker.

    ``first_pull_ms`` is what `first_pulls_ms` returns.
    """
    if not len(held.seed) or not len(windows.change_ms):
        return _rows()
    ends = _Ends.from_holdings(held, readable, windows)
    first = first_of_run(held.queue, held.seed)
    before = _before(held, first)
    taken = held.start_us > BEFORE_ALL
    passed = taken & (before >= 0) & _connected(ends, before)
    given_up = _last_givers(held, before, taken & ~passed)
    given_up = given_up[ends.drop_change[given_up] >= 0]
    parts = (
        _passed(ends, windows, np.flatnonzero(passed), before[passed], first_pull_ms),
        _from_nobody(ends, readable, windows, np.flatnonzero(taken & ~passed), first_pull_ms),
        _to_nobody(ends, readable, windows, given_up[held.drop_us[given_up] < NEVER]),
    )
    names = [field.name for field in fields(Handovers)]
    return Handovers(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class _Ends:
    """The start and the drop of each holding, where known."""

    held: MeasuredHoldings
    start_ms: Ints
    read_ms: Ints
    """When it was last read."""
    drop_ms: Ints
    others_until_ms: Ints
    """When the last of the earlier holders, including suspended ones, released the queue."""
    start_change: Ints
    drop_change: Ints
    start_place: Ints
    drop_place: Ints
    start_run: Ints
    drop_run: Ints

    @classmethod
    def from_holdings(
        cls, held: MeasuredHoldings, readable: ReadableSpans, windows: Windows
    ) -> _Ends:
        start_ms, drop_ms = held.start_us // MS_US, held.drop_us // MS_US
        read_ms = held.read_until_us // MS_US
        start_change = windows.change_of(held.start_us)
        drop_change = windows.change_of(held.drop_us)
        return cls(
            held=held,
            start_ms=start_ms,
            read_ms=read_ms,
            drop_ms=drop_ms,
            others_until_ms=_others_until_ms(held),
            start_change=start_change,
            drop_change=drop_change,
            start_place=readable.at(held.queue, start_ms).place,
            drop_place=readable.at(held.queue, drop_ms).place,
            start_run=windows.run[start_change],
            drop_run=windows.run[drop_change],
        )


def _others_until_ms(held: MeasuredHoldings) -> Ints:
    """Return, for each holding, when the last of the earlier holders of its queue released it;
    `NO_TIME` without one.
    """
    first = first_of_run(held.queue, held.seed)
    until = np.full(len(first), NO_TIME, np.int64)
    until[1:] = _latest_ms(held.drop_us, first)[:-1]
    until[first] = NO_TIME
    return until


def _latest_ms(until_us: Ints, first: Bools) -> Ints:
    """Return, for each holding, the maximum of its time and those of earlier holdings of the same
    queue.
    """
    ended = until_us < NEVER
    until_ms: Ints = until_us // MS_US
    high = int(until_ms[ended].max(initial=0)) + 1  # the running maximum cannot represent NEVER
    latest = _running_max(np.where(ended, until_ms, high), np.cumsum(first))
    return np.where(latest == high, NEVER // MS_US, latest)


def _before(held: MeasuredHoldings, first: Bools) -> Ints:
    """Return, for each holding, the earlier holding of its queue read longest, or -1."""
    longest = held.read_until_us // MS_US == _latest_ms(held.read_until_us, first)
    latest = np.maximum.accumulate(np.where(longest, np.arange(len(first)), NONE))
    before = np.full(len(first), NONE, np.int64)
    before[1:] = latest[:-1]
    before[first] = NONE
    return before


def _last_givers(held: MeasuredHoldings, before: Ints, broken: Bools) -> Ints:
    """Return the holdings without a successor: those before interrupted rows, and the last one per
    queue and seed.
    """
    last = np.flatnonzero(last_of_run(held.queue, held.seed))
    earlier = before[last]
    longer = held.read_until_us[earlier] > held.read_until_us[last]
    latest = np.where((earlier >= 0) & longer, earlier, last)
    cut = before[broken]
    return segments.distinct(np.concatenate([cut[cut >= 0], latest]))


def _connected(ends: _Ends, before: Ints) -> Bools:
    """Return whether the previous holding continues, or its end and this start have the same queue
    and run.
    """
    overlap = ends.held.drop_us[before] > ends.held.start_us
    same_place = ends.drop_place[before] == ends.start_place
    same_run = (ends.drop_run[before] == ends.start_run) & (ends.drop_change[before] >= 0)
    connected: Bools = overlap | (same_place & same_run)
    return connected


def _passed(
    ends: _Ends, windows: Windows, taker: Ints, giver: Ints, first_pull_ms: Ints
) -> Handovers:
    change = ends.start_change[taker]
    rest_ms = windows.run_end_ms[change]
    start, drop, read = ends.start_ms[taker], ends.drop_ms[giver], ends.read_ms[giver]
    readable = ends.start_place[taker] % 2 == 0
    pulled = start + first_pull_ms[ends.held.lifetime[taker]]
    both_until = np.minimum(np.minimum(read, ends.read_ms[taker]), rest_ms)
    others_until = ends.others_until_ms[taker]
    return _rows(
        seed=ends.held.seed[taker],
        change=change,
        queue=ends.held.queue[taker],
        giver=giver,
        taker=taker,
        drop_ms=np.where(drop > rest_ms, NO_TIME, drop),
        start_ms=start,
        gap_ms=np.where(readable, np.maximum(start - others_until, 0), 0),
        idle_ms=np.where(readable, np.maximum(start - read, 0), 0),
        unread_ms=np.where(readable, np.maximum(pulled - read, 0), 0),
        overlap_ms=np.maximum(both_until - start, 0),
    )


def _from_nobody(
    ends: _Ends, readable: ReadableSpans, windows: Windows, taker: Ints, first_pull_ms: Ints
) -> Handovers:
    change, start = ends.start_change[taker], ends.start_ms[taker]
    position = readable.at(ends.held.queue[taker], start)
    since = np.maximum(readable.begin(position.stretch), windows.run_change_ms[change])
    pulled = start + first_pull_ms[ends.held.lifetime[taker]]
    idle_ms = np.where(position.inside, np.maximum(start - since, 0), 0)
    held_until = np.maximum(since, ends.others_until_ms[taker])
    return _rows(
        seed=ends.held.seed[taker],
        change=change,
        queue=ends.held.queue[taker],
        taker=taker,
        start_ms=start,
        gap_ms=np.where(position.inside, np.maximum(start - held_until, 0), 0),
        idle_ms=idle_ms,
        unread_ms=np.where(position.inside, np.maximum(pulled - since, 0), 0),
    )


def _to_nobody(ends: _Ends, readable: ReadableSpans, windows: Windows, giver: Ints) -> Handovers:
    change, drop = ends.drop_change[giver], ends.drop_ms[giver]
    position = readable.at(ends.held.queue[giver], drop)
    until = np.minimum(readable.end(position.stretch), windows.run_end_ms[change])
    idle_ms = np.where(position.inside, np.maximum(until - ends.read_ms[giver], 0), 0)
    held_until = np.maximum(drop, ends.others_until_ms[giver])
    return _rows(
        seed=ends.held.seed[giver],
        change=change,
        queue=ends.held.queue[giver],
        giver=giver,
        drop_ms=drop,
        gap_ms=np.where(position.inside, np.maximum(until - held_until, 0), 0),
        idle_ms=idle_ms,
        unread_ms=idle_ms,
    )


def _rows(**columns: Ints) -> Handovers:
    """Return hand-overs with the given columns; the others hold -1, `NO_TIME` or 0."""
    count = len(columns.get("seed", ()))
    absent = {"giver": NONE, "taker": NONE, "drop_ms": NO_TIME, "start_ms": NO_TIME}
    return Handovers(
        **{
            field.name: columns.get(field.name, np.full(count, absent.get(field.name, 0), np.int64))
            for field in fields(Handovers)
        }
    )
