"""Member lists of the brokers over a segment: since when and until when each has each life.

A *fresh* broker life begins with an empty list, which clients fill as they come to know it: by
their heartbeat ticks, or earlier by a pass. All other registrations are known beforehand.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork import draws, ticks
from rebalance_core.clockwork.batch.futures import Futures, PlaySegment, SortedRows
from rebalance_core.clockwork.batch.known_routes import KnownRoutes
from rebalance_core.clockwork.draws import Operation, Timer
from rebalance_core.clockwork.loop.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.clockwork.ticks import Times
from rebalance_core.model.clients import parse_version
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.queue import java_string_key

_CELLS = 1 << 16
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
        self._heard_us = segment.end_us + futures.longest_pass_us
        self.hashes = np.array([futures.traits[life].hash for life in lives], np.uint64)
        client_ids = [futures.script.lives[life].client_id for life in lives]
        keys = [java_string_key(client_id) for client_id in client_ids]
        self._order = np.array(sorted(range(len(lives)), key=keys.__getitem__), np.int64)
        self._in_order = lives[self._order]
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
        step = max(1, _CELLS // max(1, len(at_us)))
        for first in range(0, len(place.moving), step):
            lives = place.moving[first : first + step]
            at = lives[:, None], lives_seeds
            listed = (place.since[at] <= at_us) & (at_us < place.until[at])
            total += np.where(listed, self.hashes[lives][:, None], np.uint64(0)).sum(axis=0)
        return total

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
            since = np.where(kept, place.since, ticks.NEVER)
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
        fed = since < ticks.NEVER  # also one of an earlier segment's pass that ends after this one
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
        at[observed] = ticks.NEVER
        if self._segment.is_first:
            created = futures.ticks.created[lives].ravel()
            reads = self._routes.reads(life.broker, np.arange(self._size), created)
            listed = reads.reshape(at.shape) & (up <= self._segment.begin_us)
            listed &= ended > self._segment.begin_us
            at[observed] = np.where(listed[observed], np.maximum(up, ticks.BEFORE_ALL), ticks.NEVER)
        joins = (up <= at) & (at < down) & (at < ended)
        earlier = futures.registered.setdefault(
            number, np.full((len(futures.script.lives), len(futures.seeds)), ticks.NEVER)
        )[lives]
        joining = np.where(at < ticks.NEVER, at, ticks.BEFORE_ALL)
        return joins, joining, np.where(joins, at, earlier)

    def _again(
        self, broker: int, since: Times, open_us: Times, down: Times, ended: Times
    ) -> tuple[Times, Times | None]:
        """Registrations by heartbeat tick, and since when a life without one knows the broker."""
        missing = since >= ticks.NEVER
        if not (missing.any() and self._routes.may_read(broker)):
            return since, None
        started = self._futures.ticks.beats_start[self._lives]
        # what the last heartbeat before the segment did counts
        rested = self._segment.after_gap and not self._segment.is_first
        period = self._futures.ticks.periods.beat[self._lives]
        begin = self._segment.begin_us - (period if rested else 0)
        floor = np.maximum(open_us, begin)
        known = self._routes.read_from(broker, floor.ravel()).reshape(floor.shape)
        known = np.where(missing & (known < down) & (known < ended), known, ticks.NEVER)
        first = started + ticks.FIRST_HEARTBEAT_US
        at = first + np.maximum(-((first - known) // period), 0) * period
        since = since.copy()
        missing = known < ticks.NEVER
        everyone = np.arange(self._size)
        while missing.any():
            reads = self._routes.reads(broker, everyone, at.ravel()).reshape(at.shape)
            missing &= (at < down) & (at < ended) & (at < self._segment.end_us + period)
            since = np.where(missing & reads, at, since)
            missing &= ~reads
            at = at + period
        later = since >= self._segment.begin_us
        return since, np.where((known < ticks.NEVER) & later, known, ticks.NEVER)


# When clients are woken: by their own join, and by CHANGE notifications (rocketmq.md §6.2).


@dataclass(frozen=True, eq=False)
class _Notices:
    """The notices that one operation on a list sends.

    Attributes:
        life: place of who registers or goes.
        goes: it goes.
        delays: (lives, S) until each target is woken; `NEVER` where the notice gets lost.
    """

    life: int
    goes: bool
    delays: Times


class WakeUps:
    """The wake-ups of all elements of a segment.

    Args:
        futures: of the script.
        segment: which part of it.
        lives: numbers of the lives.
        lists: the member lists.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lives: NDArray[np.int64],
        lists: list[MemberList],
    ) -> None:
        self.futures, self._segment, self.lives = futures, segment, lives
        version = parse_version(futures.script.settings.broker_version)
        self._newest_wins = version >= NEWEST_NOTICE_WINS
        self._silent = version >= BROADCASTING_IS_SILENT
        self._seeds = len(futures.seeds)
        joined = np.where(self._wakes_itself()[:, None], futures.ticks.joined[lives], ticks.NEVER)
        columns = [joined]
        for place in lists:
            if not place.is_fresh:
                columns.extend(self._woken(place, list(self._notices(place))))
        columns.extend(self._woken_by_mates())
        table = np.stack(columns, axis=2).reshape(len(lives) * self._seeds, -1)
        self._known = SortedRows(table)
        self.fresh = [_FreshList(self, place) for place in lists if place.is_fresh]

    def first_after(self, elements: NDArray[np.int64], at_us: Times) -> Times:
        """The first wake-up of each element that is later than a time; `NEVER`."""
        found = self._known.first_after(elements, at_us)
        for each in self.fresh:
            found = np.minimum(found, each.first_after(elements, at_us))
        return found

    def _woken_by_mates(self) -> Iterator[Times]:
        """(lives, S) as many as some life has: when other groups of its instance wake it."""
        rows: dict[int, list[Times]] = {}
        wakes = self.futures.mate_wakes.between(self._segment.since_us, self._segment.end_us)
        for life, at_us in wakes:
            rows.setdefault(life, []).append(at_us)
        never = np.full(self._seeds, ticks.NEVER, np.int64)
        for number in range(max(map(len, rows.values()), default=0)):
            rows_at = [rows.get(life, ())[number : number + 1] for life in self.lives.tolist()]
            yield np.stack([row[0] if row else never for row in rows_at])

    def operations(self, place: MemberList) -> Times:
        """(K, S) when a list changes in the segment, told or not."""
        rows = [place.since[place.moving], place.until[place.moving]]
        return np.concatenate(rows) if len(place.moving) else np.empty((0, self._seeds), np.int64)

    def _wakes_itself(self) -> NDArray[np.bool_]:
        """(lives,) ``start()`` of a push consumer ends with a wake-up of its own."""
        push = self.futures.script.settings.consumer_type == PUSH
        lives = self.futures.script.lives
        return np.array([push and not lives[life].observed for life in self.lives.tolist()])

    def _notices(self, place: MemberList) -> Iterator[_Notices]:
        """The operations on a list that tell the others."""
        for life in place.moving.tolist():
            if self._silent and self.futures.traits[self.lives[life]].broadcasting:
                continue
            joins = place.joins[life]
            delays = None
            if joins.any():
                delays = self._delays(place, life, Operation.JOINS)
            if not joins.all():
                again = self._delays(place, life, Operation.AGAIN)
                delays = again if delays is None else np.where(joins, delays, again)
            assert delays is not None
            notified = self.futures.script.settings.notified
            if notified and (place.is_fresh or self._in_time(place.since[life]).any()):
                yield _Notices(life, False, delays)
            if place.notified[life] and self._in_time(place.until[life]).any():
                yield _Notices(life, True, self._delays(place, life, Operation.GOES))

    def _delays(self, place: MemberList, life: int, operation: Operation) -> Times:
        script = self.futures.script
        entity = script.lives[self.lives[life]].entity
        name = script.brokers[place.broker]
        tick = draws.operation_id(entity, name, place.number, operation)
        words = self.futures.words[self.lives]
        delays = draws.NOTICE.many(draws.draws_of(words, Timer.NOTICE, tick))
        delays = np.where(self.futures.deaf[self.lives][:, None], ticks.NEVER, delays)
        lost = round(self.futures.options.lost_notices * (1 << draws.DRAW_BITS))
        if lost:
            lost_here = draws.draws_of(words, Timer.NOTICE_LOST, tick) < np.uint64(lost)
            delays = np.where(lost_here, ticks.NEVER, delays)
        return delays

    def _in_time(self, at_us: Times) -> NDArray[np.bool_]:
        return (at_us >= self._segment.since_us) & (at_us < self._segment.end_us)

    def sent(self, place: MemberList, notices: _Notices) -> Times:
        """(S,) when the notices of an operation are sent; `NEVER`: not in the segment."""
        since, until = place.since[notices.life], place.until[notices.life]
        at = since
        if notices.goes:
            at = np.where((since < until) & (until < place.down), until, ticks.NEVER)
        notified = self.futures.ticks.tells(place.broker, slice(None), at)
        return np.where(self._in_time(at) & notified, at, ticks.NEVER)

    def followed(self, sent: list[Times]) -> list[Times]:
        """For each operation: (S,) from when on a newer one keeps its notices back."""
        if not self._newest_wins or len(sent) < 2:
            return [np.full(self._seeds, ticks.NEVER) for _ in sent]
        rows = SortedRows(np.stack(sent, axis=1))
        seeds = np.arange(self._seeds)
        return [rows.first_after(seeds, at) for at in sent]

    def _woken(self, place: MemberList, notices: list[_Notices]) -> Iterator[Times]:
        """(lives, S) by operation: when each life is woken by it; `NEVER`."""
        sent = [self.sent(place, each) for each in notices]
        for each, at, newer in zip(notices, sent, self.followed(sent), strict=True):
            woken = self.futures.woken((self.lives,), at + each.delays)
            listed = (place.since <= at) & (at < place.until)
            yield np.where(listed & (woken < newer), woken, ticks.NEVER)


