"""Order locks of the brokers, with the futures as an axis (rocketmq.md §7).

Every process that holds a queue is simulated, even if several hold it at once: it renews the lock
by ``lockAll`` unless another client holds it, and unlocks the queue after releasing it or when the
process ends. Events between two requests are applied at the second request, one possible change
after another; the renewals in between are computed arithmetically.
"""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.kernels.segments import Ints
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS
from rebalance_core.timing import timer_periods
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.futures import Futures, state_of
from rebalance_core.timing.vectorized.lock_grants import LockGivers
from rebalance_core.timing.vectorized.lock_holds import LockHolds
from rebalance_core.timing.vectorized.play_segments import PlaySegment

_NOBODY = -1
_LOCK_LIFE_US = BROKER_LOCK_LIFE_MS * 1_000


class OrderLocks:
    """The lock of every queue in every future; columns are (queue, future) pairs."""

    def __init__(self, futures: Futures) -> None:
        self._futures, timeline = futures, futures.timeline
        self._seeds = len(futures.seeds)
        size = len(timeline.queues) * self._seeds
        ids = {lifetime.client_id: number for number, lifetime in enumerate(timeline.lifetimes)}
        self._client = np.array(
            [ids[lifetime.client_id] for lifetime in timeline.lifetimes], np.int64
        )
        self._stays = LockHolds(futures)
        self._givers = LockGivers(futures)
        self._owner = np.full(size, _NOBODY, np.int64)  # a client
        self._renewed = np.full(size, timer_periods.BEFORE_ALL, np.int64)
        self._seen = np.full(
            size, timer_periods.BEFORE_ALL, np.int64
        )  # everything until then has been applied
        self._followed_us = timer_periods.BEFORE_ALL  # no client renews after this

    def hold_at_first(self, lifetime: int, queues: Ints, present: NDArray[np.bool_]) -> None:
        """Let a lifetime hold queues from before the log in the futures in which it is present."""
        for queue in queues.tolist():
            columns = queue * self._seeds + np.flatnonzero(present)
            self._stays.begin(columns, np.full(len(columns), lifetime), self._seen[columns])

    def state(self) -> dict[str, Any]:
        """Return a copy of the state that one segment hands to the next."""
        arrays = state_of(self, ("_owner", "_renewed", "_seen"))
        return arrays | self._stays.state() | {"_followed_us": self._followed_us}

    def resume(self, state: dict[str, Any], lifetimes: int) -> None:
        """Restore the locks for another timeline that begins with the same lifetimes."""
        owner = state["_owner"]
        self._owner = np.where(owner == _NOBODY, _NOBODY, self._client[owner])
        self._renewed, self._seen = state["_renewed"].copy(), state["_seen"].copy()
        self._followed_us = state["_followed_us"]
        self._stays.resume(state, lifetimes)

    def begin(self, segment: PlaySegment) -> None:
        """Begin a segment; after a gap, apply the gap's rounds of lockAll."""
        if segment.after_gap:
            everything = np.arange(len(self._owner))
            if self._followed_us > timer_periods.BEFORE_ALL:
                self._advance(everything, np.full(len(everything), self._followed_us - 1))
                self._advance(everything, np.full(len(everything), segment.begin_us - 1))
            self._seen[:] = segment.begin_us - 1
            self._remember_renewals(everything, segment.begin_us)
        self._followed_us = segment.end_us

    def give_up(self, lifetimes: Ints, queues: Ints, seeds: Ints, at_us: Times) -> None:
        """Release queues, which are then unlocked at once or later."""
        columns = queues * self._seeds + seeds
        self._stays.end(columns, lifetimes, at_us, self._seen[columns])

    def ask(
        self, lifetimes: Ints, queues: Ints, seeds: Ints, at_us: Times, asked: NDArray[np.bool_]
    ) -> NDArray[np.bool_]:
        """Request the locks of queues; each queue and future may appear in only one row.

        ``asked`` is False where a member knows no address to which it could send the request.
        """
        columns = queues * self._seeds + seeds
        self._advance(columns, at_us)
        owner, client = self._owner[columns], self._client[lifetimes]
        free = (owner == _NOBODY) | (owner == client)
        free |= at_us - self._renewed[columns] > _LOCK_LIFE_US
        granted: NDArray[np.bool_] = asked & free & self._givers.give(columns, at_us)
        got = columns[granted]
        self._owner[got], self._renewed[got] = client[granted], at_us[granted]
        self._stays.begin(got, lifetimes[granted], at_us[granted])
        return granted

    def refused_until(self, queues: Ints, seeds: Ints, at_us: Times) -> Times:
        """Return how long locks refused at a time remain refused, judging by the events recorded so
        far.
        """
        columns = queues * self._seeds + seeds
        loss_us = self._givers.next_loss(columns, at_us)
        freed_us = np.minimum(
            self._stays.next_event(columns, at_us), self._renewed[columns] + _LOCK_LIFE_US
        )
        freed_us = np.minimum(freed_us, self._stays.next_unlock_all(seeds, at_us))
        return np.minimum(
            loss_us, np.where(self._givers.give(columns, at_us), freed_us, timer_periods.NEVER)
        )

    def _advance(self, columns: Ints, to_us: Times) -> None:
        """Apply the events that affect locks, up to and including a time."""
        rows = np.flatnonzero(self._seen[columns] < to_us)
        while len(rows):
            stepped, seen_us = columns[rows], self._seen[columns[rows]]
            pause_us = np.minimum(self._stays.next_event(stepped, seen_us), to_us[rows])
            pause_us = np.minimum(self._givers.next_loss(stepped, seen_us), pause_us)
            self._renew(stepped, seen_us, pause_us)
            freed = self._givers.next_loss(stepped, pause_us - 1) == pause_us
            lifetimes, unlocked = self._stays.unlocks(stepped, pause_us)
            freed |= (unlocked & (self._owner[stepped] == self._client[lifetimes])).any(axis=0)
            self._owner[stepped[freed]] = _NOBODY
            self._seen[stepped] = pause_us
            rows = rows[pause_us < to_us[rows]]

    def _renew(self, columns: Ints, since_us: Times, until_us: Times) -> None:
        """Apply the rounds of lockAll between two times; nothing else may happen between them."""
        until_us = np.minimum(until_us, self._followed_us - 1)
        lifetimes, held = self._stays.held(columns, since_us)
        held &= (since_us < until_us) & self._givers.give(columns, since_us)
        owner, client = self._owner[columns], self._client[lifetimes]
        first = self._first_round(lifetimes, columns)
        # clients other than the owner get the lock once it has expired
        open_us = np.where(
            (client == owner) | (owner == _NOBODY),
            since_us,
            np.maximum(since_us, self._renewed[columns] + _LOCK_LIFE_US),
        )
        number = np.maximum((open_us - first) // timer_periods.LOCK_RENEWAL_US + 1, 0)
        taken_us = first + number * timer_periods.LOCK_RENEWAL_US
        taken_us = np.where(held & (taken_us <= until_us), taken_us, timer_periods.NEVER)
        soonest = taken_us.argmin(axis=0)
        rows = np.flatnonzero(taken_us.min(axis=0) < timer_periods.NEVER)
        # its rounds of lockAll then keep the lock
        winner = client[soonest[rows], rows]
        last_us = (
            first
            + (until_us - first) // timer_periods.LOCK_RENEWAL_US * timer_periods.LOCK_RENEWAL_US
        )
        last_us = np.where(held & (last_us >= first), last_us, timer_periods.BEFORE_ALL)[:, rows]
        last_us = np.where(client[:, rows] == winner, last_us, timer_periods.BEFORE_ALL).max(axis=0)
        self._owner[columns[rows]], self._renewed[columns[rows]] = winner, last_us

    def _remember_renewals(self, columns: Ints, now_us: int) -> None:
        """Keep only the last round of lockAll that each process runs in a gap.

        Does what ``reference.order_locks.remember_renewals`` does.
        """
        lifetimes, held = self._stays.held(columns, self._seen[columns])
        held &= self._givers.give(columns, self._seen[columns])
        first = self._first_round(lifetimes, columns)
        last_us = (
            first
            + (now_us - first) // timer_periods.LOCK_RENEWAL_US * timer_periods.LOCK_RENEWAL_US
        )
        held &= (last_us >= first) & (last_us > self._followed_us)
        order = np.argsort(np.where(held, last_us, timer_periods.NEVER), axis=0, kind="stable")
        for slots in order:
            slot = slots, columns
            client, last = self._client[lifetimes[slot]], last_us[slot]
            owner = self._owner[columns]
            free = (owner == _NOBODY) | (owner == client)
            free |= now_us - self._renewed[columns] > _LOCK_LIFE_US
            rows = np.flatnonzero(free & held[slot])
            self._owner[columns[rows]], self._renewed[columns[rows]] = client[rows], last[rows]

    def _first_round(self, lifetimes: Ints, columns: Ints) -> Times:
        started = self._futures.ticks.own_start[lifetimes, columns % self._seeds]
        return np.asarray(started + timer_periods.FIRST_LOCK_RENEWAL_US, np.int64)
