"""Queues passed from one holder to the next: gaps, overlaps and messages read twice."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Final

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.draws import Timer, all_below, uniforms
from rebalance_core.clockwork.holdings import MeasuredHoldings, ReadableSpans, Windows
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Ticks
from rebalance_core.kernels.segments import NONE, Bools, Ints, first_of_run, last_of_run, pointers
from rebalance_core.kernels.segments import running_max as _running_max
from rebalance_core.model.times import OFFSET_PERSIST_MS
from rebalance_core.replay.history import GroupHistory

# Queues passed from one holder to the next: gaps and overlaps.

NO_TIME = -(1 << 62)
"""Of a drop or start that is not there."""
_OPEN_MS = NEVER // MS_US


@dataclass(frozen=True, eq=False)
class Handovers:
    """Equally long columns.

    Attributes:
        seed: the place of the seed.
        change: the place of the change that it belongs to.
        queue: the number of the queue.
        giver: the row in the holdings of who had it; -1: nobody.
        taker: the row of who took it; -1: nobody.
        drop_ms: `NO_TIME`: nobody had it, or it was not given up before the group was at rest.
        start_ms: `NO_TIME`: nobody took it.
        gap_ms: how long it was readable and nobody had it.
        overlap_ms: how long both had it.
    """

    seed: Ints
    change: Ints
    queue: Ints
    giver: Ints
    taker: Ints
    drop_ms: Ints
    start_ms: Ints
    gap_ms: Ints
    overlap_ms: Ints

    @property
    def between_two(self) -> Bools:
        """Somebody had it and somebody took it."""
        return (self.giver >= 0) & (self.taker >= 0)

    def take(self, rows: Ints | Bools) -> Handovers:
        """Some of the rows."""
        return Handovers(*(getattr(self, field.name)[rows] for field in fields(self)))


def handovers_of(held: MeasuredHoldings, readable: ReadableSpans, windows: Windows) -> Handovers:
    """The hand-overs between holdings, in no order.

    A queue comes from the one who, of all that took it earlier, had it last. It comes from nobody
    where the queue changed meanwhile (it was away, or nobody was to read it), or the group came to
    rest without an owner; its former owner then has a row that ends with nobody.
    """
    if not len(held.seed) or not len(windows.change_ms):
        return _rows()
    ends = _Ends.of(held, readable, windows)
    before = _before(held)
    taken = held.start_us > BEFORE_ALL
    passed = taken & (before >= 0) & _connected(ends, before)
    given_up = _last_givers(held, before, taken & ~passed)
    given_up = given_up[ends.drop_change[given_up] >= 0]
    parts = (
        _passed(ends, windows, np.flatnonzero(passed), before[passed]),
        _from_nobody(ends, readable, windows, np.flatnonzero(taken & ~passed)),
        _to_nobody(ends, readable, windows, given_up[held.drop_us[given_up] < NEVER]),
    )
    names = [field.name for field in fields(Handovers)]
    return Handovers(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))


@dataclass(frozen=True, eq=False)
class _Ends:
    """What is known of the start and the drop of each holding."""

    held: MeasuredHoldings
    start_ms: Ints
    drop_ms: Ints
    start_change: Ints
    drop_change: Ints
    start_place: Ints
    drop_place: Ints
    start_run: Ints
    drop_run: Ints

    @classmethod
    def of(cls, held: MeasuredHoldings, readable: ReadableSpans, windows: Windows) -> _Ends:
        start_ms, drop_ms = held.start_us // MS_US, held.drop_us // MS_US
        start_change = windows.change_of(held.start_us)
        drop_change = windows.change_of(held.drop_us)
        return cls(
            held=held,
            start_ms=start_ms,
            drop_ms=drop_ms,
            start_change=start_change,
            drop_change=drop_change,
            start_place=readable.at(held.queue, start_ms).place,
            drop_place=readable.at(held.queue, drop_ms).place,
            start_run=windows.run[start_change],
            drop_run=windows.run[drop_change],
        )


def _before(held: MeasuredHoldings) -> Ints:
    """For each holding the earlier one of its queue that ended last; -1: none."""
    first = first_of_run(held.queue, held.seed)
    ended = held.drop_us < NEVER
    finite = held.drop_us[ended] // MS_US
    high = int(finite.max(initial=0)) + 1
    clipped = np.where(ended, held.drop_us // MS_US, high)
    longest = clipped == _running_max(clipped, np.cumsum(first))
    latest = np.maximum.accumulate(np.where(longest, np.arange(len(first)), NONE))
    before = np.full(len(first), NONE, np.int64)
    before[1:] = latest[:-1]
    before[first] = NONE
    return before


def _last_givers(held: MeasuredHoldings, before: Ints, broken: Bools) -> Ints:
    """Whom nobody followed: who came before each row that is broken off, and the last ones."""
    last = np.flatnonzero(last_of_run(held.queue, held.seed))
    earlier = before[last]
    latest = np.where((earlier >= 0) & (held.drop_us[earlier] > held.drop_us[last]), earlier, last)
    cut = before[broken]
    return np.unique(np.concatenate([cut[cut >= 0], latest]))


def _connected(ends: _Ends, before: Ints) -> Bools:
    """The holding before is still on, or its end and this start see the same queue and run."""
    overlap = ends.held.drop_us[before] > ends.held.start_us
    same_place = ends.drop_place[before] == ends.start_place
    same_run = (ends.drop_run[before] == ends.start_run) & (ends.drop_change[before] >= 0)
    connected: Bools = overlap | (same_place & same_run)
    return connected


def _passed(ends: _Ends, windows: Windows, taker: Ints, giver: Ints) -> Handovers:
    change = ends.start_change[taker]
    rest_ms = windows.run_end_ms[change]
    start, drop = ends.start_ms[taker], ends.drop_ms[giver]
    readable = ends.start_place[taker] % 2 == 0
    both_until = np.minimum(np.minimum(drop, ends.drop_ms[taker]), rest_ms)
    return _rows(
        seed=ends.held.seed[taker],
        change=change,
        queue=ends.held.queue[taker],
        giver=giver,
        taker=taker,
        drop_ms=np.where(drop > rest_ms, NO_TIME, drop),
        start_ms=start,
        gap_ms=np.where(readable, np.maximum(start - drop, 0), 0),
        overlap_ms=np.maximum(both_until - start, 0),
    )


def _from_nobody(ends: _Ends, readable: ReadableSpans, windows: Windows, taker: Ints) -> Handovers:
    change, start = ends.start_change[taker], ends.start_ms[taker]
    found = readable.at(ends.held.queue[taker], start)
    since = np.maximum(readable.begin(found.stretch), windows.run_change_ms[change])
    return _rows(
        seed=ends.held.seed[taker],
        change=change,
        queue=ends.held.queue[taker],
        taker=taker,
        start_ms=start,
        gap_ms=np.where(found.inside, np.maximum(start - since, 0), 0),
    )


def _to_nobody(ends: _Ends, readable: ReadableSpans, windows: Windows, giver: Ints) -> Handovers:
    change, drop = ends.drop_change[giver], ends.drop_ms[giver]
    found = readable.at(ends.held.queue[giver], drop)
    until = np.minimum(readable.end(found.stretch), windows.run_end_ms[change])
    return _rows(
        seed=ends.held.seed[giver],
        change=change,
        queue=ends.held.queue[giver],
        giver=giver,
        drop_ms=drop,
        gap_ms=np.where(found.inside, np.maximum(until - drop, 0), 0),
    )


def _rows(**columns: Ints) -> Handovers:
    """Rows with these columns; what is not given is nobody, no time or 0."""
    count = len(columns.get("seed", ()))
    absent = {"giver": NONE, "taker": NONE, "drop_ms": NO_TIME, "start_ms": NO_TIME}
    return Handovers(
        **{
            field.name: columns.get(field.name, np.full(count, absent.get(field.name, 0), np.int64))
            for field in fields(Handovers)
        }
    )


# How many messages a hand-over has read twice, and whether it may have passed over any.

MILLI = 1_000
"""Messages are counted in thousandths until they are summed."""
UNKNOWN: Final = -1


@dataclass(frozen=True, eq=False)
class Observations:
    """What was observed of the queues of a script, by queue, then time.

    Attributes:
        first: (queues + 1,) where the rows of each queue begin.
        observed_ms: when.
        offset: what.
    """

    first: Ints
    observed_ms: Ints
    offset: Ints

    @classmethod
    def of(cls, queues: int, rows: list[tuple[int, int, int]]) -> Observations:
        """Rows (queue, observed_ms, offset)."""
        table = np.array(sorted(rows), np.int64).reshape(-1, 3)
        counts = np.bincount(table[:, 0], minlength=queues)
        return cls(pointers(counts), table[:, 1], table[:, 2])

    def last_before(self, queue: Ints, at_ms: Ints) -> Ints:
        """The last row of each queue at or before a time; one before its first: none."""
        if not len(self.observed_ms):
            return self.first[queue] - 1
        low = int(self.observed_ms.min())
        height = int(self.observed_ms.max()) - low + 3
        owner = np.repeat(np.arange(len(self.first) - 1), np.diff(self.first))
        keys = owner * height + self.observed_ms - low + 1
        wanted = queue * height + np.clip(at_ms - low + 1, 0, height - 1)
        return np.searchsorted(keys, wanted, side="right") - 1


@dataclass(frozen=True, eq=False)
class MessageFacts:
    """What is known of the messages in the queues of a group."""

    written: Observations
    stored: Observations

    @classmethod
    def of(cls, script: Script, history: GroupHistory) -> MessageFacts:
        """Out of the observations in a history."""
        number = {queue: place for place, queue in enumerate(script.queues)}
        written = [
            (number[each.queue], each.observed_ms, each.max_offset)
            for each in history.queue_offsets or ()
            if each.queue in number
        ]
        stored = [
            (number[each.queue], each.observed_ms, each.committed_offset)
            for each in history.committed_offsets or ()
            if each.queue in number and each.committed_offset >= 0
        ]
        count = len(number)
        return cls(Observations.of(count, written), Observations.of(count, stored))

    def rate(self, queue: Ints, at_ms: Ints) -> NDArray[np.float64]:
        """Messages per ms between the observations around a time; NaN: not known."""
        its = self.written
        found = np.full(len(queue), np.nan)
        if not len(its.observed_ms):
            return found
        before = its.last_before(queue, at_ms)
        both = np.flatnonzero((before >= its.first[queue]) & (before + 1 < its.first[queue + 1]))
        older = before[both]
        came = (its.offset[older + 1] - its.offset[older]).astype(np.float64)
        found[both] = came / (its.observed_ms[older + 1] - its.observed_ms[older])
        found[found < 0] = np.nan
        return found

    def has_stored(self, queue: Ints, at_ms: Ints) -> Bools:
        """An offset of the group was seen at the broker before."""
        found: Bools = self.stored.last_before(queue, at_ms) >= self.stored.first[queue]
        return found


def replayed_milli(
    moved: Handovers, held: MeasuredHoldings, facts: MessageFacts, ticks: Ticks, change_ms: Ints
) -> Ints:
    """Thousandths of messages that the new owner reads again; `UNKNOWN` where that is not known.

    The rate of the queue times the overlap and, if the old owner was lost, the age of its last
    commit: it comes every 5 s. Messages in flight besides count as none.

    Args:
        moved: hand-overs.
        held: the holdings that they name.
        facts: of the group.
        ticks: of the script, for the seeds of the holdings.
        change_ms: by change.
    """
    found = np.full(len(moved.seed), UNKNOWN, np.int64)
    rows = np.flatnonzero(moved.between_two)
    rate = facts.rate(moved.queue[rows], change_ms[moved.change[rows]])
    known = ~np.isnan(rate)
    rows, rate = rows[known], rate[known]
    again_ms = moved.overlap_ms[rows] + _commit_age_ms(held, moved.giver[rows], ticks)
    found[rows] = np.rint(rate * MILLI * again_ms).astype(np.int64)
    return found


def _commit_age_ms(held: MeasuredHoldings, giver: Ints, ticks: Ticks) -> Ints:
    """How old the last commit of a holder was when it was lost; 0 if it gave the queue up."""
    lives = ticks.script.lives
    killed = np.array([x.ending is not None and not x.ending.graceful for x in lives], np.bool_)
    age = np.zeros(len(giver), np.int64)
    life, seed, drop = held.life[giver], held.seed[giver], held.drop_us[giver]
    lost = np.flatnonzero(killed[life] & (drop == ticks.ended[life, seed]))
    if len(lost):
        entity = np.array([each.entity for each in lives], np.uint64)[life[lost]]
        draws = uniforms(ticks.seeds[seed[lost]], entity, Timer.COMMIT_AGE)
        since = (drop[lost] - held.start_us[giver[lost]]) // MS_US
        age[lost] = np.minimum(all_below(draws, OFFSET_PERSIST_MS), since)
    return age
