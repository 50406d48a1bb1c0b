"""The queue holders on which order locks depend (rocketmq.md §7)."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.client.drop_phase import FORCED_UNLOCK
from rebalance_core.kernels.segments import Ints
from rebalance_core.model.times import UNLOCK_DELAY_MS
from rebalance_core.timing import timer_periods
from rebalance_core.timing.delays import LISTENER
from rebalance_core.timing.draws import DRAW_BITS, Timer, draws_of, uniforms
from rebalance_core.timing.options import MS_US
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.futures import Futures, state_of
from rebalance_core.timing.vectorized.sorted_rows import SortedRows


class LockHolds:
    """Holdings of the processes that renew and release locks; BROADCASTING processes are excluded.

    Columns are (queue, future) pairs, as in `OrderLocks`. A column has one slot for each current
    holding or pending unlock; the fullest column determines the number of slots.
    """

    def __init__(self, futures: Futures) -> None:
        self._futures, timeline = futures, futures.timeline
        self._seeds, self._ended = len(futures.seeds), futures.ticks.ended
        size = len(timeline.queues) * self._seeds
        self._lifetime = np.zeros((1, size), np.int64)
        self._until = np.full((1, size), timer_periods.BEFORE_ALL, np.int64)
        self._release = np.full((1, size), timer_periods.NEVER, np.int64)
        endings = [lifetime.ending for lifetime in timeline.lifetimes]
        self._leaves = np.array([each.leaves_in_time for each in futures.traits], bool)
        graceful = np.array([each is not None and each.graceful for each in endings], bool)
        self._unlocks_all = np.where(graceful[:, None], futures.ticks.unlocked, timer_periods.NEVER)
        self._endings = SortedRows(self._unlocks_all.T)
        self._unlocks = np.array([not each.broadcasting for each in futures.traits], bool)
        self._forced = np.array([each.version >= FORCED_UNLOCK for each in futures.traits], bool)
        brokers = np.array(timeline.broker_entities, np.uint64)
        self._broker_entity = brokers[np.array(timeline.broker_of_queue, np.int64)]

    def state(self) -> dict[str, Any]:
        """Return a copy of the state for the next segment, including when lifetimes end."""
        times = {"ended": self._ended, "unlocks_all": self._unlocks_all}
        return state_of(self, ("_lifetime", "_until", "_release")) | times

    def resume(self, state: dict[str, Any], lifetimes: int) -> None:
        """Restore the holdings of another timeline, whose lifetimes end at other times."""
        self._lifetime, self._until, self._release = (
            state[name].copy() for name in ("_lifetime", "_until", "_release")
        )
        cells = (
            np.minimum(self._lifetime, lifetimes - 1),
            np.arange(self._lifetime.shape[1]) % self._seeds,
        )
        stays = self._until == state["ended"][cells]
        unlocks = stays & (self._release == state["unlocks_all"][cells])
        self._until = np.where(stays, self._ended[cells], self._until)
        self._release = np.where(unlocks, self._unlocks_all[cells], self._release)

    def begin(self, columns: Ints, lifetimes: Ints, now_us: Times) -> None:
        """Let lifetimes take queues; those that never unlock are skipped."""
        rows = np.flatnonzero(self._unlocks[lifetimes])
        columns, lifetimes, now_us = columns[rows], lifetimes[rows], now_us[rows]
        self._put(self._free_slot(columns, now_us), columns, lifetimes)

    def end(self, columns: Ints, lifetimes: Ints, drop_us: Times, now_us: Times) -> None:
        """Let lifetimes release queues at a time, except for locks already released while
        leaving.
        """
        seeds = columns % self._seeds
        ended = self._ended[lifetimes, seeds]
        held_up_us = self._held_up_us(columns, lifetimes)
        release = drop_us + held_up_us
        comes_to_it = self._leaves[lifetimes] & (held_up_us < UNLOCK_DELAY_MS * MS_US)
        release = np.where((release < ended) | comes_to_it, release, timer_periods.NEVER)
        goes = self._unlocks[lifetimes] & (drop_us < ended)
        ending = (
            goes & (self._lifetime[:, columns] == lifetimes) & (self._until[:, columns] == ended)
        )
        slots, rows = np.nonzero(ending)
        self._until[slots, columns[rows]] = drop_us[rows]
        self._release[slots, columns[rows]] = release[rows]
        late = np.flatnonzero(
            self._leaves[lifetimes] & self._unlocks[lifetimes] & (drop_us >= ended)
        )
        if len(late):
            self._end_late(
                columns[late], lifetimes[late], drop_us[late], release[late], now_us[late]
            )

    def _end_late(
        self, columns: Ints, lifetimes: Ints, drop_us: Times, release: Times, now_us: Times
    ) -> None:
        """Let leaving lifetimes release queues, which is rare."""
        for row in range(len(columns)):
            column = columns[row : row + 1]
            unlocked = self._unlocks_all[lifetimes[row], columns[row] % self._seeds]
            if drop_us[row] < unlocked:  # released before unlockAll, which skips it
                matching = (self._lifetime[:, columns[row]] == lifetimes[row]) & (
                    self._release[:, columns[row]] == unlocked
                )
                self._release[matching, columns[row]] = timer_periods.NEVER
            slot = self._free_slot(column, now_us[row : row + 1])[0]
            self._lifetime[slot, columns[row]], self._until[slot, columns[row]] = (
                lifetimes[row],
                timer_periods.BEFORE_ALL,
            )
            self._release[slot, columns[row]] = release[row]

    def held(self, columns: Ints, now_us: Times) -> tuple[Ints, NDArray[np.bool_]]:
        """Return (slots, columns) the lifetimes, and whether each still holds its queue after a
        time.
        """
        return self._lifetime[:, columns], self._until[:, columns] > now_us

    def next_event(self, columns: Ints, now_us: Times) -> Times:
        """Return when a holder next releases or unlocks the queue, or `NEVER`."""
        next_us = np.full(len(columns), timer_periods.NEVER, np.int64)
        for times in (self._until[:, columns], self._release[:, columns]):
            next_us = np.minimum(
                next_us, np.where(times > now_us, times, timer_periods.NEVER).min(axis=0)
            )
        return next_us

    def next_unlock_all(self, seeds: Ints, now_us: Times) -> Times:
        """Return when a process in each future next unlocks all its queues."""
        return self._endings.first_after(seeds, now_us)

    def unlocks(self, columns: Ints, now_us: Times) -> tuple[Ints, NDArray[np.bool_]]:
        """Return (slots, columns) the lifetimes, and whether each unlocks its queue at exactly this
        time.
        """
        return self._lifetime[:, columns], self._release[:, columns] == now_us

    def _free_slot(self, columns: Ints, now_us: Times) -> Ints:
        """Return a slot in each column that is free after a time, adding one if necessary."""
        release = self._release[:, columns]
        over = (self._until[:, columns] <= now_us) & (
            (release <= now_us) | (release == timer_periods.NEVER)
        )
        if not over.any(axis=0).all():
            self._add_slot()
            over = np.concatenate([over, np.ones((1, len(columns)), np.bool_)])
        return np.asarray(over.argmax(axis=0), np.int64)

    def _put(self, slot: Ints, columns: Ints, lifetimes: Ints) -> None:
        seeds = columns % self._seeds
        self._lifetime[slot, columns], self._until[slot, columns] = (
            lifetimes,
            self._ended[lifetimes, seeds],
        )
        self._release[slot, columns] = self._unlocks_all[lifetimes, seeds]  # still held

    def _add_slot(self) -> None:
        self._lifetime = np.concatenate([self._lifetime, np.zeros_like(self._lifetime[:1])])
        for name, value in (
            ("_until", timer_periods.BEFORE_ALL),
            ("_release", timer_periods.NEVER),
        ):
            times = getattr(self, name)
            setattr(self, name, np.concatenate([times, np.full_like(times[:1], value)]))

    def _held_up_us(self, columns: Ints, lifetimes: Ints) -> Times:
        """Return the time from release to unlock, which messages or the listener may delay."""
        queues, seeds = columns // self._seeds, columns % self._seeds
        draws = uniforms(
            self._futures.seeds[seeds], self._broker_entity[queues], Timer.BACKLOG, queues
        )
        words = self._futures.ticks.words[lifetimes, seeds]
        waits = np.where(
            self._forced[lifetimes],
            LISTENER.many(draws_of(words, Timer.LISTENER, queues)),
            UNLOCK_DELAY_MS * MS_US,
        )
        return np.where(draws < np.uint64(1 << (DRAW_BITS - 1)), waits, 0)
