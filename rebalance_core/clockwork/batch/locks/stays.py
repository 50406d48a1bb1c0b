"""Who has which queue, as far as order locks need to know it (rocketmq.md §7)."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.client.rebalance_pass import FORCED_UNLOCK
from rebalance_core.clockwork.batch.futures import Futures
from rebalance_core.clockwork.delays import LISTENER
from rebalance_core.clockwork.draws import DRAW_BITS, Timer, draws_of, uniforms
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Times
from rebalance_core.model.times import UNLOCK_DELAY_MS

Ints = NDArray[np.int64]


class Stays:
    """Stays of queues with processes that renew locks and give them back; BROADCASTING ones do not.

    Columns are (queue, future) pairs, as in `OrderLocks`. A column has a slot for each stay that is
    not over, or whose unlock is under way; there are as many slots as the fullest column needs.
    """

    def __init__(self, futures: Futures) -> None:
        self._futures, script = futures, futures.script
        self._seeds, self._ended = len(futures.seeds), futures.ticks.ended
        size = len(script.queues) * self._seeds
        self._life = np.zeros((1, size), np.int64)
        self._until = np.full((1, size), BEFORE_ALL, np.int64)
        self._release = np.full((1, size), NEVER, np.int64)
        endings = [life.ending for life in script.lives]
        self._graceful = np.array([each is not None and each.graceful for each in endings], bool)
        self._unlocks = np.array([not each.broadcasting for each in futures.traits], bool)
        self._forced = np.array([each.version >= FORCED_UNLOCK for each in futures.traits], bool)
        brokers = np.array(script.broker_entities, np.uint64)
        self._broker_entity = brokers[np.array(script.broker_of_queue, np.int64)]

    def begin(self, at: Ints, lives: Ints, now_us: Times) -> None:
        """Lives take queues; those that never unlock are passed over."""
        rows = np.flatnonzero(self._unlocks[lives])
        at, lives, now_us = at[rows], lives[rows], now_us[rows]
        release = self._release[:, at]
        over = (self._until[:, at] <= now_us) & ((release <= now_us) | (release == NEVER))
        if not over.any(axis=0).all():
            self._add_slot()
            over = np.concatenate([over, np.ones((1, len(at)), np.bool_)])
        self._put(over.argmax(axis=0), at, lives)

    def end(self, at: Ints, lives: Ints, drop_us: Times) -> None:
        """Lives give up queues at a time, unless they end before."""
        seeds = at % self._seeds
        ended = self._ended[lives, seeds]
        release = drop_us + self._held_up_us(at, lives)
        release = np.where(release < ended, release, NEVER)
        goes = self._unlocks[lives] & (drop_us < ended)
        ending = goes & (self._life[:, at] == lives) & (self._until[:, at] == ended)
        slots, rows = np.nonzero(ending)
        self._until[slots, at[rows]] = drop_us[rows]
        self._release[slots, at[rows]] = release[rows]

    def held(self, at: Ints, now_us: Times) -> tuple[Ints, NDArray[np.bool_]]:
        """(slots, columns) lives, and where they have the queue after a time."""
        return self._life[:, at], self._until[:, at] > now_us

    def next_event(self, at: Ints, now_us: Times) -> Times:
        """When somebody gives up the queue next, or unlocks it; `NEVER`."""
        found = np.full(len(at), NEVER, np.int64)
        for times in (self._until[:, at], self._release[:, at]):
            found = np.minimum(found, np.where(times > now_us, times, NEVER).min(axis=0))
        return found

    def unlocks(self, at: Ints, now_us: Times) -> tuple[Ints, NDArray[np.bool_]]:
        """(slots, columns) lives, and where they unlock the queue at that very time."""
        return self._life[:, at], self._release[:, at] == now_us

    def _put(self, slot: Ints, at: Ints, lives: Ints) -> None:
        ended = self._ended[lives, at % self._seeds]
        self._life[slot, at], self._until[slot, at] = lives, ended
        # unlockAll of what is still held
        self._release[slot, at] = np.where(self._graceful[lives], ended, NEVER)

    def _add_slot(self) -> None:
        self._life = np.concatenate([self._life, np.zeros_like(self._life[:1])])
        for name, value in (("_until", BEFORE_ALL), ("_release", NEVER)):
            times = getattr(self, name)
            setattr(self, name, np.concatenate([times, np.full_like(times[:1], value)]))

    def _held_up_us(self, at: Ints, lives: Ints) -> Times:
        """From giving up to unlocking: messages or the listener may hold it up."""
        queues, seeds = at // self._seeds, at % self._seeds
        draws = uniforms(
            self._futures.seeds[seeds], self._broker_entity[queues], Timer.BACKLOG, queues
        )
        words = self._futures.words[lives, seeds]
        waits = np.where(
            self._forced[lives],
            LISTENER.many(draws_of(words, Timer.LISTENER, queues)),
            UNLOCK_DELAY_MS * MS_US,
        )
        return np.where(draws < np.uint64(1 << (DRAW_BITS - 1)), waits, 0)
