"""What a group with different subscriptions carries from one segment to the next, and what
comes next.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.elements import Elements
from rebalance_core.clockwork.batch.futures import Futures, PlaySegment, state_of, take_over
from rebalance_core.clockwork.batch.member_lists import MemberList
from rebalance_core.clockwork.script import Script
from rebalance_core.clockwork.ticks import BEFORE_ALL, FIRST_HEARTBEAT_US, NEVER, Ticks, Times
from rebalance_core.model.queue import is_retry_topic

# Who subscribes what, from when on.

Ints = NDArray[np.int64]


class Subscriptions:
    """Sets of topics by number, and which of them each life has when.

    Args:
        script: what happens.
        ticks: its times.

    Attributes:
        sets: each set of topics that some life subscribes at some time.
        since: (states, lives, S) since when each state of a life holds; `NEVER`: it has none.
        codes: (states, lives) number of the set that it subscribes then.
        has: (sets, topics) True where the set has a topic of the script.
    """

    def __init__(self, script: Script, ticks: Ticks) -> None:
        numbers: dict[frozenset[str], int] = {}
        most = max((len(life.states) for life in script.lives), default=1)
        self.since = np.full((most, len(script.lives), len(ticks.seeds)), NEVER, np.int64)
        self.codes = np.zeros((most, len(script.lives)), np.int64)
        for life in script.lives:
            self.since[: len(life.states), life.index] = ticks.states_us(life)
            self.since[0, life.index] = BEFORE_ALL
            for state, (_, member) in enumerate(life.states):
                topics = frozenset(member.subscriptions)
                self.codes[state:, life.index] = numbers.setdefault(topics, len(numbers))
        self.sets = tuple(numbers)
        self.has = np.array(
            [[topic in topics for topic in script.topics] for topics in self.sets], bool
        ).reshape(len(self.sets), len(script.topics))

    def grows(self, life: int, state: int) -> bool:
        """A life subscribes a topic in a state that it did not before."""
        before, now = self.codes[state - 1, life], self.codes[state, life]
        return not self.sets[now] <= self.sets[before]

    def of(self, lives: Ints) -> SubscriptionsNow:
        """Select the state of some lives."""
        return SubscriptionsNow(self, lives)


class SubscriptionsNow:
    """Subscriptions of the elements of a segment, ordered by life, then by future."""

    def __init__(self, subscriptions: Subscriptions, lives: Ints) -> None:
        self._its = subscriptions
        self.sets = subscriptions.sets
        """By number."""
        self.since: Times = subscriptions.since[:, lives]
        """(states, lives, S)"""
        self.codes = subscriptions.codes[:, lives]
        """(states, lives)"""
        states, _, seeds = self.since.shape
        self._flat = self.since.reshape(states, -1)
        self._codes = np.repeat(self.codes, seeds, axis=1)

    def codes_at(self, elements: Ints, at_us: Times) -> Ints:
        """The number of the set that each element subscribes at a time."""
        found: Ints = self._codes[0][elements]
        for since, codes in zip(self._flat[1:], self._codes[1:], strict=True):
            found = np.where(since[elements] <= at_us, codes[elements], found)
        return found

    def state_has(self, state: int, topic: int) -> NDArray[np.bool_]:
        """(lives, 1) True where a life subscribes a topic in one of its states."""
        found: NDArray[np.bool_] = self._its.has[self.codes[state], topic][:, None]
        return found


# Elements whose topics differ.


class MixedElements(Elements):
    """`Elements` of members that subscribe differently.

    Args:
        futures: of the script; `keep` hands the state back.
        segment: which part of it.
        lives: numbers of the lives.
        subscriptions: of the lives.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lives: Ints, subscriptions: SubscriptionsNow
    ) -> None:
        super().__init__(futures, segment, lives)
        self._subscriptions = subscriptions
        known_topics = futures.script.topics
        lacking = [
            [topic for topic in topics if topic not in known_topics]
            for topics in subscriptions.sets
        ]
        self._lacks = np.array([bool(topics) for topics in lacking])
        self._lacks_more = np.array([not all(map(is_retry_topic, topics)) for topics in lacking])

    def always_notifies(self, who: Ints, begin: Times) -> NDArray[np.bool_]:
        """True where a pass goes through a topic that never has a route (rocketmq.md §3.3)."""
        codes = self._subscriptions.codes_at(who, begin)
        lacks = np.where(self.broadcasting[who], self._lacks[codes], self._lacks_more[codes])
        return np.asarray(lacks & ~self.is_v4[who], bool)


# What a group with different subscriptions carries from one segment to the next.

