"""The brokers' member lists over a segment: when each list contains each lifetime.

A *fresh* broker lifetime begins with an empty list, which clients fill as they learn of the broker:
at a heartbeat tick, or earlier in a pass. All other registrations are known in advance.
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
"""The number of (pass, lifetime) pairs that are processed together; they fit into the cache."""


@dataclass(eq=False)
class MemberList:
    """The list of a broker lifetime; elements are (lifetime, future) pairs of the segment.

    Attributes:
        number: the number of the broker lifetime in the timeline.
        broker: the broker's number.
        up: (S,) when the broker comes up.
        down: (S,) when it goes down.
        since: (lifetimes, S) when it lists each lifetime; changes when a pass registers a client.
        until: (lifetimes, S) when it removes each listed lifetime.
        fed: (lifetimes, S) whether the registration was made by a pass or in an earlier segment.
        joins: (lifetimes, S) whether the registration is part of a join.
        joining: (lifetimes, S) the time until which a joining lifetime has yet to register.
        notified: (lifetimes,) whether the others are notified when a lifetime leaves.
        known_us: (lifetimes, S) when each lifetime learns of a fresh list; None for other lists.
        moving: lifetimes that join or leave in the segment in any future.
        settled: the sum of the hashes of all other listed lifetimes.
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
    known_us: Times | None
    moving: NDArray[np.int64]
    settled: np.uint64

    @property
    def is_fresh(self) -> bool:
        """Whether passes may register lifetimes."""
        return self.known_us is not None


