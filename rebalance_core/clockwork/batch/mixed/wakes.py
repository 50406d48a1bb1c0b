"""Notices under way to members, and those that no pass has used up."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.mixed.state import MixedState
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Times

Ints = NDArray[np.int64]


class Wakes:
    """The notices to the elements of a segment.

    Args:
        mixed: what was under way before.
        lives: numbers of the lives.
    """

    def __init__(self, mixed: MixedState, lives: Ints) -> None:
        self._mixed, self._lives = mixed, lives
        self._us = mixed.wakes_us[:, lives]
        self._by = mixed.wakes_by[:, lives]

    def first_after(self, at_us: Times) -> Times:
        """(elements,) the first notice of each that comes later than a time; `NEVER`."""
        after = at_us.reshape(self._us.shape[1:])
        found: Times = np.where(self._us > after, self._us, NEVER).min(axis=0)
        return found.reshape(-1)

    def put(self, broker: int, seeds: Ints, at_us: Times, used: Times) -> None:
        """A broker sends notices in some futures.

        Args:
            broker: its number.
            seeds: (n,) places of the futures.
            at_us: (lives, n) when each member is woken; `NEVER`: it is not told.
            used: (lives, n) notices until then are used up.
        """
        left = at_us < NEVER
        slot = 0
        while left.any():
            if slot == len(self._us):
                self._us = np.concatenate([self._us, np.full_like(self._us, BEFORE_ALL)])
                self._by = np.concatenate([self._by, np.zeros_like(self._by)])
            its = self._us[slot][:, seeds]
            puts = left & (its <= used)
            if puts.any():
                self._us[slot][:, seeds] = np.where(puts, at_us, its)
                by = self._by[slot][:, seeds]
                self._by[slot][:, seeds] = np.where(puts, broker, by)
                left &= ~puts
            slot += 1

    def cancel(self, broker: int, seeds: Ints, from_us: Times) -> None:
        """Notices of a broker that would come from a time on do not come."""
        us, by = self._us[:, :, seeds], self._by[:, :, seeds]
        gone = (by == broker) & (us >= from_us)
        if gone.any():
            self._us[:, :, seeds] = np.where(gone, BEFORE_ALL, us)

    def keep(self) -> None:
        """Hand over to the next segment."""
        its, more = self._mixed, len(self._us) - len(self._mixed.wakes_us)
        if more:
            shape = more, *its.wakes_us.shape[1:]
            its.wakes_us = np.concatenate([its.wakes_us, np.full(shape, BEFORE_ALL, np.int64)])
            its.wakes_by = np.concatenate([its.wakes_by, np.zeros(shape, np.int16)])
        its.wakes_us[:, self._lives] = self._us
        its.wakes_by[:, self._lives] = self._by
