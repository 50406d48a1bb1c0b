"""Many futures of a script at once, in slices that fit into memory."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.futures import Futures
from rebalance_core.clockwork.batch.locks import OrderLocks
from rebalance_core.clockwork.batch.logbook import Logbook
from rebalance_core.clockwork.batch.mixed import MixedState, play_mixed_segment
from rebalance_core.clockwork.batch.passes import Moves
from rebalance_core.clockwork.batch.reasons import REGULAR, reason_of, takes_locks
from rebalance_core.clockwork.batch.segment_play import play_segment
from rebalance_core.clockwork.batch.segments import segments_of
from rebalance_core.clockwork.batch.shares import QueueSets, Shares
from rebalance_core.clockwork.loop import play as loop
from rebalance_core.clockwork.options import ClockOptions
from rebalance_core.clockwork.ownership_log import (
    OwnershipLog,
    in_succession,
    ownership_log,
)
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER

BYTES_OF_A_SLICE = 150_000_000


def play_seeds(
    script: Script, seeds: NDArray[np.int64] | Sequence[int], options: ClockOptions
) -> OwnershipLog:
    """`loop.play_seeds_one_by_one`, for many seeds in little time.

    Scripts that `reason_of` does not find regular go through the plain loop. Cost: linear in seeds,
    and in what happens; memory: about `BYTES_OF_A_SLICE`, and the log.

    Args:
        script: what happens to the group.
        seeds: (S,) of the futures.
        options: what was asked for.

    Returns:
        The log; its column ``seed`` is the place in ``seeds``.
    """
    wanted = np.asarray(seeds, np.int64)
    if reason_of(script) != REGULAR:
        return loop.play_seeds_one_by_one(script, wanted.tolist(), options)
    step = seeds_of_a_slice(script)
    logs = []
    for first in range(0, len(wanted), step):
        log = _play_slice(script, wanted[first : first + step], options)
        logs.append(replace(log, seed=log.seed + np.int32(first)))
    return in_succession(logs)


def seeds_of_a_slice(script: Script) -> int:
    """How many futures are played at once."""
    lives, brokers = len(script.lives), len(script.broker_lives)
    times = lives * (40 + 12 * brokers) + (8 * len(script.queues) if takes_locks(script) else 0)
    return max(16, BYTES_OF_A_SLICE // (8 * max(times, 1)))


def _play_slice(script: Script, seeds: NDArray[np.int64], options: ClockOptions) -> OwnershipLog:
    if not (script.changes and script.lives):
        return ownership_log([])
    futures = Futures(script, seeds, options)
    sets = QueueSets()
    shares = [Shares(futures, topic, sets) for topic in range(len(script.topics))]
    locks = OrderLocks(futures) if takes_locks(script) else None
    _hold_at_first(futures, sets, locks)
    moves: list[Moves] = []
    come, gone = _stays(futures)
    mixed = MixedState.of(script, futures.ticks)
    for segment in segments_of(script):
        if locks is not None:
            locks.begin(segment)
        lives = np.flatnonzero((come < segment.end_us) & (gone > segment.since_us))
        if not len(lives):
            continue
        if mixed is not None:
            play_mixed_segment(futures, mixed, segment, lives, shares, sets, moves, locks)
        else:
            play_segment(futures, segment, lives, shares, sets, moves, locks)
    return Logbook(futures, sets).log(moves)


def _hold_at_first(futures: Futures, sets: QueueSets, locks: OrderLocks | None) -> None:
    """Who was there before the log holds what the first epoch says."""
    script = futures.script
    there = futures.ticks.ended > script.begin_us
    for life, queues in enumerate(script.initial):
        if locks is not None:
            locks.hold_at_first(life, np.array(sorted(queues), np.int64), there[life])
        for topic in range(len(script.topics)):
            its = [queue for queue in queues if script.topic_of_queue[queue] == topic]
            futures.held[topic, life] = np.where(there[life], sets.number(its), 0)


def _stays(futures: Futures) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """(lives,) when each is created at the earliest, and when the last broker loses it."""
    ticks = futures.ticks
    observed = np.array([life.observed for life in futures.script.lives])
    created = np.where(observed, BEFORE_ALL, ticks.created.min(axis=1))
    come = np.minimum(created, ticks.registered.min(axis=(1, 2), initial=NEVER))
    listed = ticks.unregistered.max(axis=(1, 2), initial=BEFORE_ALL)
    return come, np.maximum(ticks.ended.max(axis=1), listed)