class MemberLists:
    """All lists in a segment.

    Args:
        futures: the futures of the timeline.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes.
        routes: what the lifetimes know.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lifetimes: NDArray[np.int64],
        routes: KnownRoutes,
    ) -> None:
        self._futures, self._segment, self._lifetimes = futures, segment, lifetimes
        self._routes = routes
        self._heard_us = segment.end_us + longest_pass_us(futures.timeline, futures.options)
        self.hashes = np.array([futures.traits[lifetime].hash for lifetime in lifetimes], np.uint64)
        client_ids = [futures.timeline.lifetimes[lifetime].client_id for lifetime in lifetimes]
        keys = [java_string_key(client_id) for client_id in client_ids]
        self._order = np.array(sorted(range(len(lifetimes)), key=keys.__getitem__), np.int64)
        self._in_order = lifetimes[self._order]
        self._size = len(lifetimes) * len(futures.seeds)
        self.lists = [self._list(number) for number in self._numbers()]

    def hashes_at(
        self, places: NDArray[np.int64], seeds: NDArray[np.int64], at_us: Times
    ) -> NDArray[np.uint64]:
        """Return the sum of the hashes of each list's members at a time; 0 for the list -1.

        Args:
            places: (n,) indices of the lists.
            seeds: (n,) indices of the futures.
            at_us: (n,) times.
        """
        sums = np.zeros(len(places), np.uint64)
        if any(place.is_fresh for place in self.lists):
            for number, place in enumerate(self.lists):
                rows = np.flatnonzero(places == number)
                sums[rows] = self._hash_at(place, seeds[rows], at_us[rows])
        elif self.lists:
            rows = np.maximum(places, 0) * len(self._futures.seeds) + seeds
            sums = self._sums.take(self._changes.places_after(rows, at_us))
            sums[places < 0] = 0
        return sums

    @cached_property
    def timeline(self) -> tuple[Times, NDArray[np.uint64]]:
        """The times at which the lists that no pass affects change, and their hash sums in between.

        (lists, S, K) in ascending order, then `NEVER`; and (lists, S, K + 1).
        """
        shape = len(self.lists), len(self._futures.seeds)
        most = 2 * max((len(place.moving) for place in self.lists), default=0)
        change_us = np.full((*shape, most), timer_periods.NEVER, np.int64)
        sums = np.zeros((*shape, most + 1), np.uint64)
        for number, place in enumerate(self.lists):
            since, until = place.since[place.moving].T, place.until[place.moving].T
            both = np.where(since < until, [since, until], timer_periods.NEVER)
            change_us[number, :, : 2 * len(place.moving)] = np.concatenate([*both], axis=1)
            hashes = self.hashes[place.moving]
            sums[number, :, 1 : 1 + 2 * len(hashes)] = np.concatenate([hashes, -hashes])
            sums[number, :, 0] = place.settled
        order = np.argsort(change_us, axis=2, kind="stable")
        sums[:, :, 1:] = np.take_along_axis(sums[:, :, 1:], order, axis=2)
        return np.take_along_axis(change_us, order, axis=2), np.cumsum(
            sums, axis=2, dtype=np.uint64
        )

    @cached_property
    def _changes(self) -> SortedRows:
        times = self.timeline[0]
        return SortedRows(times.reshape(times.shape[0] * times.shape[1], times.shape[2]))

    @cached_property
    def _sums(self) -> NDArray[np.uint64]:
        """The hash sums of `timeline`, flattened in the layout of `_changes`."""
        return self.timeline[1][:, :, : self._changes.width + 1].reshape(-1)

    def _hash_at(
        self, place: MemberList, seeds: NDArray[np.int64], at_us: Times
    ) -> NDArray[np.uint64]:
        """Return `hashes_at` for a list that passes may change."""
        total = np.full(len(at_us), place.settled, np.uint64)
        step = max(1, CELLS_AT_ONCE // max(1, len(at_us)))
        for first in range(0, len(place.moving), step):
            lifetimes = place.moving[first : first + step]
            listed = place.since[lifetimes].take(seeds, axis=1) <= at_us
            listed &= at_us < place.until[lifetimes].take(seeds, axis=1)
            total += self.hashes[lifetimes] @ listed
        return total

    def listed(self, number: int, seed: int, at_us: int) -> NDArray[np.int64]:
        """Return `members_at` for the list with this number; empty for -1."""
        if number < 0:
            return np.empty(0, np.int64)
        return self.members_at(self.lists[number], seed, at_us)

    def members_at(self, place: MemberList, seed: int, at_us: int) -> NDArray[np.int64]:
        """Return the members of a list at a time in a future, in the order of clients."""
        listed = (place.since[:, seed] <= at_us) & (at_us < place.until[:, seed])
        members: NDArray[np.int64] = self._in_order[listed[self._order]]
        return members

    def keep(self) -> None:
        """Pass the registrations to the next segment."""
        for place in self.lists:
            # the next segment looks up future heartbeat ticks again, since another may come first
            kept = (place.since < self._segment.end_us) | place.fed
            since = np.where(kept, place.since, timer_periods.NEVER)
            self._futures.registered[place.number][self._lifetimes] = since

    def _numbers(self) -> list[int]:
        """Return the broker lifetimes that overlap the segment."""
        return [
            number
            for number, (up, down) in enumerate(self._futures.broker_lifetimes)
            if up.min() < self._heard_us and down.max() > self._segment.begin_us
        ]

    def _list(self, number: int) -> MemberList:
        futures, lifetimes = self._futures, self._lifetimes
        broker = futures.timeline.broker_lifetimes[number].broker
        up, down = futures.broker_lifetimes[number]
        ended = futures.ticks.ended[lifetimes]
        joins, joining, since = self._joined(number, ended)
        fed = (
            since < timer_periods.NEVER
        )  # includes passes of an earlier segment that end after this one
        since, known_us = self._again(broker, since, np.maximum(up, joining), down, ended)
        until = np.minimum(futures.ticks.unregistered[lifetimes, broker], down)
        begin, end = self._segment.since_us, self._segment.end_us
        if known_us is not None and not (
            self._routes.blind.any() or (known_us < self._heard_us).any()
        ):
            known_us = None
        moves = ((since >= begin) & (since < end)) | ((until >= begin) & (until < end))
        moving = moves.any(axis=1) | (known_us is not None)
        # a lifetime whose past differs between futures also counts as moving
        listed = (since < begin) & (until >= end)
        moving |= listed.any(axis=1) != listed.all(axis=1)
        settled = self.hashes[listed.all(axis=1) & ~moving].sum(dtype=np.uint64)
        endings = [futures.timeline.lifetimes[lifetime].ending for lifetime in lifetimes]
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
            known_us=known_us,
            moving=np.flatnonzero(moving),
            settled=settled,
        )

    def _joined(self, number: int, ended: Times) -> tuple[NDArray[np.bool_], Times, Times]:
        """Return the registrations made at joins and those of earlier segments."""
        futures, lifetimes = self._futures, self._lifetimes
        lifetime = futures.timeline.broker_lifetimes[number]
        up, down = futures.broker_lifetimes[number]
        registered = futures.ticks.registered[lifetimes, lifetime.broker].copy()
        observed = np.array([futures.timeline.lifetimes[each].observed for each in lifetimes])
        registered[observed] = timer_periods.NEVER
        if self._segment.is_first:
            created = futures.ticks.created[lifetimes].ravel()
            reads = self._routes.reads(lifetime.broker, np.arange(self._size), created)
            listed = reads.reshape(registered.shape) & (up <= self._segment.begin_us)
            listed &= ended > self._segment.begin_us
            registered[observed] = np.where(
                listed[observed], np.maximum(up, timer_periods.BEFORE_ALL), timer_periods.NEVER
            )
        joins = (up <= registered) & (registered < down) & (registered < ended)
        earlier = futures.registered.setdefault(
            number,
            np.full((len(futures.timeline.lifetimes), len(futures.seeds)), timer_periods.NEVER),
        )[lifetimes]
        joining = np.where(registered < timer_periods.NEVER, registered, timer_periods.BEFORE_ALL)
        return joins, joining, np.where(joins, registered, earlier)

    def _again(
        self, broker: int, since: Times, open_us: Times, down: Times, ended: Times
    ) -> tuple[Times, Times | None]:
        """Return the registrations made by heartbeat ticks, and when unregistered lifetimes learn
        of the broker.
        """
        missing = since >= timer_periods.NEVER
        if not (missing.any() and self._routes.may_read(broker)):
            return since, None
        started = self._futures.ticks.beats_start[self._lifetimes]
        # the last heartbeat before the segment counts
        rested = self._segment.after_gap and not self._segment.is_first
        period = self._futures.ticks.periods.beat[self._lifetimes]
        begin = self._segment.begin_us - (period if rested else 0)
        floor = np.maximum(open_us, begin)
        known_us = self._routes.read_from(broker, floor.ravel()).reshape(floor.shape)
        known_us = np.where(
            missing & (known_us < down) & (known_us < ended), known_us, timer_periods.NEVER
        )
        first = started + timer_periods.FIRST_HEARTBEAT_US
        beat_us = first + np.maximum(-((first - known_us) // period), 0) * period
        since = since.copy()
        missing = known_us < timer_periods.NEVER
        everyone = np.arange(self._size)
        while missing.any():
            reads = self._routes.reads(broker, everyone, beat_us.ravel()).reshape(beat_us.shape)
            missing &= (
                (beat_us < down) & (beat_us < ended) & (beat_us < self._segment.end_us + period)
            )
            since = np.where(missing & reads, beat_us, since)
            missing &= ~reads
            beat_us = beat_us + period
        later = since >= self._segment.begin_us
        return since, np.where(
            (known_us < timer_periods.NEVER) & later, known_us, timer_periods.NEVER
        )
