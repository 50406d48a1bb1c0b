"""Play many futures of a timeline at once, in slices that fit into memory."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog, in_succession, ownership_log
from rebalance_core.timing.reference import play as loop
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER
from rebalance_core.timing.vectorized.checkpoints import Checkpoints, Standing
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.locks import OrderLocks
from rebalance_core.timing.vectorized.mixed_play import MixedPlay
from rebalance_core.timing.vectorized.mixed_state import MixedState
from rebalance_core.timing.vectorized.ownership_log_builder import OwnershipLogBuilder
from rebalance_core.timing.vectorized.play_segments import segments_of
from rebalance_core.timing.vectorized.reference_only import (
    REGULAR,
    all_broadcast_alike,
    differ_in_strategies,
    reason_of,
    takes_locks,
)
from rebalance_core.timing.vectorized.segment_holdings import Moves
from rebalance_core.timing.vectorized.segment_play import SegmentPlay
from rebalance_core.timing.vectorized.shares import (
    QueueSets,
    Shares,
    UnlistedQueueError,
)

BYTES_OF_A_SLICE = 150_000_000


def play_seeds(
    timeline: GroupTimeline,
    seeds: NDArray[np.int64] | Sequence[int],
    options: ClockOptions,
    checkpoints: Checkpoints | None = None,
) -> OwnershipLog:
    """Return the same log as `reference.play.play_seeds_one_by_one`, but faster for many seeds.

    The reference engine plays timelines for which `reason_of` does not return `REGULAR`, and those
    in which a custom strategy returns queues that it was not given. Cost: linear in seeds and
    events. Memory: about `BYTES_OF_A_SLICE`, plus the log.

    Args:
        timeline: what happens to the group.
        seeds: (S,) the seeds of the futures.
        options: the simulation's options.
        checkpoints: saved states of the same futures in other timelines of the group, if any.

    Returns:
        The log; its column ``seed`` is an index into ``seeds``.
    """
    return play_timelines([timeline], seeds, options, checkpoints)[0]


def play_timelines(
    timelines: Sequence[GroupTimeline],
    seeds: NDArray[np.int64] | Sequence[int],
    options: ClockOptions,
    checkpoints: Checkpoints | None = None,
) -> list[OwnershipLog]:
    """Return `play_seeds` for each timeline.

    Timelines that differ only in strategies, as those of a league do, are played together, which
    shares the fixed cost of each pass; the gain shrinks as futures grow. Timelines of broadcasting
    members share one log.
    """
    wanted = np.asarray(seeds, np.int64)
    if len(timelines) > 1 and all_broadcast_alike(timelines):
        return [play_seeds(timelines[0], wanted, options, checkpoints)] * len(timelines)
    if len(timelines) > 1 and not differ_in_strategies(timelines):
        return [play_seeds(each, wanted, options, checkpoints) for each in timelines]
    if reason_of(timelines[0]) != REGULAR:
        return [loop.play_seeds_one_by_one(timelines[0], wanted.tolist(), options)]
    step = max(1, seeds_of_a_slice(timelines[0]) // len(timelines))
    if checkpoints is not None:
        step = checkpoints.slice_size("play", len(timelines), step)
    slices = []
    for first in range(0, len(wanted), step):
        try:
            logs = _play_slice(timelines, wanted[first : first + step], options, checkpoints)
        except UnlistedQueueError:
            if checkpoints is not None:
                checkpoints.drop(timelines)
            if len(timelines) > 1:
                return [play_seeds(each, wanted, options, checkpoints) for each in timelines]
            return [loop.play_seeds_one_by_one(timelines[0], wanted.tolist(), options)]
        slices.append([replace(log, seed=log.seed + np.int32(first)) for log in logs])
    return [in_succession([logs[each] for logs in slices]) for each in range(len(timelines))]


def seeds_of_a_slice(timeline: GroupTimeline) -> int:
    """Return the number of futures that are played at once."""
    lifetimes, brokers = len(timeline.lifetimes), len(timeline.broker_lifetimes)
    times = lifetimes * (40 + 12 * brokers) + (
        8 * len(timeline.queues) if takes_locks(timeline) else 0
    )
    return max(16, BYTES_OF_A_SLICE // (8 * max(times, 1)))


def _play_slice(
    timelines: Sequence[GroupTimeline],
    seeds: NDArray[np.int64],
    options: ClockOptions,
    checkpoints: Checkpoints | None,
) -> list[OwnershipLog]:
    timeline = timelines[0]
    if not (timeline.changes and timeline.lifetimes):
        return [ownership_log([]) for _ in timelines]
    futures = Futures(timeline, np.tile(seeds, len(timelines)), options, tuple(timelines[1:]))
    sets = QueueSets() if checkpoints is None else checkpoints.sets_of(futures)
    shares = Shares(futures, sets)
    locks = OrderLocks(futures) if takes_locks(timeline) else None
    moves: list[Moves] = []
    come, gone = _stays(futures)
    mixed = MixedState.initial(timeline, futures.ticks)
    standing = Standing(futures, sets, locks, mixed, moves, come)
    segments = list(segments_of(timeline, options))
    done = 0 if checkpoints is None else checkpoints.resume(standing, segments)
    stops = frozenset() if checkpoints is None else checkpoints.stops(standing, segments)
    if not done:
        _hold_at_first(futures, sets, locks)
    for number, segment in enumerate(segments[done:], done + 1):
        if locks is not None:
            locks.begin(segment)
        lifetimes = np.flatnonzero((come < segment.end_us) & (gone > segment.since_us))
        if len(lifetimes) and mixed is not None:
            MixedPlay(futures, mixed, segment, lifetimes, shares, sets, moves, locks).play()
        elif len(lifetimes):
            SegmentPlay(futures, segment, lifetimes, shares, sets, moves, locks).play()
        if checkpoints is not None and number in stops:
            checkpoints.keep(standing, segments[:number])
    log = OwnershipLogBuilder(futures, sets).log(moves)
    ends = np.searchsorted(log.seed, np.arange(len(timelines) + 1) * len(seeds))
    parts = [log.take(np.arange(*each)) for each in pairwise(ends.tolist())]
    return [
        replace(part, seed=part.seed - np.int32(number * len(seeds)))
        for number, part in enumerate(parts)
    ]


def _hold_at_first(futures: Futures, sets: QueueSets, locks: OrderLocks | None) -> None:
    """Give the queues of the first epoch to lifetimes that began before the log."""
    begun = futures.ticks.ended > futures.timeline.begin_us
    for number, timeline in enumerate(futures.timelines):
        present = begun & (futures.timeline_of == number)
        for lifetime, queues in enumerate(timeline.initial):
            if locks is not None:
                locks.hold_at_first(lifetime, np.array(sorted(queues), np.int64), present[lifetime])
            for topic in range(len(timeline.topics)):
                of_topic = [queue for queue in queues if timeline.topic_of_queue[queue] == topic]
                futures.held[topic, lifetime, present[lifetime]] = sets.number(of_topic)


def _stays(futures: Futures) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return (lifetimes,) the earliest creation time of each, and the latest time at which a broker
    removes it.
    """
    ticks = futures.ticks
    observed = np.array([lifetime.observed for lifetime in futures.timeline.lifetimes])
    created = np.where(observed, BEFORE_ALL, ticks.created.min(axis=1))
    come = np.minimum(created, ticks.registered.min(axis=(1, 2), initial=NEVER))
    listed = ticks.unregistered.max(axis=(1, 2), initial=BEFORE_ALL)
    return come, np.maximum(ticks.ended.max(axis=1), listed)
