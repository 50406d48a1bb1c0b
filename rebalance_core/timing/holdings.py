"""Periods in which each process had a queue, derived from an ownership log."""

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints, first_of_run
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.ownership_log import TAKEN, OwnershipLog
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER

_SMALL = 1 << 16


@dataclass(frozen=True, eq=False)
class MeasuredHoldings:
    """Holdings as columns of equal length, sorted by queue, seed and start.

    Attributes:
        seed: the index of the seed.
        queue: the number of the queue.
        lifetime: the number of the process.
        start_us: when it took the queue; `BEFORE_ALL` if before the first change.
        drop_us: when it released the queue; `NEVER` if it keeps the queue to the end.
        read_until_us: when it stops reading it: `drop_us`, unless it is suspended earlier.
    """

    seed: Ints
    queue: Ints
    lifetime: Ints
    start_us: Ints
    drop_us: Ints
    read_until_us: Ints


def holdings_of(timeline: GroupTimeline, log: OwnershipLog, seeds: int) -> MeasuredHoldings:
    """Return the holdings of all seeds.

    Args:
        timeline: the played timeline.
        log: its ownership log, in order.
        seeds: the number of futures played.
    """
    first = np.array(
        [
            (lifetime, queue)
            for lifetime, held in enumerate(timeline.initial)
            for queue in sorted(held)
        ],
        np.int64,
    ).reshape(-1, 2)
    count = len(first) * seeds
    seed = np.concatenate([np.repeat(np.arange(seeds), len(first)), log.seed.astype(np.int64)])
    lifetime = np.concatenate([np.tile(first[:, 0], seeds), log.lifetime.astype(np.int64)])
    queue = np.concatenate([np.tile(first[:, 1], seeds), log.queue.astype(np.int64)])
    at_us = np.concatenate([np.full(count, BEFORE_ALL, np.int64), log.at_us])
    taken = np.concatenate([np.ones(count, np.bool_), log.delta == TAKEN])

    by_holder = in_order(queue, lifetime, seed)
    other = first_of_run(queue[by_holder], lifetime[by_holder], seed[by_holder])
    ends = ~other & ~taken[by_holder]
    ends[1:] &= taken[by_holder][:-1]
    ended = np.flatnonzero(ends)
    drop_us = np.full(len(seed), NEVER, np.int64)
    drop_us[by_holder[ended - 1]] = at_us[by_holder[ended]]

    begun = np.flatnonzero(taken)
    rows = begun[in_order(queue[begun], seed[begun])]
    dropped = drop_us[rows]
    return MeasuredHoldings(seed[rows], queue[rows], lifetime[rows], at_us[rows], dropped, dropped)


def in_order(*keys: Ints) -> Ints:
    """Return the row order of a stable sort by these non-negative keys, the most significant first.

    Keys below 65,536 are sorted in linear time.
    """
    order: Ints | None = None
    for key in reversed(keys):
        small: NDArray[Any] = key.astype(np.uint16) if key.max(initial=0) < _SMALL else key
        if order is None:
            order = np.argsort(small, kind="stable")
        else:
            order = order[np.argsort(small[order], kind="stable")]
    assert order is not None
    return order