NOTHING_HEARD = -1
"""A broker that has not heard what the group subscribes."""


def is_mixed(script: Script) -> bool:
    """Some member subscribes what another does not, or did not before."""
    sets = {frozenset(member.subscriptions) for life in script.lives for _, member in life.states}
    return len(sets) > 1


_STATE = {
    "beat_us": 0, "beat_of": 0, "channel_us": 1, "wakes_us": 1, "wakes_by": 1, "fetched_us": 1,
}  # fmt: skip
"""Of `MixedState`: which axis counts lives."""


@dataclass(eq=False)
class MixedState:
    """Where brokers and members stand.

    Attributes:
        script: what happens.
        ticks: its times.
        subscriptions: who has which.
        heard: (broker lives, S) the set that the last heartbeat named, or `NOTHING_HEARD`.
        told_us: (brokers, S) when a broker last told the group of a change.
        beat_us: (lives, S) when the heartbeat of a pass is due; `NEVER`: none is.
        beat_of: (lives, S) the number of that pass.
        channel_us: (broker lives, lives, S) when a broker that a pass asked hears of the client.
        wakes_us: (K, lives, S) notices under way, and those that no pass has used up.
        wakes_by: (K, lives, S) the number of the broker that sent each.
        fetched_us: (topics, lives, S) since when the route that a pass fetched is known.
        followed_us: until when everything was followed.
    """

    script: Script
    ticks: Ticks
    subscriptions: Subscriptions = field(init=False)
    heard: Ints = field(init=False)
    told_us: Times = field(init=False)
    beat_us: Times = field(init=False)
    beat_of: Ints = field(init=False)
    channel_us: Times = field(init=False)
    wakes_us: Times = field(init=False)
    wakes_by: NDArray[np.int16] = field(init=False)
    fetched_us: Times = field(init=False)
    followed_us: int = BEFORE_ALL

    def __post_init__(self) -> None:
        script, seeds = self.script, len(self.ticks.seeds)
        shape = len(script.lives), seeds
        self.subscriptions = Subscriptions(script, self.ticks)
        self.heard = np.full((len(script.broker_lives), seeds), NOTHING_HEARD, np.int64)
        self.told_us = np.full((len(script.brokers), seeds), BEFORE_ALL, np.int64)
        self.beat_us = np.full(shape, NEVER, np.int64)
        self.beat_of = np.zeros(shape, np.int64)
        self.channel_us = np.full((len(script.broker_lives), *shape), NEVER, np.int64)
        self.wakes_us = np.full((2, *shape), BEFORE_ALL, np.int64)
        self.wakes_by = np.zeros((2, *shape), np.int16)
        self.fetched_us = np.full((len(script.topics), *shape), BEFORE_ALL, np.int64)

    @classmethod
    def of(cls, script: Script, ticks: Ticks) -> MixedState | None:
        """None for a group whose members all subscribe the same."""
        return cls(script, ticks) if is_mixed(script) else None

    def state(self) -> dict[str, Any]:
        """Copy what is handed from one segment to the next."""
        names = (*_STATE, "heard", "told_us")
        return state_of(self, names) | {"followed_us": self.followed_us}

    def resume(self, state: dict[str, Any], lives: int) -> None:
        """Take over what brokers of another script heard, and what was under way to its lives."""
        take_over(self, state, _STATE, lives)
        self.heard, self.told_us = state["heard"].copy(), state["told_us"].copy()
        self.followed_us = state["followed_us"]

    def may_read(self, life: int, broker: int) -> bool:
        """Some topic that the life ever subscribes is, at some time, on the broker."""
        ever = self.subscriptions.has[self.subscriptions.codes[:, life]].any(axis=0)
        return any(
            broker in version.hearing
            for topic in np.flatnonzero(ever).tolist()
            for version in self.script.routes[topic]
        )


