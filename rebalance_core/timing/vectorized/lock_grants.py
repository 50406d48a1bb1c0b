"""When brokers grant order locks, and when they lose granted locks (rocketmq.md §7)."""

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing import timer_periods
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.sorted_rows import SortedRows


class LockGivers:
    """The brokers' grants; columns are (queue, future) pairs, as in `OrderLocks`."""

    def __init__(self, futures: Futures) -> None:
        self._futures, self._seeds = futures, len(futures.seeds)
        timeline = futures.timeline
        self._broker = np.array(timeline.broker_of_queue, np.int64)
        self._lifetimes = [
            (lifetime.broker, up, down)
            for lifetime, (up, down) in zip(
                timeline.broker_lifetimes, futures.broker_lifetimes, strict=True
            )
        ]
        self._lockless = [
            (stretch.broker, since, until)
            for stretch, (since, until) in zip(
                timeline.lockless, futures.ticks.lockless_us, strict=True
            )
        ]
        losses = [self._losing(broker) for broker in range(len(timeline.brokers))]
        widest = max(map(len, losses), default=0)
        self._always = not any(
            lifetime.up or lifetime.down for lifetime in timeline.broker_lifetimes
        )
        self._always &= not self._lockless
        never = np.full(self._seeds, timer_periods.NEVER)
        table = np.array([each + [never] * (widest - len(each)) for each in losses], np.int64)
        table = table.reshape(len(losses), widest, self._seeds).swapaxes(1, 2)
        self._losses = SortedRows(table.reshape(len(losses) * self._seeds, widest))

    def next_loss(self, columns: Ints, now_us: Times) -> Times:
        """Return when the broker next loses its lock table after a time, or `NEVER`."""
        if self._always:
            return np.full(len(columns), timer_periods.NEVER, np.int64)
        rows = self._broker[columns // self._seeds] * self._seeds + columns % self._seeds
        return self._losses.first_after(rows, now_us)

    def give(self, columns: Ints, now_us: Times) -> NDArray[np.bool_]:
        """Return True where the broker is up and has a master."""
        if self._always:
            return np.ones(len(columns), bool)
        brokers, seeds = self._broker[columns // self._seeds], columns % self._seeds
        gives = np.zeros(len(columns), bool)
        for broker, up, down in self._lifetimes:
            gives |= (brokers == broker) & (up[seeds] <= now_us) & (now_us < down[seeds])
        for broker, since, until in self._lockless:
            gives &= (brokers != broker) | (now_us < since[seeds]) | (until[seeds] <= now_us)
        return gives

    def _losing(self, broker: int) -> list[Times]:
        """Return the times, each of shape (S,), at which a broker's lock table is emptied."""
        stretches = self._lifetimes + self._lockless
        return [times_us for number, *times in stretches if number == broker for times_us in times]
