"""Play the common part of a group's timelines only once.

A scenario changes a history only from its first edit on. Until then, all draws and decisions are
the same with and without the edit, because draws belong to processes and their timers. A later
timeline therefore continues from the state of the first if nothing that a pass could have seen
until then differs.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.delays import (
    LEAVES_TOGETHER_US,
    SHORTEST_SILENCE_US,
    SILENCE_SPREAD_US,
)
from rebalance_core.timing.group_timeline import (
    BrokerLifetime,
    Ending,
    GroupTimeline,
    LoggedTime,
    ProcessLifetime,
)
from rebalance_core.timing.options import SECOND_US, ClockOptions
from rebalance_core.timing.vectorized.futures import Futures, longest_pass_us
from rebalance_core.timing.vectorized.locks import OrderLocks
from rebalance_core.timing.vectorized.mixed_state import MixedState
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.segment_holdings import Moves
from rebalance_core.timing.vectorized.shares import QueueSets

_AHEAD_US = 60 * SECOND_US
"""How far a segment looks beyond its end, in addition to a pass and the periods of its timers."""


@dataclass(frozen=True, eq=False)
class Standing:
    """State that one segment hands to the next.

    Attributes:
        futures: states of the processes.
        sets: sets of queues.
        locks: the locks of the brokers, if the group is orderly.
        mixed: states of the brokers, if members subscribe differently.
        moves: queues released and taken.
        come: (lifetimes,) the earliest creation time of each lifetime.
    """

    futures: Futures
    sets: QueueSets
    locks: OrderLocks | None
    mixed: MixedState | None
    moves: list[Moves]
    come: NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Checkpoint:
    """State of the futures after some segments."""

    timelines: tuple[GroupTimeline, ...]
    options: ClockOptions
    segments: tuple[PlaySegment, ...]
    come: NDArray[np.int64]
    sets: QueueSets
    moves: tuple[Moves, ...]
    codes: tuple[frozenset[str], ...] | None
    states: tuple[dict[str, Any], ...]

    @property
    def bytes(self) -> int:
        """The size of the saved arrays in bytes, without the moves."""
        arrays = [value for state in self.states for value in state.values()]
        return sum(each.nbytes for each in arrays if isinstance(each, np.ndarray))


_Strategies = tuple[tuple[str, str | None], ...]
_Slice = tuple[bytes, _Strategies]
"""The seeds and strategies of futures that are played together."""


def _slice_of(futures: Futures) -> _Slice:
    return futures.seeds.tobytes(), _strategies_of(futures.timelines)


def _strategies_of(timelines: Sequence[GroupTimeline]) -> _Strategies:
    """Return each timeline's strategy and that of its first member, which may have its own."""
    return tuple(
        (
            timeline.settings.strategy,
            next((life.states[0][1].strategy for life in timeline.lifetimes), None),
        )
        for timeline in timelines
    )


@dataclass(eq=False)
class Checkpoints:
    """The states of a group's futures, saved while its first timeline is played.

    Attributes:
        cuts_us: the times from which later timelines may differ; a timeline that differs earlier is
            played in full.
    """

    cuts_us: Sequence[int] = ()
    _kept: dict[_Slice, list[_Checkpoint]] = field(default_factory=dict)
    """The saved states of each slice, in chronological order."""
    _sizes: dict[tuple[str, int], int] = field(default_factory=dict)
    """The sizes of slices in the first timelines, by use and number of timelines."""

    def slice_size(self, use: str, timelines: int, fits: int) -> int:
        """Return the number of futures in a slice: as many as in the first timelines, since a saved
        state fits only the same slice, unless that is more than twice the number that fits into
        memory.
        """
        first = self._sizes.setdefault((use, timelines), fits)
        return first if first <= 2 * fits else fits

    @property
    def bytes(self) -> int:
        """The approximate size in memory, in bytes."""
        last = [kept[-1] for kept in self._kept.values()]
        moves = [move for each in last for move in each.moves]
        columns = [(m.elements, m.before, m.after, m.drop_us, m.add_us) for m in moves]
        held = sum(column.nbytes for each in columns for column in each)
        return held + sum(each.bytes for kept in self._kept.values() for each in kept)

    def sets_of(self, futures: Futures) -> QueueSets:
        """Return the `QueueSets` that a timeline of these futures continues to fill."""
        kept = self._kept.get(_slice_of(futures))
        return kept[0].sets if kept else QueueSets()

    def drop(self, timelines: Sequence[GroupTimeline]) -> None:
        """Forget the states of timelines that the vectorized engine cannot play to the end."""
        strategies = _strategies_of(timelines)
        self._kept = {key: kept for key, kept in self._kept.items() if key[1] != strategies}

    def stops(self, standing: Standing, segments: Sequence[PlaySegment]) -> frozenset[int]:
        """Return the segment counts after which to `keep` the state; empty for later timelines and
        shared instances.
        """
        if _slice_of(standing.futures) in self._kept or standing.futures.timeline.sharing_groups:
            return frozenset()
        stops = {len(segments)}
        for cut_us in self.cuts_us:
            until_us = [_known_us(standing.futures, each) for each in segments]
            stops.add(sum(each <= cut_us for each in until_us))
        return frozenset(stops - {0})

    def keep(self, standing: Standing, played: Sequence[PlaySegment]) -> None:
        """Save the state of the futures after these segments."""
        futures = standing.futures
        parts = (futures, standing.locks, standing.mixed)
        codes = None if standing.mixed is None else standing.mixed.subscriptions.sets
        kept = _Checkpoint(
            timelines=futures.timelines,
            options=futures.options,
            segments=tuple(played),
            come=standing.come,
            sets=standing.sets,
            moves=tuple(standing.moves),
            codes=codes,
            states=tuple({} if p is None else p.state() for p in parts),
        )
        self._kept.setdefault(_slice_of(futures), []).append(kept)

    def resume(self, standing: Standing, segments: Sequence[PlaySegment]) -> int:
        """Restore the latest saved state that fits a timeline; return how many segments it
        covers.
        """
        standing_futures = standing.futures
        for kept in reversed(self._kept.get(_slice_of(standing_futures), [])):
            played = len(kept.segments)
            if kept.segments != tuple(segments[:played]):
                continue
            lifetimes = _same_until(kept, standing, _known_us(standing_futures, kept.segments[-1]))
            if lifetimes is None:
                continue
            futures, locks, mixed = kept.states
            standing_futures.resume(futures, lifetimes)
            if standing.locks is not None:
                standing.locks.resume(locks, lifetimes)
            if standing.mixed is not None:
                standing.mixed.resume(mixed, lifetimes)
            standing.moves.extend(kept.moves)
            return played
        return 0


