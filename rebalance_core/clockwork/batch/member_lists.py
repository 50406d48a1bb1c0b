"""Member lists of the brokers over a segment: since when and until when each has each life.

A *fresh* broker life begins with an empty list, which clients fill as they come to know it: by
their heartbeat ticks, or earlier by a pass. All other registrations are known beforehand.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.futures import Futures, Segment
from rebalance_core.clockwork.batch.known_routes import KnownRoutes
from rebalance_core.clockwork.ticks import (
    BEFORE_ALL,
    FIRST_HEARTBEAT_US,
    HEARTBEAT_US,
    NEVER,
    Times,
)
from rebalance_core.model.ordering import java_string_key


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
        told: (lives,) the others are told when a life goes.
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
    told: NDArray[np.bool_]
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
        self, futures: Futures, segment: Segment, lives: NDArray[np.int64], routes: KnownRoutes
    ) -> None:
        self._futures, self._segment, self._lives = futures, segment, lives
        self._routes = routes
        self._heard_us = segment.end_us + futures.longest_pass_us
        self.hashes = np.array([futures.traits[life].hash for life in lives], np.uint64)
        client_ids = [futures.script.lives[life].client_id for life in lives]
        keys = [java_string_key(client_id) for client_id in client_ids]
        self._order = np.array(sorted(range(len(lives)), key=keys.__getitem__), np.int64)
        self._client_ids = np.array(client_ids, object)[self._order]
        self._size = len(lives) * len(futures.seeds)
        self.lists = [self._list(number) for number in self._numbers()]

    def hash_at(
        self, place: MemberList, lives_seeds: NDArray[np.int64], at_us: Times
    ) -> NDArray[np.uint64]:
        """The sum of the hashes of who is in a list at a time.

        Args:
            place: the list.
            lives_seeds: (n,) places of futures.
            at_us: (n,) times.
        """
        total = np.full(len(at_us), place.settled, np.uint64)
        for life in place.moving:
            there = (place.since[life][lives_seeds] <= at_us) & (
                at_us < place.until[life][lives_seeds]
            )
            total += np.where(there, self.hashes[life], np.uint64(0))
        return total

    def members_at(self, place: MemberList, seed: int, at_us: int) -> tuple[str, ...]:
        """The client ids in a list at a time in one future, sorted as clients sort."""
        there = (place.since[:, seed] <= at_us) & (at_us < place.until[:, seed])
        return tuple(self._client_ids[there[self._order]].tolist())

    def keep(self) -> None:
        """Hand over to the next segment who is registered where."""
        for place in self.lists:
            # a heartbeat tick to come is looked for again: it may not be the first
            kept = (place.since < self._segment.end_us) | place.fed
            since = np.where(kept, place.since, NEVER)
            self._futures.registered[place.number][self._lives] = since

    def _numbers(self) -> list[int]:
        """Broker lives that overlap the segment."""
        found = []
        for number, (up, down) in enumerate(self._futures.broker_lives):
            if up.min() < self._heard_us and down.max() > self._segment.begin_us:
                found.append(number)
        return found

    def _list(self, number: int) -> MemberList:
        futures, lives = self._futures, self._lives
        broker = futures.script.broker_lives[number].broker
        up, down = futures.broker_lives[number]
        ended = futures.ticks.ended[lives]
        joins, joining, since = self._joined(number, ended)
        fed = since < NEVER  # also one of an earlier segment's pass that ends after this one
        since, known = self._again(broker, since, np.maximum(up, joining), down, ended)
        until = np.minimum(futures.ticks.unregistered[lives, broker], down)
        begin, end = self._segment.since_us, self._segment.end_us
        if known is not None and not (self._routes.blind.any() or (known < self._heard_us).any()):
            known = None
        moves = ((since >= begin) & (since < end)) | ((until >= begin) & (until < end))
        moving = moves.any(axis=1) | (known is not None)
        # a life whose past differs between futures counts as moving, too
        here = (since < begin) & (until >= end)
        moving |= here.any(axis=1) != here.all(axis=1)
        settled = self.hashes[here.all(axis=1) & ~moving].sum(dtype=np.uint64)
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
            told=np.array([ending is not None and ending.told for ending in endings]),
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
        at[observed] = NEVER
        if self._segment.is_first:
            created = futures.ticks.created[lives].ravel()
            reads = self._routes.reads(life.broker, np.arange(self._size), created)
            there = reads.reshape(at.shape) & (up <= self._segment.begin_us)
            there &= ended > self._segment.begin_us
            at[observed] = np.where(there[observed], np.maximum(up, BEFORE_ALL), NEVER)
        joins = (up <= at) & (at < down) & (at < ended)
        earlier = futures.registered.setdefault(
            number, np.full((len(futures.script.lives), len(futures.seeds)), NEVER)
        )[lives]
        joining = np.where(at < NEVER, at, BEFORE_ALL)
        return joins, joining, np.where(joins, at, earlier)

    def _again(
        self, broker: int, since: Times, open_us: Times, down: Times, ended: Times
    ) -> tuple[Times, Times | None]:
        """Registrations by heartbeat tick, and since when a life without one knows the broker."""
        missing = since >= NEVER
        if not (missing.any() and self._routes.may_read(broker)):
            return since, None
        started = self._futures.ticks.timers_start[self._lives]
        # what the last heartbeat before the segment did counts
        rested = self._segment.after_gap and not self._segment.is_first
        begin = self._segment.begin_us - (HEARTBEAT_US if rested else 0)
        floor = np.maximum(open_us, begin)
        known = self._routes.read_from(broker, floor.ravel()).reshape(floor.shape)
        known = np.where(missing & (known < down) & (known < ended), known, NEVER)
        first = started + FIRST_HEARTBEAT_US
        at = first + np.maximum(-((first - known) // HEARTBEAT_US), 0) * HEARTBEAT_US
        since = since.copy()
        missing = known < NEVER
        everyone = np.arange(self._size)
        while missing.any():
            reads = self._routes.reads(broker, everyone, at.ravel()).reshape(at.shape)
            missing &= (at < down) & (at < ended) & (at < self._segment.end_us + HEARTBEAT_US)
            since = np.where(missing & reads, at, since)
            missing &= ~reads
            at = at + HEARTBEAT_US
        later = since >= self._segment.begin_us
        return since, np.where((known < NEVER) & later, known, NEVER)