class _FreshList:
    """The notices of a list that passes may change."""

    def __init__(self, wake_ups: WakeUps, place: MemberList) -> None:
        self._wake_ups, self.place = wake_ups, place
        self._notices = list(wake_ups._notices(place))
        self._since, self._until = place.since.reshape(-1), place.until.reshape(-1)
        size = len(self._since)
        self._delays = np.array(
            [each.delays.reshape(-1) for each in self._notices], np.int64
        ).reshape(-1, size)
        arriving = np.where(self._delays == ticks.NEVER, 0, self._delays)
        self._longest_us = arriving.max(axis=1, initial=0) + draws.NOTICE_TOGETHER.longest
        self.refresh()

    def refresh(self) -> None:
        """Take note of who has registered."""
        sent = [self._wake_ups.sent(self.place, each) for each in self._notices]
        newer = self._wake_ups.followed(sent)
        self._sent, self._newer = (
            np.array(rows, np.int64).reshape(-1, len(self.place.up)) for rows in (sent, newer)
        )
        last_sent = np.where(self._sent == ticks.NEVER, ticks.BEFORE_ALL, self._sent).max(axis=1)
        self._last_us = last_sent + self._longest_us

    def first_after(self, elements: NDArray[np.int64], at_us: Times) -> Times:
        if not len(elements):
            return np.full(0, ticks.NEVER, np.int64)
        # the others have arrived
        coming = np.flatnonzero(self._last_us > at_us.min())[:, None]
        seeds = elements % len(self.place.up)
        sent = self._sent[coming, seeds]
        at = self._wake_ups.lives[elements // len(self.place.up)], seeds
        woken = self._wake_ups.futures.woken(at, sent + self._delays[coming, elements])
        counts = (self._since[elements] <= sent) & (sent < self._until[elements])
        counts &= (woken > at_us) & (woken < self._newer[coming, seeds])
        found: Times = np.where(counts, woken, ticks.NEVER).min(axis=0, initial=ticks.NEVER)
        return found
