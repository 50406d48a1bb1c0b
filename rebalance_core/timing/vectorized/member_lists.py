"""Member lists of the brokers over a segment: since when and until when each has each life.

A *fresh* broker life begins with an empty list, which clients fill as they come to know it: by
their heartbeat ticks, or earlier by a pass. All other registrations are known beforehand.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.queue import java_string_key
from rebalance_core.timing import timer_periods
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.futures import Futures, longest_pass_us
from rebalance_core.timing.vectorized.known_routes import KnownRoutes
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.sorted_rows import SortedRows

CELLS_AT_ONCE = 1 << 16
"""Pairs of a pass and a life that are looked at together: they fit into the cache."""


@dataclass(eq=False)
class MemberList:
    """The list of one broker life; elements are (life, future) pairs of the segment.

    Attributes:
        number: of the broker life in the script.
        broker: its number.
        up: (S,) since when the broker is there.
        down: (S,) until when.
        since: (lives, S) when it has each life; changes where a pass registers one.
        until: (lives, S) when it loses each life, if it has it.
        fed: (lives, S) the registration is that of a pass, or known from an earlier segment.
        joins: (lives, S) the registration is part of a join.
        joining: (lives, S) until when a life is about to register as it joins.
        notified: (lives,) the others are told when a life goes.
        known: (lives, S) of a fresh one: since when each life knows it; else None.
        moving: lives that come or go in the segment in some future.
        settled: sum of the hashes of all others in it.
    """

    number: int
    broker: int
    up: Times
    down: Times
    since: Times
    until: Times
    fed: NDArray[np.bool_]
    joins: NDArray[np.bool_]
    joining: Times
    notified: NDArray[np.bool_]
    known: Times | None
    moving: NDArray[np.int64]
    settled: np.uint64

    @property
    def is_fresh(self) -> bool:
        """Passes may register lives."""
        return self.known is not None


class MemberLists:
    """All lists of a segment.

    Args:
        futures: of the script.
        segment: which part of it.
        lives: numbers of the lives.
        routes: what the lives know.
    """

    def __init__(
        self, futures: Futures, segment: PlaySegment, lives: NDArray[np.int64], routes: KnownRoutes
    ) -> None:
        self._futures, self._segment, self._lives = futures, segment, lives
        self._routes = routes
        self._heard_us = segment.end_us + longest_pass_us(futures.script)
        self.hashes = np.array([futures.traits[life].hash for life in lives], np.uint64)
        client_ids = [futures.script.lives[life].client_id for life in lives]
        keys = [java_string_key(client_id) for client_id in client_ids]
        self._order = np.array(sorted(range(len(lives)), key=keys.__getitem__), np.int64)
        self._in_order = lives[self._order]
        self._size = len(lives) * len(futures.seeds)
        self.lists = [self._list(number) for number in self._numbers()]

    def hashes_at(
        self, places: NDArray[np.int64], seeds: NDArray[np.int64], at_us: Times
    ) -> NDArray[np.uint64]:
        """The sums of the hashes of who is in lists at times; 0 for the list -1.

        Args:
            places: (n,) of the lists.
            seeds: (n,) places of futures.
            at_us: (n,) times.
        """
        found = np.zeros(len(places), np.uint64)
        if any(place.is_fresh for place in self.lists):
            for number, place in enumerate(self.lists):
                rows = np.flatnonzero(places == number)
                found[rows] = self._hash_at(place, seeds[rows], at_us[rows])
        elif self.lists:
            rows = np.maximum(places, 0) * len(self._futures.seeds) + seeds
            found = self._sums.take(self._changes.places_after(rows, at_us))
            found[places < 0] = 0
        return found

    @cached_property
    def timeline(self) -> tuple[Times, NDArray[np.uint64]]:
        """Return when lists that no pass changes do, and the sums of the hashes before each and
        after all.

        (lists, S, K) in order, then `NEVER`; and (lists, S, K + 1).
        """
        shape = len(self.lists), len(self._futures.seeds)
        most = 2 * max((len(place.moving) for place in self.lists), default=0)
        at = np.full((*shape, most), timer_periods.NEVER, np.int64)
        sums = np.zeros((*shape, most + 1), np.uint64)
        for number, place in enumerate(self.lists):
            since, until = place.since[place.moving].T, place.until[place.moving].T
            both = np.where(since < until, [since, until], timer_periods.NEVER)
            at[number, :, : 2 * len(place.moving)] = np.concatenate([*both], axis=1)
            hashes = self.hashes[place.moving]
            sums[number, :, 1 : 1 + 2 * len(hashes)] = np.concatenate([hashes, -hashes])
            sums[number, :, 0] = place.settled
        order = np.argsort(at, axis=2, kind="stable")
        sums[:, :, 1:] = np.take_along_axis(sums[:, :, 1:], order, axis=2)
        return np.take_along_axis(at, order, axis=2), np.cumsum(sums, axis=2, dtype=np.uint64)

    @cached_property
    def _changes(self) -> SortedRows:
        times = self.timeline[0]
        return SortedRows(times.reshape(times.shape[0] * times.shape[1], times.shape[2]))

    @cached_property
    def _sums(self) -> NDArray[np.uint64]:
        """The hashes of `timeline`, laid out as `_changes`."""
        return self.timeline[1][:, :, : self._changes.width + 1].reshape(-1)

    def _hash_at(
        self, place: MemberList, seeds: NDArray[np.int64], at_us: Times
    ) -> NDArray[np.uint64]:
        """`hashes_at` of a list that passes may change."""
        total = np.full(len(at_us), place.settled, np.uint64)
        step = max(1, CELLS_AT_ONCE // max(1, len(at_us)))
        for first in range(0, len(place.moving), step):
            lives = place.moving[first : first + step]
            listed = place.since[lives].take(seeds, axis=1) <= at_us
            listed &= at_us < place.until[lives].take(seeds, axis=1)
            total += self.hashes[lives] @ listed
        return total

    def listed(self, number: int, seed: int, at_us: int) -> NDArray[np.int64]:
        """`members_at` of a list by its number; nobody for -1."""
        if number < 0:
            return np.empty(0, np.int64)
        return self.members_at(self.lists[number], seed, at_us)

    def members_at(self, place: MemberList, seed: int, at_us: int) -> NDArray[np.int64]:
        """The lives in a list at a time in one future, as clients sort them."""
        listed = (place.since[:, seed] <= at_us) & (at_us < place.until[:, seed])
        found: NDArray[np.int64] = self._in_order[listed[self._order]]
        return found

    def keep(self) -> None:
        """Hand over to the next segment who is registered where."""
        for place in self.lists:
            # a heartbeat tick to come is looked for again: it may not be the first
            kept = (place.since < self._segment.end_us) | place.fed
            since = np.where(kept, place.since, timer_periods.NEVER)
            self._futures.registered[place.number][self._lives] = since

    def _numbers(self) -> list[int]:
        """Broker lives that overlap the segment."""
        return [
            number
            for number, (up, down) in enumerate(self._futures.broker_lives)
            if up.min() < self._heard_us and down.max() > self._segment.begin_us
        ]

    def _list(self, number: int) -> MemberList:
        futures, lives = self._futures, self._lives
        broker = futures.script.broker_lives[number].broker
        up, down = futures.broker_lives[number]
        ended = futures.ticks.ended[lives]
        joins, joining, since = self._joined(number, ended)
        fed = (
            since < timer_periods.NEVER
        )  # also one of an earlier segment's pass that ends after this one
        since, known = self._again(broker, since, np.maximum(up, joining), down, ended)
        until = np.minimum(futures.ticks.unregistered[lives, broker], down)
        begin, end = self._segment.since_us, self._segment.end_us
        if known is not None and not (self._routes.blind.any() or (known < self._heard_us).any()):
            known = None
        moves = ((since >= begin) & (since < end)) | ((until >= begin) & (until < end))
        moving = moves.any(axis=1) | (known is not None)
        # a life whose past differs between futures counts as moving, too
        listed = (since < begin) & (until >= end)
        moving |= listed.any(axis=1) != listed.all(axis=1)
        settled = self.hashes[listed.all(axis=1) & ~moving].sum(dtype=np.uint64)
        endings = [futures.script.lives[life].ending for life in lives]
        return MemberList(
            number=number,
            broker=broker,
            up=up,
            down=down,
            since=since,
            until=until,
            fed=fed,
            joins=joins,
            joining=joining,
            notified=np.array([ending is not None and ending.notified for ending in endings]),
            known=known,
            moving=np.flatnonzero(moving),
            settled=settled,
        )

    def _joined(self, number: int, ended: Times) -> tuple[NDArray[np.bool_], Times, Times]:
        """Registrations at joins; and those of earlier segments."""
        futures, lives = self._futures, self._lives
        life = futures.script.broker_lives[number]
        up, down = futures.broker_lives[number]
        at = futures.ticks.registered[lives, life.broker].copy()
        observed = np.array([futures.script.lives[each].observed for each in lives])
        at[observed] = timer_periods.NEVER
        if self._segment.is_first:
            created = futures.ticks.created[lives].ravel()
            reads = self._routes.reads(life.broker, np.arange(self._size), created)
            listed = reads.reshape(at.shape) & (up <= self._segment.begin_us)
            listed &= ended > self._segment.begin_us
            at[observed] = np.where(
                listed[observed], np.maximum(up, timer_periods.BEFORE_ALL), timer_periods.NEVER
            )
        joins = (up <= at) & (at < down) & (at < ended)
        earlier = futures.registered.setdefault(
            number, np.full((len(futures.script.lives), len(futures.seeds)), timer_periods.NEVER)
        )[lives]
        joining = np.where(at < timer_periods.NEVER, at, timer_periods.BEFORE_ALL)
        return joins, joining, np.where(joins, at, earlier)

    def _again(
        self, broker: int, since: Times, open_us: Times, down: Times, ended: Times
    ) -> tuple[Times, Times | None]:
        """Registrations by heartbeat tick, and since when a life without one knows the broker."""
        missing = since >= timer_periods.NEVER
        if not (missing.any() and self._routes.may_read(broker)):
            return since, None
        started = self._futures.ticks.beats_start[self._lives]
        # what the last heartbeat before the segment did counts
        rested = self._segment.after_gap and not self._segment.is_first
        period = self._futures.ticks.periods.beat[self._lives]
        begin = self._segment.begin_us - (period if rested else 0)
        floor = np.maximum(open_us, begin)
        known = self._routes.read_from(broker, floor.ravel()).reshape(floor.shape)
        known = np.where(missing & (known < down) & (known < ended), known, timer_periods.NEVER)
        first = started + timer_periods.FIRST_HEARTBEAT_US
        at = first + np.maximum(-((first - known) // period), 0) * period
        since = since.copy()
        missing = known < timer_periods.NEVER
        everyone = np.arange(self._size)
        while missing.any():
            reads = self._routes.reads(broker, everyone, at.ravel()).reshape(at.shape)
            missing &= (at < down) & (at < ended) & (at < self._segment.end_us + period)
            since = np.where(missing & reads, at, since)
            missing &= ~reads
            at = at + period
        later = since >= self._segment.begin_us
        return since, np.where((known < timer_periods.NEVER) & later, known, timer_periods.NEVER)