# Notices under way to members, and those that no pass has used up.


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

    def put(self, broker: int, seeds: Ints, at_us: Times, used: Times, as_one: Times) -> None:
        """A broker sends notices in some futures.

        Args:
            broker: its number.
            seeds: (n,) places of the futures.
            at_us: (lives, n) when each member is woken; `NEVER`: it is not told.
            used: (lives, n) notices until then are used up.
            as_one: (lives, n) one pass uses up all notices until then that are not used up.
        """
        left = at_us < NEVER
        while True:
            us = self._us[:, :, seeds]
            free = us <= used
            life, place = np.nonzero(left & free.any(axis=0))
            slot = free.argmax(axis=0)[life, place]
            self._us[slot, life, seeds[place]] = at_us[life, place]
            self._by[slot, life, seeds[place]] = broker
            left[life, place] = False
            if not left.any():
                return
            if not self._merge(seeds, used, as_one, left):
                self._us = np.concatenate([self._us, np.full_like(self._us, BEFORE_ALL)])
                self._by = np.concatenate([self._by, np.zeros_like(self._by)])

    def _merge(self, seeds: Ints, used: Times, as_one: Times, where: NDArray[np.bool_]) -> bool:
        """Keep the first of notices that are used up together; True if that freed all it had to."""
        us = self._us[:, :, seeds]
        together = (us > used) & (us <= as_one) & where
        first = np.where(together, us, NEVER).argmin(axis=0)
        several = together.sum(axis=0) > 1
        others = together & (np.arange(len(us))[:, None, None] != first)
        self._us[:, :, seeds] = np.where(others, BEFORE_ALL, us)
        return bool((several | ~where).all())

    def cancel(self, broker: int, seeds: Ints, from_us: Times) -> None:
        """Notices of a broker that would come from a time on do not come."""
        us, by = self._us[:, :, seeds], self._by[:, :, seeds]
        gone = (by == broker) & (us >= from_us)
        if gone.any():
            self._us[:, :, seeds] = np.where(gone, BEFORE_ALL, us)

    def keep(self) -> None:
        """Hand over to the next segment."""
        mixed, more = self._mixed, len(self._us) - len(self._mixed.wakes_us)
        if more:
            shape = more, *mixed.wakes_us.shape[1:]
            mixed.wakes_us = np.concatenate([mixed.wakes_us, np.full(shape, BEFORE_ALL, np.int64)])
            mixed.wakes_by = np.concatenate([mixed.wakes_by, np.zeros(shape, np.int16)])
        mixed.wakes_us[:, self._lives] = self._us
        mixed.wakes_by[:, self._lives] = self._by


# What brokers see next in every future: joins, endings and heartbeats, as the loop orders them.

_KINDS = 8


class EventKind(IntEnum):
    """Events that a broker sees; those of one instant in this order."""

    SUBSCRIBES = 0
    """A heartbeat of a member that has new topics."""
    JOINS = 1
    GOES = 2
    ASKS = 3
    """The heartbeat to a broker that a pass asked for the members (5.2)."""
    TICKS = 4
    """A heartbeat of the timer."""
    CHANGES = 5
    """A heartbeat after a pass."""


@dataclass(frozen=True, eq=False)
class Seen:
    """One event in each of some futures, as equally long columns.

    Attributes:
        seed: places of the futures.
        at_us: when.
        kind: a `EventKind`.
        life: place of the life among those of the segment.
        number: of the state, the tick or the pass that a heartbeat is of.
    """

    seed: Ints
    at_us: Times
    kind: Ints
    life: Ints
    number: Ints

    def rows(self, rows: Ints) -> Seen:
        """Some of the events."""
        return Seen(self.seed[rows], self.at_us[rows], self.kind[rows], self.life[rows],
                    self.number[rows])  # fmt: skip


