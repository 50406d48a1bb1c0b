"""Order locks over many futures (rocketmq.md §7): who has a queue, and what brokers give."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.client.rebalance_pass import FORCED_UNLOCK
from rebalance_core.clockwork import ticks
from rebalance_core.clockwork.batch.futures import Futures, PlaySegment, SortedRows, state_of
from rebalance_core.clockwork.draws import DRAW_BITS, LISTENER, Timer, draws_of, uniforms
from rebalance_core.clockwork.options import MS_US
from rebalance_core.clockwork.ticks import Times
from rebalance_core.model.times import BROKER_LOCK_LIFE_MS, UNLOCK_DELAY_MS

# Who has which queue, as far as order locks need to know it (rocketmq.md §7).

Ints = NDArray[np.int64]


class LockHolds:
    """Stays of queues with processes that renew locks and give them back; BROADCASTING ones do not.

    Columns are (queue, future) pairs, as in `OrderLocks`. A column has a slot for each stay that is
    not over, or whose unlock is under way; there are as many slots as the fullest column needs.
    """

    def __init__(self, futures: Futures) -> None:
        self._futures, script = futures, futures.script
        self._seeds, self._ended = len(futures.seeds), futures.ticks.ended
        size = len(script.queues) * self._seeds
        self._life = np.zeros((1, size), np.int64)
        self._until = np.full((1, size), ticks.BEFORE_ALL, np.int64)
        self._release = np.full((1, size), ticks.NEVER, np.int64)
        endings = [life.ending for life in script.lives]
        self._leaves = np.array([each.leaves_in_time for each in futures.traits], bool)
        graceful = np.array([each is not None and each.graceful for each in endings], bool)
        self._unlocks_all = np.where(graceful[:, None], futures.ticks.unlocked, ticks.NEVER)
        self._endings = SortedRows(self._unlocks_all.T)
        self._unlocks = np.array([not each.broadcasting for each in futures.traits], bool)
        self._forced = np.array([each.version >= FORCED_UNLOCK for each in futures.traits], bool)
        brokers = np.array(script.broker_entities, np.uint64)
        self._broker_entity = brokers[np.array(script.broker_of_queue, np.int64)]

    def state(self) -> dict[str, Any]:
        """Copy what is handed from one segment to the next, and when lives end."""
        times = {"ended": self._ended, "unlocks_all": self._unlocks_all}
        return state_of(self, ("_life", "_until", "_release")) | times

    def resume(self, state: dict[str, Any], lives: int) -> None:
        """Take over the stays of another script, whose lives end at other times."""
        self._life, self._until, self._release = (
            state[name].copy() for name in ("_life", "_until", "_release")
        )
        at = np.minimum(self._life, lives - 1), np.arange(self._life.shape[1]) % self._seeds
        stays = self._until == state["ended"][at]
        unlocks = stays & (self._release == state["unlocks_all"][at])
        self._until = np.where(stays, self._ended[at], self._until)
        self._release = np.where(unlocks, self._unlocks_all[at], self._release)

    def begin(self, at: Ints, lives: Ints, now_us: Times) -> None:
        """Lives take queues; those that never unlock are passed over."""
        rows = np.flatnonzero(self._unlocks[lives])
        at, lives, now_us = at[rows], lives[rows], now_us[rows]
        self._put(self._free_slot(at, now_us), at, lives)

    def end(self, at: Ints, lives: Ints, drop_us: Times, now_us: Times) -> None:
        """Lives give up queues at a time; what they gave back as they left is another matter."""
        seeds = at % self._seeds
        ended = self._ended[lives, seeds]
        held_up_us = self._held_up_us(at, lives)
        release = drop_us + held_up_us
        comes_to_it = self._leaves[lives] & (held_up_us < UNLOCK_DELAY_MS * MS_US)
        release = np.where((release < ended) | comes_to_it, release, ticks.NEVER)
        goes = self._unlocks[lives] & (drop_us < ended)
        ending = goes & (self._life[:, at] == lives) & (self._until[:, at] == ended)
        slots, rows = np.nonzero(ending)
        self._until[slots, at[rows]] = drop_us[rows]
        self._release[slots, at[rows]] = release[rows]
        late = np.flatnonzero(self._leaves[lives] & self._unlocks[lives] & (drop_us >= ended))
        if len(late):
            self._end_late(at[late], lives[late], drop_us[late], release[late], now_us[late])

    def _end_late(
        self, at: Ints, lives: Ints, drop_us: Times, release: Times, now_us: Times
    ) -> None:
        """Lives that leave give up queues; seldom any does."""
        for row in range(len(at)):
            column = at[row : row + 1]
            unlocked = self._unlocks_all[lives[row], at[row] % self._seeds]
            if drop_us[row] < unlocked:  # it is not unlockAll's any more
                matching = (self._life[:, at[row]] == lives[row]) & (
                    self._release[:, at[row]] == unlocked
                )
                self._release[matching, at[row]] = ticks.NEVER
            slot = self._free_slot(column, now_us[row : row + 1])[0]
            self._life[slot, at[row]], self._until[slot, at[row]] = lives[row], ticks.BEFORE_ALL
            self._release[slot, at[row]] = release[row]

    def held(self, at: Ints, now_us: Times) -> tuple[Ints, NDArray[np.bool_]]:
        """(slots, columns) lives, and where they have the queue after a time."""
        return self._life[:, at], self._until[:, at] > now_us

    def next_event(self, at: Ints, now_us: Times) -> Times:
        """Return when somebody gives up the queue next, or unlocks it; `NEVER`."""
        found = np.full(len(at), ticks.NEVER, np.int64)
        for times in (self._until[:, at], self._release[:, at]):
            found = np.minimum(found, np.where(times > now_us, times, ticks.NEVER).min(axis=0))
        return found

    def next_unlock_all(self, seeds: Ints, now_us: Times) -> Times:
        """Return when some process of each future unlocks all that it has by then, next."""
        return self._endings.first_after(seeds, now_us)

    def unlocks(self, at: Ints, now_us: Times) -> tuple[Ints, NDArray[np.bool_]]:
        """(slots, columns) lives, and where they unlock the queue at that very time."""
        return self._life[:, at], self._release[:, at] == now_us

    def _free_slot(self, at: Ints, now_us: Times) -> Ints:
        """A slot of each column that nothing later than a time is in."""
        release = self._release[:, at]
        over = (self._until[:, at] <= now_us) & ((release <= now_us) | (release == ticks.NEVER))
        if not over.any(axis=0).all():
            self._add_slot()
            over = np.concatenate([over, np.ones((1, len(at)), np.bool_)])
        return np.asarray(over.argmax(axis=0), np.int64)

    def _put(self, slot: Ints, at: Ints, lives: Ints) -> None:
        seeds = at % self._seeds
        self._life[slot, at], self._until[slot, at] = lives, self._ended[lives, seeds]
        self._release[slot, at] = self._unlocks_all[lives, seeds]  # what is still held

    def _add_slot(self) -> None:
        self._life = np.concatenate([self._life, np.zeros_like(self._life[:1])])
        for name, value in (("_until", ticks.BEFORE_ALL), ("_release", ticks.NEVER)):
            times = getattr(self, name)
            setattr(self, name, np.concatenate([times, np.full_like(times[:1], value)]))

    def _held_up_us(self, at: Ints, lives: Ints) -> Times:
        """From giving up to unlocking: messages or the listener may hold it up."""
        queues, seeds = at // self._seeds, at % self._seeds
        draws = uniforms(
            self._futures.seeds[seeds], self._broker_entity[queues], Timer.BACKLOG, queues
        )
        words = self._futures.ticks.words[lives, seeds]
        waits = np.where(
            self._forced[lives],
            LISTENER.many(draws_of(words, Timer.LISTENER, queues)),
            UNLOCK_DELAY_MS * MS_US,
        )
        return np.where(draws < np.uint64(1 << (DRAW_BITS - 1)), waits, 0)


# When brokers give order locks, and when they lose those that they gave (rocketmq.md §7).


class LockGivers:
    """The brokers' side; columns are (queue, future) pairs, as in `OrderLocks`."""

    def __init__(self, futures: Futures) -> None:
        self._futures, self._seeds = futures, len(futures.seeds)
        script = futures.script
        self._broker = np.array(script.broker_of_queue, np.int64)
        self._lives = [
            (life.broker, up, down)
            for life, (up, down) in zip(script.broker_lives, futures.broker_lives, strict=True)
        ]
        self._lockless = [
            (stretch.broker, since, until)
            for stretch, (since, until) in zip(
                script.lockless, futures.ticks.lockless_us, strict=True
            )
        ]
        losses = [self._losing(broker) for broker in range(len(script.brokers))]
        widest = max(map(len, losses), default=0)
        self._always = not any(life.up or life.down for life in script.broker_lives)
        self._always &= not self._lockless
        never = np.full(self._seeds, ticks.NEVER)
        table = np.array([each + [never] * (widest - len(each)) for each in losses], np.int64)
        table = table.reshape(len(losses), widest, self._seeds).swapaxes(1, 2)
        self._losses = SortedRows(table.reshape(len(losses) * self._seeds, widest))

    def next_loss(self, at: Ints, now_us: Times) -> Times:
        """Return when the broker's table is emptied next after a time; `NEVER`."""
        if self._always:
            return np.full(len(at), ticks.NEVER, np.int64)
        rows = self._broker[at // self._seeds] * self._seeds + at % self._seeds
        return self._losses.first_after(rows, now_us)

    def give(self, at: Ints, now_us: Times) -> NDArray[np.bool_]:
        """True where the broker is up and has a master."""
        if self._always:
            return np.ones(len(at), bool)
        brokers, seeds = self._broker[at // self._seeds], at % self._seeds
        found = np.zeros(len(at), bool)
        for broker, up, down in self._lives:
            found |= (brokers == broker) & (up[seeds] <= now_us) & (now_us < down[seeds])
        for broker, since, until in self._lockless:
            found &= (brokers != broker) | (now_us < since[seeds]) | (until[seeds] <= now_us)
        return found

    def _losing(self, broker: int) -> list[Times]:
        """(S,) each: when the lock table of a broker is emptied."""
        stretches = self._lives + self._lockless
        return [at for number, *times in stretches if number == broker for at in times]


# Order locks of the brokers, with the futures as an axis (rocketmq.md §7).
#
# Every process that has a queue is followed, several at once too: it renews the lock by
# ``lockAll`` where nobody else has it, gives it back once it has given up the queue, or when it
# ends. What happens to a lock between two requests is made up for at the second one, from one
# moment at which something may change to the next; the renewals in between are arithmetic.

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
        self._stays = LockHolds(futures)
        self._givers = LockGivers(futures)
        self._owner = np.full(size, _NOBODY, np.int64)  # a client
        self._renewed = np.full(size, ticks.BEFORE_ALL, np.int64)
        self._seen = np.full(
            size, ticks.BEFORE_ALL, np.int64
        )  # all until then has been made up for
        self._followed_us = ticks.BEFORE_ALL  # nobody renews from then on

    def hold_at_first(self, life: int, queues: Ints, present: NDArray[np.bool_]) -> None:
        """A life holds queues from before the log, in the futures where it is there."""
        for queue in queues.tolist():
            at = queue * self._seeds + np.flatnonzero(present)
            self._stays.begin(at, np.full(len(at), life), self._seen[at])

    def state(self) -> dict[str, Any]:
        """Copy what is handed from one segment to the next."""
        arrays = state_of(self, ("_owner", "_renewed", "_seen"))
        return arrays | self._stays.state() | {"_followed_us": self._followed_us}

    def resume(self, state: dict[str, Any], lives: int) -> None:
        """Take over who has which locks in another script that begins with the same lives."""
        owner = state["_owner"]
        self._owner = np.where(owner == _NOBODY, _NOBODY, self._client[owner])
        self._renewed, self._seen = state["_renewed"].copy(), state["_seen"].copy()
        self._followed_us = state["_followed_us"]
        self._stays.resume(state, lives)

    def begin(self, segment: PlaySegment) -> None:
        """A segment begins; after a gap, what the rounds of lockAll in it left is made up for."""
        if segment.after_gap:
            everything = np.arange(len(self._owner))
            if self._followed_us > ticks.BEFORE_ALL:
                self._advance(everything, np.full(len(everything), self._followed_us - 1))
                self._advance(everything, np.full(len(everything), segment.begin_us - 1))
            self._seen[:] = segment.begin_us - 1
            self._remember_renewals(everything, segment.begin_us)
        self._followed_us = segment.end_us

    def give_up(self, lives: Ints, queues: Ints, seeds: Ints, at_us: Times) -> None:
        """Queues are given up, and unlocked at once or later."""
        at = queues * self._seeds + seeds
        self._stays.end(at, lives, at_us, self._seen[at])

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

    def refused_until(self, queues: Ints, seeds: Ints, at_us: Times) -> Times:
        """Until when locks refused at a time are refused, as far as it is put down."""
        at = queues * self._seeds + seeds
        loss_us = self._givers.next_loss(at, at_us)
        freed_us = np.minimum(self._stays.next_event(at, at_us), self._renewed[at] + _LOCK_LIFE_US)
        freed_us = np.minimum(freed_us, self._stays.next_unlock_all(seeds, at_us))
        return np.minimum(loss_us, np.where(self._givers.give(at, at_us), freed_us, ticks.NEVER))

    def _advance(self, at: Ints, to_us: Times) -> None:
        """Make up for what happens to locks until a time, that time included."""
        rows = np.flatnonzero(self._seen[at] < to_us)
        while len(rows):
            stepped, seen_us = at[rows], self._seen[at[rows]]
            pause_us = np.minimum(self._stays.next_event(stepped, seen_us), to_us[rows])
            pause_us = np.minimum(self._givers.next_loss(stepped, seen_us), pause_us)
            self._renew(stepped, seen_us, pause_us)
            freed = self._givers.next_loss(stepped, pause_us - 1) == pause_us
            lives, unlocked = self._stays.unlocks(stepped, pause_us)
            freed |= (unlocked & (self._owner[stepped] == self._client[lives])).any(axis=0)
            self._owner[stepped[freed]] = _NOBODY
            self._seen[stepped] = pause_us
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
        number = np.maximum((open_us - first) // ticks.LOCK_RENEWAL_US + 1, 0)
        taken_us = first + number * ticks.LOCK_RENEWAL_US
        taken_us = np.where(held & (taken_us <= until_us), taken_us, ticks.NEVER)
        soonest = taken_us.argmin(axis=0)
        rows = np.flatnonzero(taken_us.min(axis=0) < ticks.NEVER)
        # from then on its rounds keep the lock
        winner = client[soonest[rows], rows]
        last_us = first + (until_us - first) // ticks.LOCK_RENEWAL_US * ticks.LOCK_RENEWAL_US
        last_us = np.where(held & (last_us >= first), last_us, ticks.BEFORE_ALL)[:, rows]
        last_us = np.where(client[:, rows] == winner, last_us, ticks.BEFORE_ALL).max(axis=0)
        self._owner[at[rows]], self._renewed[at[rows]] = winner, last_us

    def _remember_renewals(self, at: Ints, now_us: int) -> None:
        """Keep, of a gap's rounds of lockAll, the last one of each process.

        As ``loop.order_locks.remember_renewals`` has it.
        """
        lives, held = self._stays.held(at, self._seen[at])
        held &= self._givers.give(at, self._seen[at])
        first = self._first_round(lives, at)
        last_us = first + (now_us - first) // ticks.LOCK_RENEWAL_US * ticks.LOCK_RENEWAL_US
        held &= (last_us >= first) & (last_us > self._followed_us)
        order = np.argsort(np.where(held, last_us, ticks.NEVER), axis=0, kind="stable")
        for slots in order:
            slot = slots, at
            client, last = self._client[lives[slot]], last_us[slot]
            owner = self._owner[at]
            free = (owner == _NOBODY) | (owner == client)
            free |= now_us - self._renewed[at] > _LOCK_LIFE_US
            rows = np.flatnonzero(free & held[slot])
            self._owner[at[rows]], self._renewed[at[rows]] = client[rows], last[rows]

    def _first_round(self, lives: Ints, at: Ints) -> Times:
        started = self._futures.ticks.own_start[lives, at % self._seeds]
        return np.asarray(started + ticks.FIRST_LOCK_RENEWAL_US, np.int64)
