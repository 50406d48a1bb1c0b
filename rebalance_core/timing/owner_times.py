"""How long changes take, and how long queues have no owner or several owners meanwhile."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Bools, Ints, first_of_run, last_of_run
from rebalance_core.timing import holdings
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.readable_spans import ReadableSpans
from rebalance_core.timing.windows import Windows


@dataclass(frozen=True, eq=False)
class OwnerTimes:
    """Arrays of shape (changes, seeds), in milliseconds.

    Attributes:
        convergence_ms: the time from the change to the last queue released or taken; 0 if none was.
        last_ms: when that happened, in epoch ms; 0 if no queue moved.
        orphan_ms: time x readable queues without an owner, from the change to the next, or to the
            end of its simulation.
        double_ms: time x (owners - 1) of readable queues, over the same time.
    """

    convergence_ms: Ints
    last_ms: Ints
    orphan_ms: Ints
    double_ms: Ints


def owner_times(
    timeline: GroupTimeline,
    log: OwnershipLog,
    readable: ReadableSpans,
    windows: Windows,
    seeds: int,
    *,
    count_owners: bool = True,
) -> OwnerTimes:
    """Return the times for every change in every future.

    Cost: linear in the log, plus seeds x queues where the readable queues change.

    Args:
        timeline: the played timeline.
        log: its ownership log, in order.
        readable: the readable queues of the timeline.
        windows: the windows of the timeline.
        seeds: the number of futures played.
        count_owners: False measures only convergence, for groups in which every client owns every
            queue.
    """
    shape = len(windows.change_ms), seeds
    times = OwnerTimes(*(np.zeros(shape, np.int64) for _ in range(4)))
    change, at_ms = windows.change_of(log.at_us), log.at_us // MS_US
    last = last_of_run(log.seed, change) & (change >= 0)
    times.last_ms[change[last], log.seed[last]] = at_ms[last]
    np.maximum(times.last_ms - windows.change_ms[:, None], 0, out=times.convergence_ms)
    if not count_owners:
        return times
    # The log may record a change after its first effects; ownership counts from the effect.
    since = np.maximum(np.searchsorted(windows.change_ms, at_ms, side="right") - 1, 0)
    order = holdings.in_order(since)
    bounds = np.searchsorted(since[order], np.arange(shape[0] + 1))
    owners = _Owners.at_first(timeline, seeds)
    masks = [readable.mask(change_ms) for change_ms in windows.change_ms.tolist()]
    begins = [n for n, each in enumerate(masks) if not n or (each != masks[n - 1]).any()]
    for begin, end in pairwise([*begins, shape[0]]):  # the same queues are readable
        rows = order[bounds[begin] : bounds[end]]
        number, seed = since[rows], log.seed[rows].astype(np.int64)
        owners.look_at(masks[begin])
        orphans, doubles = owners.step(seed, log.queue[rows].astype(np.int64), log.delta[rows])
        late_ms = np.maximum(at_ms[rows] - windows.change_ms[number], 0)
        left_ms = np.maximum(windows.followed_ms[number] - late_ms, 0)
        cell, followed_ms = (number - begin) * seeds + seed, windows.followed_ms[begin:end, None]
        for total_ms, now, more in (
            (times.orphan_ms, owners.orphans, orphans),
            (times.double_ms, owners.doubles, doubles),
        ):
            moved, moved_ms = _sums(cell, more, total_ms[begin:end]), more * left_ms
            before = now + np.cumsum(moved, axis=0) - moved
            total_ms[begin:end] = before * followed_ms + _sums(cell, moved_ms, before)
            now += moved.sum(axis=0)
    return times


def _sums(cell: Ints, values: Ints, like: Ints) -> Ints:
    # Whole numbers below 2 ** 53: the sums of floats are exact.
    return np.bincount(cell, values, like.size).astype(np.int64).reshape(like.shape)


@dataclass(eq=False)
class _Owners:
    """The number of owners of each queue in each future, and sums over the readable queues."""

    counts: NDArray[np.int32]
    looked_at: Bools
    orphans: Ints
    doubles: Ints

    @classmethod
    def at_first(cls, timeline: GroupTimeline, seeds: int) -> _Owners:
        counts = np.zeros((seeds, len(timeline.queues)), np.int32)
        for held in timeline.initial:
            counts[:, sorted(held)] += 1
        none = np.zeros(len(timeline.queues), np.bool_)
        return cls(counts, none, np.zeros(seeds, np.int64), np.zeros(seeds, np.int64))

    def look_at(self, readable: Bools) -> None:
        """Switch to counting the given queues."""
        self.looked_at = readable
        counts = self.counts[:, readable]
        self.orphans = (counts == 0).sum(axis=1, dtype=np.int64)
        self.doubles = np.maximum(counts - 1, 0).sum(axis=1, dtype=np.int64)

    def step(self, seed: Ints, queue: Ints, delta: NDArray[np.int8]) -> tuple[Ints, Ints]:
        """Apply rows of a log, given in order.

        Returns:
            How each row changes its seed's numbers of orphans and of additional owners.
        """
        cell = seed * self.counts.shape[1] + queue
        order = holdings.in_order(seed, queue)
        cell, change = cell[order], delta[order].astype(np.int64)
        first, last = first_of_run(cell), last_of_run(cell)
        flat = self.counts.reshape(-1)
        total = np.cumsum(change)
        begin = np.maximum.accumulate(np.where(first, np.arange(len(cell)), 0))
        after = flat[cell] + total - (total - change)[begin]
        before = after - change
        flat[cell[last]] = after[last]
        seen = self.looked_at[queue[order]]
        orphans, doubles = np.zeros((2, len(cell)), np.int64)
        orphans[order] = seen * ((after == 0).astype(np.int64) - (before == 0))
        doubles[order] = seen * (np.maximum(after - 1, 0) - np.maximum(before - 1, 0))
        return orphans, doubles