class Calendar:
    """The events of a segment.

    Args:
        futures: of the script.
        segment: which part of it.
        lives: numbers of the lives.
        lists: the member lists.
        mixed: what is under way.

    Attributes:
        beat_us: (lives, S) when the heartbeat of a pass is due.
        beat_of: (lives, S) the number of that pass.
        channel_us: (lists, lives, S) when a broker that a pass asked has its heartbeat.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lives: Ints, lists: list[MemberList],
        mixed: MixedState,
    ) -> None:  # fmt: skip
        self._segment, self._lives, self._mixed = segment, lives, mixed
        self._numbers = np.array([place.number for place in lists], np.int64)
        self._seeds = np.arange(len(futures.seeds))
        self.beat_us, self.beat_of = mixed.beat_us[lives], mixed.beat_of[lives]
        self.channel_us = mixed.channel_us[np.ix_(self._numbers, lives)]
        self._period = futures.ticks.periods.beat[lives]
        self._first_tick = futures.ticks.beats_start[lives] + FIRST_HEARTBEAT_US
        self._states = len(mixed.subscriptions.since)
        # rows are sorted by the time, and then by kind, life and state, all in one number
        self._keys = self._known(lists, futures.ticks.ended[lives])
        self._at = np.zeros(len(futures.seeds), np.int64)
        self._until_us = NEVER if segment.before_gap else segment.end_us

    def next_us(self) -> Times:
        """(S,) when the next event is; `NEVER`: none is left in the segment."""
        beats = self.beat_us.min(axis=0, initial=NEVER)
        asks = self.channel_us.min(axis=(0, 1), initial=NEVER)
        self._next: tuple[Times, Times, Times] = self._next_known_us(), beats, asks
        found = np.minimum(np.minimum(*self._next[:2]), self._next[2])
        return np.where(found < self._until_us, found, NEVER)

    def take(self, seeds: Ints) -> Seen:
        """Take the events that `next_us` found last, of some futures that have one; `ASKS` stays
        until a client has its answer.
        """
        known, beats, asks = (each[seeds] for each in self._next)
        is_beat = (beats < known) & (beats < asks)
        is_ask = (asks < known) & ~is_beat
        key = np.where(is_beat | is_ask, 0, self._keys[seeds, self._at[seeds]])
        self._at[seeds[~(is_beat | is_ask)]] += 1
        key, number = key // self._states, key % self._states
        key, life = key // len(self._lives), key % len(self._lives)
        kind = key % _KINDS
        first = self._first_tick[life, seeds]
        number = np.where(kind == EventKind.TICKS, (known - first) // self._period[life, 0], number)
        rows = np.flatnonzero(is_beat)
        if len(rows):
            life[rows] = self.beat_us[:, seeds[rows]].argmin(axis=0)
            number[rows] = self.beat_of[life[rows], seeds[rows]]
            self.beat_us[life[rows], seeds[rows]] = NEVER
            kind[rows] = EventKind.CHANGES
        rows = np.flatnonzero(is_ask)
        if len(rows):
            life[rows] = self.channel_us[:, :, seeds[rows]].min(axis=0).argmin(axis=0)
            kind[rows] = EventKind.ASKS
        at = np.where(is_beat, beats, np.where(is_ask, asks, known))
        return Seen(seeds, at, kind, life, number)

    def keep(self) -> None:
        """Hand over to the next segment what is under way."""
        self._mixed.beat_us[self._lives] = self.beat_us
        self._mixed.beat_of[self._lives] = self.beat_of
        self._mixed.channel_us[np.ix_(self._numbers, self._lives)] = self.channel_us
        if self._segment.before_gap:
            self._mixed.followed_us = self._segment.end_us

    def _next_known_us(self) -> Times:
        keys = self._keys[self._seeds, self._at]
        at = keys // (_KINDS * len(self._lives) * self._states) + self._segment.since_us
        return np.where(keys < NEVER, at, NEVER)

    def _known(self, lists: list[MemberList], ended: Times) -> Ints:
        """(S, K + 1) keys of what no pass can change, sorted; the last is `NEVER`."""
        segment, subscriptions = self._segment, self._mixed.subscriptions
        goes_us = joins_us = segment.begin_us
        if segment.after_gap:
            # a pull consumer registers by its timer, which may tick some time before its join
            goes_us, joins_us = segment.since_us, self._mixed.followed_us
        observed = np.array([each.observed for each in self._mixed.script.lives])[self._lives]
        rows: list[Ints] = []
        for place in lists:
            joins = np.where(place.joins & ~observed[:, None], place.since, NEVER)
            ends_seen = place.notified[:, None] & (place.until < place.down)
            goes = np.where(ends_seen, place.until, NEVER)
            rows += [self._row(EventKind.JOINS, 0, joins, joins_us)]
            rows += [self._row(EventKind.GOES, 0, goes, goes_us)]
        for state in range(1, self._states):
            grows = np.array([subscriptions.grows(life, state) for life in self._lives.tolist()])[
                :, None
            ]
            since = np.where(grows, subscriptions.since[state][self._lives], NEVER)
            rows += [self._row(EventKind.SUBSCRIBES, state, since, segment.begin_us)]
        number = np.maximum(-((self._first_tick - segment.begin_us) // self._period), 0)
        tick = self._first_tick + number * self._period
        while (tick < segment.end_us).any():
            at = np.where(tick < ended, tick, NEVER)
            rows += [self._row(EventKind.TICKS, 0, at, segment.begin_us)]
            tick = tick + self._period
        never = np.full((1, len(self._seeds)), NEVER, np.int64)
        return np.sort(np.concatenate([*rows, never]), axis=0).T.copy()

    def _row(self, kind: EventKind, state: int, at_us: Times, from_us: int) -> Ints:
        """(lives, S) keys of one kind of event; `NEVER` where it is not in the segment."""
        life = np.arange(len(self._lives))[:, None]
        key = ((at_us - self._segment.since_us) * _KINDS + kind) * len(self._lives) + life
        known = (at_us >= from_us) & (at_us < self._segment.end_us)
        return np.where(known, key * self._states + state, NEVER)
