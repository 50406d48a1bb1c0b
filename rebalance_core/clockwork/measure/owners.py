"""How long each change takes, and how long queues have no owner or several meanwhile."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.measure.holdings import Readable, Windows, in_order
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.ownership_log import OwnershipLog
from rebalance_core.clockwork.script import Script
from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_of_run


@dataclass(frozen=True, eq=False)
class OwnerTimes:
    """Arrays of shape (changes, seeds), in milliseconds.

    Attributes:
        convergence_ms: from the change to the last queue given up or taken; 0: none was.
        orphan_ms: time x readable queues without an owner, from the change to the next one, or as
            long as it is followed.
        double_ms: time x (owners - 1) of readable queues, over the same time.
    """

    convergence_ms: Ints
    orphan_ms: Ints
    double_ms: Ints


def owner_times(
    script: Script,
    log: OwnershipLog,
    readable: Readable,
    windows: Windows,
    seeds: int,
    *,
    count_owners: bool = True,
) -> OwnerTimes:
    """The times of every change in every future.

    Cost: linear in the log; where the readable queues change, seeds x queues beside it.

    Args:
        script: that was played.
        log: what came of it, in order.
        readable: of the script.
        windows: of the script.
        seeds: how many were played.
        count_owners: False where every client owns every queue: only convergence is measured.
    """
    shape = len(windows.change_ms), seeds
    times = OwnerTimes(*(np.zeros(shape, np.int64) for _ in range(3)))
    change = windows.change_of(log.at_us)
    order = in_order(np.maximum(change, 0))
    bounds = np.searchsorted(change[order], np.arange(shape[0] + 1))
    owners = _Owners.at_first(script, seeds)
    for number, change_ms in enumerate(windows.change_ms.tolist()):
        rows = order[bounds[number] : bounds[number + 1]]
        seed, at_ms = log.seed[rows].astype(np.int64), log.at_us[rows] // MS_US
        last = last_of_run(seed)
        over_ms = np.zeros(seeds, np.int64)
        over_ms[seed[last]] = np.maximum(at_ms[last] - change_ms, 0)
        times.convergence_ms[number] = over_ms
        if not count_owners:
            continue
        owners.look_at(readable.mask(change_ms))
        followed_ms = int(windows.followed_ms[number])
        orphans, doubles = owners.orphans * followed_ms, owners.doubles * followed_ms
        steps = owners.step(seed, log.queue[rows].astype(np.int64), log.delta[rows])
        left_ms = np.maximum(followed_ms - np.maximum(at_ms - change_ms, 0), 0)
        # Whole numbers below 2 ** 53: the sums of floats are exact.
        times.orphan_ms[number] = orphans + _sums(seed, steps.orphans * left_ms, seeds)
        times.double_ms[number] = doubles + _sums(seed, steps.doubles * left_ms, seeds)
        owners.orphans += _sums(seed, steps.orphans, seeds)
        owners.doubles += _sums(seed, steps.doubles, seeds)
    return times


def _sums(seed: Ints, values: Ints, seeds: int) -> Ints:
    return np.bincount(seed, values, seeds).astype(np.int64)


@dataclass(frozen=True, eq=False)
class _Steps:
    """What each row of a log adds to its seed's orphans and doubles."""

    orphans: Ints
    doubles: Ints


@dataclass(eq=False)
class _Owners:
    """How many owners each queue has in each future, and the sums over those that are readable."""

    counts: NDArray[np.int32]
    looked_at: Bools
    orphans: Ints
    doubles: Ints

    @classmethod
    def at_first(cls, script: Script, seeds: int) -> _Owners:
        counts = np.zeros((seeds, len(script.queues)), np.int32)
        for held in script.initial:
            counts[:, sorted(held)] += 1
        none = np.zeros(len(script.queues), np.bool_)
        return cls(counts, none, np.zeros(seeds, np.int64), np.zeros(seeds, np.int64))

    def look_at(self, readable: Bools) -> None:
        """Count these queues from now on."""
        if np.array_equal(readable, self.looked_at):
            return
        self.looked_at = readable
        counts = self.counts[:, readable]
        self.orphans = (counts == 0).sum(axis=1, dtype=np.int64)
        self.doubles = np.maximum(counts - 1, 0).sum(axis=1, dtype=np.int64)

    def step(self, seed: Ints, queue: Ints, delta: NDArray[np.int8]) -> _Steps:
        """Apply rows of a log, which are in order."""
        cell = seed * self.counts.shape[1] + queue
        order = in_order(seed, queue)
        cell, change = cell[order], delta[order].astype(np.int64)
        first, last = first_of_run(cell), last_of_run(cell)
        flat = self.counts.reshape(-1)
        total = np.cumsum(change)
        begin = np.maximum.accumulate(np.where(first, np.arange(len(cell)), 0))
        after = flat[cell] + total - (total - change)[begin]
        before = after - change
        flat[cell[last]] = after[last]
        seen = self.looked_at[queue[order]]
        steps = _Steps(np.zeros(len(cell), np.int64), np.zeros(len(cell), np.int64))
        steps.orphans[order] = seen * ((after == 0).astype(np.int64) - (before == 0))
        steps.doubles[order] = seen * (np.maximum(after - 1, 0) - np.maximum(before - 1, 0))
        return steps
