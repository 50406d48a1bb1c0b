"""Pending notices to members, and notices that no pass has used up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, Times
from rebalance_core.timing.vectorized.mixed_state import MixedState


class Wakes:
    """Notices to the elements of a segment.

    Args:
        mixed: the notices of earlier segments.
        lifetimes: numbers of the lifetimes.
    """

    def __init__(self, mixed: MixedState, lifetimes: Ints) -> None:
        self._mixed, self._lifetimes = mixed, lifetimes
        self._us = mixed.wakes_us[:, lifetimes]
        self._by = mixed.wakes_by[:, lifetimes]

    def first_after(self, at_us: Times) -> Times:
        """Return (elements,) when the first notice after a time wakes each element, or `NEVER`."""
        after = at_us.reshape(self._us.shape[1:])
        first: Times = np.where(self._us > after, self._us, NEVER).min(axis=0)
        return first.reshape(-1)

    def put(self, broker: int, seeds: Ints, at_us: Times, used: Times, as_one: Times) -> None:
        """Send a broker's notices in some futures.

        Args:
            broker: the broker's number.
            seeds: (n,) indices of the futures.
            at_us: (lifetimes, n) when each member is woken; `NEVER` if it is not notified.
            used: (lifetimes, n) the time up to which notices are used up.
            as_one: (lifetimes, n) the time up to which a single pass uses up all unused notices.
        """
        left = at_us < NEVER
        while True:
            us = self._us[:, :, seeds]
            free = us <= used
            lifetime, place = np.nonzero(left & free.any(axis=0))
            slot = free.argmax(axis=0)[lifetime, place]
            self._us[slot, lifetime, seeds[place]] = at_us[lifetime, place]
            self._by[slot, lifetime, seeds[place]] = broker
            left[lifetime, place] = False
            if not left.any():
                return
            if not self._merge(seeds, used, as_one, left):
                self._us = np.concatenate([self._us, np.full_like(self._us, BEFORE_ALL)])
                self._by = np.concatenate([self._by, np.zeros_like(self._by)])

    def _merge(self, seeds: Ints, used: Times, as_one: Times, where: NDArray[np.bool_]) -> bool:
        """Keep only the first of the notices that one pass uses up; return whether every cell of
        ``where`` then has a free slot.
        """
        us = self._us[:, :, seeds]
        together = (us > used) & (us <= as_one) & where
        first = np.where(together, us, NEVER).argmin(axis=0)
        several = together.sum(axis=0) > 1
        others = together & (np.arange(len(us))[:, None, None] != first)
        self._us[:, :, seeds] = np.where(others, BEFORE_ALL, us)
        return bool((several | ~where).all())

    def cancel(self, broker: int, seeds: Ints, from_us: Times) -> None:
        """Cancel a broker's notices that would arrive at or after a time."""
        us, by = self._us[:, :, seeds], self._by[:, :, seeds]
        gone = (by == broker) & (us >= from_us)
        if gone.any():
            self._us[:, :, seeds] = np.where(gone, BEFORE_ALL, us)

    def keep(self) -> None:
        """Pass the notices to the next segment."""
        mixed, more = self._mixed, len(self._us) - len(self._mixed.wakes_us)
        if more:
            shape = more, *mixed.wakes_us.shape[1:]
            mixed.wakes_us = np.concatenate([mixed.wakes_us, np.full(shape, BEFORE_ALL, np.int64)])
            mixed.wakes_by = np.concatenate([mixed.wakes_by, np.zeros(shape, np.int16)])
        mixed.wakes_us[:, self._lifetimes] = self._us
        mixed.wakes_by[:, self._lifetimes] = self._by
