"""When clients are woken: by their own join, and by CHANGE notifications (rocketmq.md §6.2)."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from rebalance_core.clockwork.batch.futures import Futures, Segment, SortedRows
from rebalance_core.clockwork.batch.member_lists import MemberList
from rebalance_core.clockwork.draws import (
    DRAW_BITS,
    NOTICE,
    Operation,
    Timer,
    draws_of,
    operation_id,
)
from rebalance_core.clockwork.loop.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.clockwork.ticks import BEFORE_ALL, NEVER, Times
from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.versions import parse_version


@dataclass(frozen=True, eq=False)
class _Notices:
    """What one operation on a list sends.

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
        segment: Segment,
        lives: NDArray[np.int64],
        lists: list[MemberList],
    ) -> None:
        self._futures, self._segment, self._lives = futures, segment, lives
        version = parse_version(futures.script.settings.broker_version)
        self._newest_wins = version >= NEWEST_NOTICE_WINS
        self._silent = version >= BROADCASTING_IS_SILENT
        self._seeds = len(futures.seeds)
        joined = np.where(self._wakes_itself()[:, None], futures.ticks.joined[lives], NEVER)
        columns = [joined]
        for place in lists:
            if not place.is_fresh:
                columns.extend(self._woken(place, list(self._notices(place))))
        table = np.stack(columns, axis=2).reshape(len(lives) * self._seeds, -1)
        self._known = SortedRows(table)
        self.fresh = [_FreshList(self, place) for place in lists if place.is_fresh]

    def first_after(self, elements: NDArray[np.int64], at_us: Times) -> Times:
        """The first wake-up of each element that is later than a time; `NEVER`."""
        found = self._known.first_after(elements, at_us)
        for each in self.fresh:
            found = np.minimum(found, each.first_after(elements, at_us))
        return found

    def operations(self, place: MemberList) -> Times:
        """(K, S) when a list changes in the segment, told or not."""
        rows = [place.since[place.moving], place.until[place.moving]]
        return np.concatenate(rows) if len(place.moving) else np.empty((0, self._seeds), np.int64)

    def _wakes_itself(self) -> NDArray[np.bool_]:
        """(lives,) ``start()`` of a push consumer ends with a wake-up of its own."""
        push = self._futures.script.settings.consumer_type == PUSH
        lives = self._futures.script.lives
        return np.array([push and not lives[life].observed for life in self._lives.tolist()])

    def _notices(self, place: MemberList) -> Iterator[_Notices]:
        """The operations on a list that tell the others."""
        for life in place.moving.tolist():
            if self._silent and self._futures.traits[self._lives[life]].broadcasting:
                continue
            joins = place.joins[life]
            delays = None
            if joins.any():
                delays = self._delays(place, life, Operation.JOINS)
            if not joins.all():
                again = self._delays(place, life, Operation.AGAIN)
                delays = again if delays is None else np.where(joins, delays, again)
            assert delays is not None
            if place.is_fresh or self._in_time(place.since[life]).any():
                yield _Notices(life, False, delays)
            if place.told[life] and self._in_time(place.until[life]).any():
                yield _Notices(life, True, self._delays(place, life, Operation.GOES))

    def _delays(self, place: MemberList, life: int, operation: Operation) -> Times:
        script = self._futures.script
        entity = script.lives[self._lives[life]].entity
        name = script.brokers[place.broker]
        tick = operation_id(entity, name, place.number, operation)
        words = self._futures.words[self._lives]
        delays = NOTICE.many(draws_of(words, Timer.NOTICE, tick))
        lost = round(self._futures.options.lost_notices * (1 << DRAW_BITS))
        if lost:
            lost_here = draws_of(words, Timer.NOTICE_LOST, tick) < np.uint64(lost)
            delays = np.where(lost_here, NEVER, delays)
        return delays

    def _in_time(self, at_us: Times) -> NDArray[np.bool_]:
        return (at_us >= self._segment.since_us) & (at_us < self._segment.end_us)

    def sent(self, place: MemberList, notices: _Notices) -> Times:
        """(S,) when the notices of an operation are sent; `NEVER`: not in the segment."""
        since, until = place.since[notices.life], place.until[notices.life]
        at = since
        if notices.goes:
            at = np.where((since < until) & (until < place.down), until, NEVER)
        return np.where(self._in_time(at), at, NEVER)

    def followed(self, sent: list[Times]) -> list[Times]:
        """For each operation: (S,) from when on a newer one keeps its notices back."""
        if not self._newest_wins or len(sent) < 2:
            return [np.full(self._seeds, NEVER) for _ in sent]
        rows = SortedRows(np.stack(sent, axis=1))
        seeds = np.arange(self._seeds)
        return [rows.first_after(seeds, at) for at in sent]

    def _woken(self, place: MemberList, notices: list[_Notices]) -> Iterator[Times]:
        """(lives, S) by operation: when each life is woken by it; `NEVER`."""
        sent = [self.sent(place, each) for each in notices]
        for each, at, newer in zip(notices, sent, self.followed(sent), strict=True):
            woken = at + each.delays
            listed = (place.since <= at) & (at < place.until)
            yield np.where(listed & (woken < newer), woken, NEVER)


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
        arriving = np.where(self._delays == NEVER, 0, self._delays)
        self._longest_us = arriving.max(axis=1, initial=0)
        self.refresh()

    def refresh(self) -> None:
        """Take note of who has registered."""
        sent = [self._wake_ups.sent(self.place, each) for each in self._notices]
        newer = self._wake_ups.followed(sent)
        self._sent, self._newer = (
            np.array(rows, np.int64).reshape(-1, len(self.place.up)) for rows in (sent, newer)
        )
        last_sent = np.where(self._sent == NEVER, BEFORE_ALL, self._sent).max(axis=1)
        self._last_us = last_sent + self._longest_us

    def first_after(self, elements: NDArray[np.int64], at_us: Times) -> Times:
        if not len(elements):
            return np.full(0, NEVER, np.int64)
        # the others have arrived
        coming = np.flatnonzero(self._last_us > at_us.min())[:, None]
        seeds = elements % len(self.place.up)
        sent = self._sent[coming, seeds]
        woken = sent + self._delays[coming, elements]
        counts = (self._since[elements] <= sent) & (sent < self._until[elements])
        counts &= (woken > at_us) & (woken < self._newer[coming, seeds])
        found: Times = np.where(counts, woken, NEVER).min(axis=0, initial=NEVER)
        return found
