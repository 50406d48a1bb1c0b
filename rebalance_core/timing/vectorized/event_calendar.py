"""The next event that brokers see in each future, in the reference engine's order."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import FIRST_HEARTBEAT_US, NEVER, Times
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.member_lists import MemberList
from rebalance_core.timing.vectorized.mixed_state import MixedState
from rebalance_core.timing.vectorized.play_segments import PlaySegment

_KINDS = 8


class EventKind(IntEnum):
    """Events that a broker sees; simultaneous events occur in this order."""

    SUBSCRIBES = 0
    """The heartbeat of a member whose topics have changed."""
    JOINS = 1
    GOES = 2
    ASKS = 3
    """The heartbeat to the broker that a pass queried for the members (5.2)."""
    TICKS = 4
    """A heartbeat that the timer sends."""
    CHANGES = 5
    """A heartbeat that follows a pass."""


@dataclass(frozen=True, eq=False)
class Seen:
    """One event in each of several futures, as columns of equal length.

    Attributes:
        seed: indices of the futures.
        at_us: when it happens.
        kind: an `EventKind`.
        lifetime: index of the lifetime among those of the segment.
        number: the number of the state, the tick or the pass to which a heartbeat belongs.
    """

    seed: Ints
    at_us: Times
    kind: Ints
    lifetime: Ints
    number: Ints

    def rows(self, rows: Ints) -> Seen:
        """Return the events in the given rows."""
        return Seen(
            self.seed[rows],
            self.at_us[rows],
            self.kind[rows],
            self.lifetime[rows],
            self.number[rows],
        )


class Calendar:
    """The events of a segment.

    Args:
        futures: the futures of the timeline.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes.
        lists: the member lists.
        mixed: pending heartbeats and notices.

    Attributes:
        beat_us: (lifetimes, S) when the heartbeat of a pass is due.
        beat_of: (lifetimes, S) the number of that pass.
        channel_us: (lists, lifetimes, S) when a broker that a pass queried receives its heartbeat.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lifetimes: Ints,
        lists: list[MemberList],
        mixed: MixedState,
    ) -> None:
        self._segment, self._lifetimes, self._mixed = segment, lifetimes, mixed
        self._numbers = np.array([place.number for place in lists], np.int64)
        self._seeds = np.arange(len(futures.seeds))
        self.beat_us, self.beat_of = mixed.beat_us[lifetimes], mixed.beat_of[lifetimes]
        self.channel_us = mixed.channel_us[np.ix_(self._numbers, lifetimes)]
        self._period = futures.ticks.periods.beat[lifetimes]
        self._first_tick = futures.ticks.beats_start[lifetimes] + FIRST_HEARTBEAT_US
        self._states = len(mixed.subscriptions.since)
        # a row's key packs time, kind, lifetime and state, in this order, into one number
        self._keys = self._known(lists, futures.ticks.ended[lifetimes])
        self._at = np.zeros(len(futures.seeds), np.int64)
        self._until_us = NEVER if segment.before_gap else segment.end_us

    def next_us(self) -> Times:
        """Return (S,) the time of the next event, or `NEVER` if none is left in the segment."""
        beats = self.beat_us.min(axis=0, initial=NEVER)
        asks = self.channel_us.min(axis=(0, 1), initial=NEVER)
        self._next: tuple[Times, Times, Times] = self._next_known_us(), beats, asks
        next_us = np.minimum(np.minimum(*self._next[:2]), self._next[2])
        return np.where(next_us < self._until_us, next_us, NEVER)

    def take(self, seeds: Ints) -> Seen:
        """Remove and return the event that `next_us` last found in each of these futures.

        `ASKS` remains until a client has its answer.
        """
        calendar_us, beats, asks = (each[seeds] for each in self._next)
        is_beat = (beats < calendar_us) & (beats < asks)
        is_ask = (asks < calendar_us) & ~is_beat
        key = np.where(is_beat | is_ask, 0, self._keys[seeds, self._at[seeds]])
        self._at[seeds[~(is_beat | is_ask)]] += 1
        key, number = key // self._states, key % self._states
        key, lifetime = key // len(self._lifetimes), key % len(self._lifetimes)
        kind = key % _KINDS
        first = self._first_tick[lifetime, seeds]
        number = np.where(
            kind == EventKind.TICKS, (calendar_us - first) // self._period[lifetime, 0], number
        )
        rows = np.flatnonzero(is_beat)
        if len(rows):
            lifetime[rows] = self.beat_us[:, seeds[rows]].argmin(axis=0)
            number[rows] = self.beat_of[lifetime[rows], seeds[rows]]
            self.beat_us[lifetime[rows], seeds[rows]] = NEVER
            kind[rows] = EventKind.CHANGES
        rows = np.flatnonzero(is_ask)
        if len(rows):
            lifetime[rows] = self.channel_us[:, :, seeds[rows]].min(axis=0).argmin(axis=0)
            kind[rows] = EventKind.ASKS
        event_us = np.where(is_beat, beats, np.where(is_ask, asks, calendar_us))
        return Seen(seeds, event_us, kind, lifetime, number)

    def keep(self) -> None:
        """Pass pending heartbeats and requests to the next segment."""
        self._mixed.beat_us[self._lifetimes] = self.beat_us
        self._mixed.beat_of[self._lifetimes] = self.beat_of
        self._mixed.channel_us[np.ix_(self._numbers, self._lifetimes)] = self.channel_us
        if self._segment.before_gap:
            self._mixed.followed_us = self._segment.end_us

    def _next_known_us(self) -> Times:
        keys = self._keys[self._seeds, self._at]
        event_us = keys // (_KINDS * len(self._lifetimes) * self._states) + self._segment.since_us
        return np.where(keys < NEVER, event_us, NEVER)

    def _known(self, lists: list[MemberList], ended: Times) -> Ints:
        """Return (S, K + 1) sorted keys of the events that no pass can change, followed by
        `NEVER`.
        """
        segment, subscriptions = self._segment, self._mixed.subscriptions
        goes_us = joins_us = segment.begin_us
        if segment.after_gap:
            # a pull consumer registers by its timer, which may tick some time before its join
            goes_us, joins_us = segment.since_us, self._mixed.followed_us
        observed = np.array([each.observed for each in self._mixed.timeline.lifetimes])[
            self._lifetimes
        ]
        rows: list[Ints] = []
        for place in lists:
            joins = np.where(place.joins & ~observed[:, None], place.since, NEVER)
            ends_seen = place.notified[:, None] & (place.until < place.down)
            goes = np.where(ends_seen, place.until, NEVER)
            rows += [self._row(EventKind.JOINS, 0, joins, joins_us)]
            rows += [self._row(EventKind.GOES, 0, goes, goes_us)]
        for state in range(1, self._states):
            grows = np.array(
                [subscriptions.grows(lifetime, state) for lifetime in self._lifetimes.tolist()]
            )[:, None]
            since = np.where(grows, subscriptions.since[state][self._lifetimes], NEVER)
            rows += [self._row(EventKind.SUBSCRIBES, state, since, segment.begin_us)]
        number = np.maximum(-((self._first_tick - segment.begin_us) // self._period), 0)
        tick = self._first_tick + number * self._period
        while (tick < segment.end_us).any():
            tick_us = np.where(tick < ended, tick, NEVER)
            rows += [self._row(EventKind.TICKS, 0, tick_us, segment.begin_us)]
            tick = tick + self._period
        never = np.full((1, len(self._seeds)), NEVER, np.int64)
        return np.sort(np.concatenate([*rows, never]), axis=0).T.copy()

    def _row(self, kind: EventKind, state: int, at_us: Times, from_us: int) -> Ints:
        """Return (lifetimes, S) keys of a kind of event; `NEVER` where it is not in the segment."""
        lifetime = np.arange(len(self._lifetimes))[:, None]
        key = ((at_us - self._segment.since_us) * _KINDS + kind) * len(self._lifetimes) + lifetime
        in_segment = (at_us >= from_us) & (at_us < self._segment.end_us)
        return np.where(in_segment, key * self._states + state, NEVER)