def _known_us(futures: Futures, segment: PlaySegment) -> int:
    """Return the time from which events no longer affect a segment."""
    periods = futures.ticks.periods
    longest_us = max(int(each.max(initial=0)) for each in (periods.poll, periods.beat))
    return (
        segment.end_us + longest_pass_us(futures.timeline, futures.options) + longest_us + _AHEAD_US
    )


def _same_until(kept: _Checkpoint, standing: Standing, until_us: int) -> int | None:
    """Return how many lifetimes two timelines share, or None if they differ before a time."""
    both = zip(standing.futures.timelines, kept.timelines, strict=True)
    same = {_same_timeline(*each, kept, standing, until_us) for each in both}
    return None if None in same else same.pop()


def _same_timeline(
    timeline: GroupTimeline,
    earlier: GroupTimeline,
    kept: _Checkpoint,
    standing: Standing,
    until_us: int,
) -> int | None:
    """Return `_same_until` for a pair of timelines with the same strategies."""
    if kept.options != standing.futures.options or timeline.begin_us != earlier.begin_us:
        return None
    if len(earlier.broker_lifetimes) > len(timeline.broker_lifetimes):
        return None
    if _cluster_until(timeline, until_us) != _cluster_until(earlier, until_us):
        return None
    sets = None if standing.mixed is None else standing.mixed.subscriptions.sets
    if (kept.codes is None) != (sets is None) or (
        sets and sets[: len(kept.codes or ())] != kept.codes
    ):
        return None
    changes = kept.segments[-1].changes.stop
    if timeline.changes[:changes] != earlier.changes[:changes]:
        return None
    arrived = [np.flatnonzero(come < until_us) for come in (standing.come, kept.come)]
    lifetimes = max(int(each.max(initial=-1)) for each in arrived) + 1
    if timeline.initial[:lifetimes] != earlier.initial[:lifetimes]:
        return None
    pairs = [
        [_until(x, until_us) for x in side.lifetimes[:lifetimes]] for side in (timeline, earlier)
    ]
    return lifetimes if len(pairs[0]) == lifetimes and pairs[0] == pairs[1] else None


def _cluster_until(timeline: GroupTimeline, until_us: int) -> GroupTimeline:
    """Return a timeline without its members and its brokers' events at or after a time."""
    return replace(
        timeline,
        lifetimes=(),
        changes=(),
        initial=(),
        unknown_members=(),
        routes=tuple(
            tuple(each for each in versions if _is_before(each.moment, until_us))
            for versions in timeline.routes
        ),
        broker_lifetimes=tuple(
            _broker_until(each, until_us)
            for each in timeline.broker_lifetimes
            if _is_before(each.up, until_us)
        ),
        lockless=tuple(
            each if _is_before(each.until, until_us) else replace(each, until=None)
            for each in timeline.lockless
            if _is_before(each.since, until_us)
        ),
        notices=tuple(each for each in timeline.notices if _is_before(each.since, until_us)),
    )


def _is_before(moment: LoggedTime | None, until_us: int) -> bool:
    return moment is None or moment.event_us < until_us


def _broker_until(lifetime: BrokerLifetime, until_us: int) -> BrokerLifetime:
    """Return a broker's lifetime, without its end if that is at or after a time."""
    silence_us = SHORTEST_SILENCE_US + SILENCE_SPREAD_US if lifetime.host_lost else 0
    if _is_before(lifetime.down, until_us + silence_us):
        return lifetime
    return replace(lifetime, down=None, host_lost=False)


def _until(lifetime: ProcessLifetime, until_us: int) -> ProcessLifetime:
    """Return a lifetime without its events at or after a time."""
    ending: Ending | None = lifetime.ending
    # leaves no further apart than this slow each other down
    if ending is not None and ending.moment.event_us >= until_us + LEAVES_TOGETHER_US:
        ending = None
    states = tuple(each for each in lifetime.states if each[0].event_us < until_us)
    return replace(lifetime, ending=ending, states=states)
