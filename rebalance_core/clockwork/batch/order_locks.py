"""Order locks of the brokers, with the futures as an axis (rocketmq.md §7).

Of each queue only the last taker is remembered: when it was granted the lock, until when it holds
the queue, and when it unlocks; and who was *robbed*: somebody else got the lock of a queue that it
still had. Renewals by ``lockAll`` are arithmetic. Futures in which a robbed member's renewal could
matter, and the like, are *odd*: they are left to the plain loop.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.client.queue_removal import FORCED_UNLOCK
from rebalance_core.clockwork.batch.futures import Futures
from rebalance_core.clockwork.batch.search import SortedRows
from rebalance_core.clockwork.delays import LISTENER
from rebalance_core.clockwork.draws import DRAW_BITS, Timer, draws_of, uniforms
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.ticks import (
    BEFORE_ALL,
    FIRST_LOCK_RENEWAL_US,
    LOCK_RENEWAL_US,
    NEVER,
    Times,
)
from rebalance_core.model.timers import BROKER_LOCK_LIFE_MS, UNLOCK_DELAY_MS

Ints = NDArray[np.int64]

_NOBODY = -1


class OrderLocks:
    """The lock of every queue in every future; columns are (queue, future) pairs.

    Attributes:
        odd: (S,) futures that the loop has to play.
    """

    def __init__(self, futures: Futures) -> None:
        self._futures = futures
        script = futures.script
        self._seeds = len(futures.seeds)
        size = len(script.queues) * self._seeds
        ids = {life.client_id: number for number, life in enumerate(script.lives)}
        self._client = np.array([ids[life.client_id] for life in script.lives], np.int64)
        self._owner = np.full(size, _NOBODY, np.int64)  # a client
        self._holder = np.zeros(size, np.int64)  # a life
        self._granted = np.full(size, BEFORE_ALL, np.int64)
        self._until = np.full(size, NEVER, np.int64)
        self._release = np.full(size, NEVER, np.int64)
        self._broker = np.array(script.broker_of_queue, np.int64)
        self.odd = np.zeros(self._seeds, bool)
        endings = [life.ending for life in script.lives]
        self._graceful = np.array([each is not None and each.graceful for each in endings], bool)
        self._forced = np.array([trait.version >= FORCED_UNLOCK for trait in futures.traits])
        self._gap = np.full(size, BEFORE_ALL, np.int64)
        self._robbed = np.full(size, _NOBODY, np.int64)  # a life that holds what another has locked
        self._robbed_until = np.full(size, BEFORE_ALL, np.int64)
        self._losses = [
            SortedRows(-np.stack(self._losing(broker), axis=1))
            for broker in range(len(script.brokers))
        ]

    def hold_at_first(self, life: int, queues: Ints, there: NDArray[np.bool_]) -> None:
        """A life holds queues from before the log, in the futures where it is there."""
        for queue in queues.tolist():
            at = queue * self._seeds + np.flatnonzero(there)
            self.odd[at[self._owner[at] != _NOBODY] % self._seeds] = True
            self._owner[at], self._holder[at] = self._client[life], life

    def give_up(self, lives: Ints, queues: Ints, seeds: Ints, at_us: Times) -> None:
        """Queues are given up, and unlocked at once or later."""
        at = queues * self._seeds + seeds
        robbed = at[self._robbed[at] == lives]
        self._robbed_until[robbed] = at_us[self._robbed[at] == lives]
        ours = self._holder[at] == lives
        at, lives, queues, seeds, at_us = (each[ours] for each in (at, lives, queues, seeds, at_us))
        backlog = self._has_backlog(queues, seeds)
        words = self._futures.words[lives, seeds]
        waits = np.where(
            self._forced[lives],
            LISTENER.many(draws_of(words, Timer.LISTENER, queues)),
            UNLOCK_DELAY_MS * MS_US,
        )
        release = at_us + np.where(backlog, waits, 0)
        lives_on = release < self._futures.ticks.ended[lives, seeds]
        self._until[at] = at_us
        self._release[at] = np.where(lives_on, release, NEVER)

    def ask(self, lives: Ints, queues: Ints, seeds: Ints, at_us: Times) -> NDArray[np.bool_]:
        """Ask for the locks of queues; no two rows are of one queue and future."""
        at = queues * self._seeds + seeds
        ticks, holder = self._futures.ticks, self._holder[at]
        ended = ticks.ended[holder, seeds]
        until = np.minimum(np.minimum(self._until[at], ended), at_us)
        renewed = np.maximum(self._granted[at], self._last_renewal(holder, seeds, until))
        lost, up = self._broker_state(queues, seeds, at_us)
        released = np.where(self._release[at] <= at_us, self._release[at], BEFORE_ALL)
        gap = self._gap[at]
        released = np.maximum(released, np.where(gap <= at_us, gap, BEFORE_ALL))
        left = self._graceful[holder] & (ended <= at_us) & (self._until[at] >= ended)
        lost = np.maximum(np.maximum(lost, released), np.where(left, ended, BEFORE_ALL))
        mine = self._owner[at] == self._client[lives]
        free = (self._owner[at] == _NOBODY) | (renewed <= lost) | mine
        free |= at_us - renewed > BROKER_LOCK_LIFE_MS * MS_US
        granted = free & up
        held = (self._owner[at] != _NOBODY) & (self._until[at] > at_us) & (ended > at_us)
        pending = mine & (self._release[at] > at_us) & (self._release[at] < NEVER)
        twice = pending & (gap > at_us)
        robs = held & (holder != lives)
        freed = ~mine & (self._owner[at] != _NOBODY)
        since = np.where(renewed <= lost, lost, renewed)
        still = self._robbed_until[at]
        unclear = (robs & (still > at_us)) | (freed & (still > since)) | twice
        self.odd[seeds[granted & unclear]] = True
        rob = at[granted & robs]
        self._robbed[rob], self._robbed_until[rob] = self._holder[rob], self._until[rob]
        got = at[granted]
        # an unlock under way frees the queue although it has been taken again
        kept = np.where(mine, gap, BEFORE_ALL)
        self._gap[got] = np.where(pending, self._release[at], kept)[granted]
        self._owner[got], self._holder[got] = self._client[lives[granted]], lives[granted]
        self._granted[got] = at_us[granted]
        self._until[got], self._release[got] = NEVER, NEVER
        return np.asarray(granted, bool)

    def _last_renewal(self, lives: Ints, seeds: Ints, at_us: Times) -> Times:
        first = self._futures.ticks.timers_start[lives, seeds] + FIRST_LOCK_RENEWAL_US
        number = (at_us - first) // LOCK_RENEWAL_US
        return np.where(number < 0, BEFORE_ALL, first + number * LOCK_RENEWAL_US)

    def _has_backlog(self, queues: Ints, seeds: Ints) -> NDArray[np.bool_]:
        entities = np.array(self._futures.script.broker_entities, np.uint64)
        draws = uniforms(
            self._futures.seeds[seeds], entities[self._broker[queues]], Timer.BACKLOG, queues
        )
        return draws < np.uint64(1 << (DRAW_BITS - 1))

    def _losing(self, broker: int) -> list[Times]:
        """(S,) each: when the lock table of a broker is emptied."""
        futures, script = self._futures, self._futures.script
        found: list[Times] = []
        for life, (up, down) in zip(script.broker_lives, futures.broker_lives, strict=True):
            found += [up, down] if life.broker == broker else []
        for stretch in script.lockless:
            moments = (stretch.since, stretch.until) if stretch.broker == broker else ()
            found += [futures.ticks.true_us(each) for each in moments if each is not None]
        return found

    def _broker_state(
        self, queues: Ints, seeds: Ints, at_us: Times
    ) -> tuple[Times, NDArray[np.bool_]]:
        """When the broker's locks were lost last, and whether it gives any."""
        lost = np.full(len(queues), BEFORE_ALL, np.int64)
        up = np.zeros(len(queues), bool)
        brokers = self._broker[queues]
        for broker in np.unique(brokers).tolist():
            rows = np.flatnonzero(brokers == broker)
            at = at_us[rows]
            # the rows hold negated times: the first one later than -t - 1 is the last one up to t
            found = -self._losses[broker].first_after(seeds[rows], -at - 1)
            lost[rows] = np.maximum(found, BEFORE_ALL)
            up[rows] = self._gives(broker, seeds[rows], at)
        return lost, up

    def _gives(self, broker: int, seeds: Ints, at_us: Times) -> NDArray[np.bool_]:
        script = self._futures.script
        found = np.zeros(len(seeds), bool)
        for life, (up, down) in zip(script.broker_lives, self._futures.broker_lives, strict=True):
            if life.broker == broker:
                found |= (up[seeds] <= at_us) & (at_us < down[seeds])
        for stretch in script.lockless:
            if stretch.broker == broker:
                since = self._futures.ticks.true_us(stretch.since)[seeds]
                until = np.full(len(seeds), NEVER)
                if stretch.until is not None:
                    until = self._futures.ticks.true_us(stretch.until)[seeds]
                found &= ~((since <= at_us) & (at_us < until))
        return found
