"""Order locks of the brokers, with the futures as an axis (rocketmq.md §7).

Every process that has a queue is followed, several at once too: it renews the lock by ``lockAll``
where nobody else has it, gives it back once it has given up the queue, or when it ends. What
happens to a lock between two requests is made up for at the second one, from one moment at which
something may change to the next; the renewals in between are arithmetic.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.futures import Futures
from rebalance_core.clockwork.batch.locks.lock_givers import LockGivers
from rebalance_core.clockwork.batch.locks.stays import Stays
from rebalance_core.clockwork.batch.segments import Segment
from rebalance_core.clockwork.ticks import (
    BEFORE_ALL,
    FIRST_LOCK_RENEWAL_US,
    LOCK_RENEWAL_US,
    NEVER,
    Times,
)
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS

Ints = NDArray[np.int64]

_NOBODY = -1
_LOCK_LIFE_US = BROKER_LOCK_LIFE_MS * 1_000


class OrderLocks:
    """The lock of every queue in every future; columns are (queue, future) pairs."""

    def __init__(self, futures: Futures) -> None:
        self._futures, script = futures, futures.script
        self._seeds = len(futures.seeds)
        size = len(script.queues) * self._seeds
        ids = {life.client_id: number for number, life in enumerate(script.lives)}
        self._client = np.array([ids[life.client_id] for life in script.lives], np.int64)
        self._stays = Stays(futures)
        self._givers = LockGivers(futures)
        self._owner = np.full(size, _NOBODY, np.int64)  # a client
        self._renewed = np.full(size, BEFORE_ALL, np.int64)
        self._seen = np.full(size, BEFORE_ALL, np.int64)  # all until then has been made up for
        self._followed_us = BEFORE_ALL  # nobody renews from then on

    def hold_at_first(self, life: int, queues: Ints, there: NDArray[np.bool_]) -> None:
        """A life holds queues from before the log, in the futures where it is there."""
        for queue in queues.tolist():
            at = queue * self._seeds + np.flatnonzero(there)
            self._stays.begin(at, np.full(len(at), life), self._seen[at])

    def begin(self, segment: Segment) -> None:
        """A segment begins; after a gap, what the rounds of lockAll in it left is made up for."""
        if segment.after_gap:
            everything = np.arange(len(self._owner))
            if self._followed_us > BEFORE_ALL:
                self._advance(everything, np.full(len(everything), self._followed_us - 1))
                self._advance(everything, np.full(len(everything), segment.begin_us - 1))
            self._seen[:] = segment.begin_us - 1
            self._remember_renewals(everything, segment.begin_us)
        self._followed_us = segment.end_us

    def give_up(self, lives: Ints, queues: Ints, seeds: Ints, at_us: Times) -> None:
        """Queues are given up, and unlocked at once or later."""
        self._stays.end(queues * self._seeds + seeds, lives, at_us)

    def ask(
        self, lives: Ints, queues: Ints, seeds: Ints, at_us: Times, asked: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Ask for the locks of queues; no two rows are of one queue and future.

        ``asked`` is False where a member has no address to ask.
        """
        at = queues * self._seeds + seeds
        self._advance(at, at_us)
        owner, client = self._owner[at], self._client[lives]
        free = (owner == _NOBODY) | (owner == client)
        free |= at_us - self._renewed[at] > _LOCK_LIFE_US
        granted: NDArray[np.bool_] = asked & free & self._givers.give(at, at_us)
        got = at[granted]
        self._owner[got], self._renewed[got] = client[granted], at_us[granted]
        self._stays.begin(got, lives[granted], at_us[granted])
        return granted

    def _advance(self, at: Ints, to_us: Times) -> None:
        """Make up for what happens to locks until a time, that time included."""
        rows = np.flatnonzero(self._seen[at] < to_us)
        while len(rows):
            its, seen_us = at[rows], self._seen[at[rows]]
            pause_us = np.minimum(self._stays.next_event(its, seen_us), to_us[rows])
            pause_us = np.minimum(self._givers.next_loss(its, seen_us), pause_us)
            self._renew(its, seen_us, pause_us)
            freed = self._givers.next_loss(its, pause_us - 1) == pause_us
            lives, unlocked = self._stays.unlocks(its, pause_us)
            freed |= (unlocked & (self._owner[its] == self._client[lives])).any(axis=0)
            self._owner[its[freed]] = _NOBODY
            self._seen[its] = pause_us
            rows = rows[pause_us < to_us[rows]]

    def _renew(self, at: Ints, since_us: Times, until_us: Times) -> None:
        """Rounds of lockAll after a time and until another; nothing else happens between them."""
        until_us = np.minimum(until_us, self._followed_us - 1)
        lives, held = self._stays.held(at, since_us)
        held &= (since_us < until_us) & self._givers.give(at, since_us)
        owner, client = self._owner[at], self._client[lives]
        first = self._first_round(lives, at)
        # others than the owner get the lock once it has expired
        open_us = np.where(
            (client == owner) | (owner == _NOBODY),
            since_us,
            np.maximum(since_us, self._renewed[at] + _LOCK_LIFE_US),
        )
        number = np.maximum((open_us - first) // LOCK_RENEWAL_US + 1, 0)
        taken_us = first + number * LOCK_RENEWAL_US
        taken_us = np.where(held & (taken_us <= until_us), taken_us, NEVER)
        soonest = taken_us.argmin(axis=0)
        rows = np.flatnonzero(taken_us.min(axis=0) < NEVER)
        # from then on its rounds keep the lock
        winner = client[soonest[rows], rows]
        last_us = first + (until_us - first) // LOCK_RENEWAL_US * LOCK_RENEWAL_US
        last_us = np.where(held & (last_us >= first), last_us, BEFORE_ALL)[:, rows]
        last_us = np.where(client[:, rows] == winner, last_us, BEFORE_ALL).max(axis=0)
        self._owner[at[rows]], self._renewed[at[rows]] = winner, last_us

    def _remember_renewals(self, at: Ints, now_us: int) -> None:
        """What the rounds of lockAll of a gap left: the last of each process counts.

        As ``loop.order_locks.remember_renewals`` has it.
        """
        lives, held = self._stays.held(at, self._seen[at])
        held &= self._givers.give(at, self._seen[at])
        first = self._first_round(lives, at)
        last_us = first + (now_us - first) // LOCK_RENEWAL_US * LOCK_RENEWAL_US
        held &= (last_us >= first) & (last_us > self._followed_us)
        order = np.argsort(np.where(held, last_us, NEVER), axis=0, kind="stable")
        for slots in order:
            slot = slots, at
            client, last = self._client[lives[slot]], last_us[slot]
            owner = self._owner[at]
            free = (owner == _NOBODY) | (owner == client)
            free |= now_us - self._renewed[at] > _LOCK_LIFE_US
            rows = np.flatnonzero(free & held[slot])
            self._owner[at[rows]], self._renewed[at[rows]] = client[rows], last[rows]

    def _first_round(self, lives: Ints, at: Ints) -> Times:
        started = self._futures.ticks.timers_start[lives, at % self._seeds]
        return np.asarray(started + FIRST_LOCK_RENEWAL_US, np.int64)
