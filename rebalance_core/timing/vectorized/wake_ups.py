"""What wakes clients: their own joins, and notices (rocketmq.md §6.2)."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rebalance_core.model.group_settings import PUSH
from rebalance_core.model.versions import parse_version
from rebalance_core.timing import draws, operations, timer_periods
from rebalance_core.timing.delays import NOTICE, NOTICE_TOGETHER
from rebalance_core.timing.draws import Timer
from rebalance_core.timing.operations import Operation
from rebalance_core.timing.reference.membership import BROADCASTING_IS_SILENT, NEWEST_NOTICE_WINS
from rebalance_core.timing.timer_periods import Times
from rebalance_core.timing.vectorized.futures import Futures
from rebalance_core.timing.vectorized.known_notices import KnownNotices, ListNotices
from rebalance_core.timing.vectorized.member_lists import MemberList
from rebalance_core.timing.vectorized.play_segments import PlaySegment
from rebalance_core.timing.vectorized.sorted_rows import SortedRows


@dataclass(frozen=True, eq=False)
class _Notices:
    """Operations on a member list about which the broker notifies the other members.

    Attributes:
        lifetime: (N,) index of the lifetime that registers or leaves.
        goes: (N,) whether it leaves.
        ticks: (N, S) the tick numbers of its notices' draws.
    """

    lifetime: NDArray[np.int64]
    goes: NDArray[np.bool_]
    ticks: NDArray[np.int64]


class WakeUps:
    """The wake-ups of all elements in a segment.

    Args:
        futures: the futures of the timeline.
        segment: the part of the timeline.
        lifetimes: numbers of the lifetimes.
        lists: the member lists.
    """

    def __init__(
        self,
        futures: Futures,
        segment: PlaySegment,
        lifetimes: NDArray[np.int64],
        lists: list[MemberList],
    ) -> None:
        self.futures, self._segment, self.lifetimes = futures, segment, lifetimes
        version = parse_version(futures.timeline.settings.broker_version)
        self._newest_wins = version >= NEWEST_NOTICE_WINS
        self._silent = version >= BROADCASTING_IS_SILENT
        self._seeds = len(futures.seeds)
        joined = np.where(
            self._wakes_itself()[:, None], futures.ticks.joined[lifetimes], timer_periods.NEVER
        )
        columns = [joined[None], *(row[None] for row in self._woken_by_sharing_groups())]
        table = np.concatenate(columns).reshape(-1, len(lifetimes) * self._seeds)
        self._others = SortedRows(table.T)
        late = futures.ticks.notice_late[lifetimes]
        self._notices = KnownNotices(
            [self._of_list(place) for place in lists if not place.is_fresh],
            self._seeds,
            self._arrival,
            NOTICE.shortest + futures.options.one_way_us,
            NOTICE.longest + futures.options.one_way_us + int(late.max(initial=0)),
        )
        self.fresh = [_FreshList(self, place) for place in lists if place.is_fresh]

    def first_after(
        self, elements: NDArray[np.int64], at_us: Times, enough_us: Times | None = None
    ) -> Times:
        """Return each element's first wake-up later than a time, or `NEVER`.

        Args:
            elements: (n,) numbers of elements.
            at_us: (n,) the times.
            enough_us: (n,) the time up to which any wake-up will do; None returns the first.
        """
        first = self._others.first_after(elements, at_us)
        if enough_us is None:
            enough_us = at_us
        enough_us = np.where(first <= enough_us, timer_periods.NEVER, enough_us)
        first = np.minimum(first, self._notices.first_after(elements, at_us, enough_us))
        for each in self.fresh:
            first = np.minimum(first, each.first_after(elements, at_us))
        return first

    def _of_list(self, place: MemberList) -> ListNotices:
        notices = self.notices(place)
        sent = self.sent(place, notices)
        return ListNotices(place, notices.ticks, sent, self.followed(sent))

    def _arrival(self, elements: NDArray[np.int64], ticks: NDArray[np.int64], sent: Times) -> Times:
        """Return when notices wake elements, or `NEVER`; `Arrival` describes the arguments."""
        at = self.lifetimes[elements // self._seeds], elements % self._seeds
        delays = self._delays(at, ticks, self.futures.unnotified[at[0]])
        return self.futures.woken(at, sent + delays)

    def _woken_by_sharing_groups(self) -> Iterator[Times]:
        """Yield the wake-ups of each lifetime by other groups of its instance, in arrays of
        (lifetimes, S).
        """
        rows: dict[int, list[Times]] = {}
        wakes = self.futures.shared_instance_wakes.between(
            self._segment.since_us, self._segment.end_us
        )
        for lifetime, at_us in wakes:
            rows.setdefault(lifetime, []).append(at_us)
        never = np.full(self._seeds, timer_periods.NEVER, np.int64)
        for number in range(max(map(len, rows.values()), default=0)):
            rows_at = [
                rows.get(lifetime, ())[number : number + 1] for lifetime in self.lifetimes.tolist()
            ]
            yield np.stack([row[0] if row else never for row in rows_at])

    def _wakes_itself(self) -> NDArray[np.bool_]:
        """Return (lifetimes,) whether ``start()`` ends with a wake-up, as a push consumer's
        does.
        """
        push = self.futures.timeline.settings.consumer_type == PUSH
        lifetimes = self.futures.timeline.lifetimes
        return np.array(
            [push and not lifetimes[lifetime].observed for lifetime in self.lifetimes.tolist()]
        )

    def notices(self, place: MemberList) -> _Notices:
        """Return the operations on a list that notify the others."""
        timeline, moving = self.futures.timeline, place.moving
        name, notified = timeline.brokers[place.broker], timeline.settings.notified
        comes, goes = (
            self._in_time(times[moving]).any(axis=1) for times in (place.since, place.until)
        )
        comes = np.logical_and(comes | place.is_fresh, notified)
        goes &= place.notified[moving]
        notifying: list[tuple[int, bool, int, int]] = []
        for lifetime, registers, ends in zip(moving.tolist(), comes, goes, strict=True):
            if self._silent and self.futures.traits[self.lifetimes[lifetime]].broadcasting:
                continue
            of = timeline.lifetimes[self.lifetimes[lifetime]].entity, name, place.number
            if registers:
                joins = again = operations.operation_id(*of, Operation.JOINS)
                if not place.joins[lifetime].all():
                    again = operations.operation_id(*of, Operation.AGAIN)
                notifying.append((lifetime, False, joins, again))
            if ends:
                gone = operations.operation_id(*of, Operation.GOES)
                notifying.append((lifetime, True, gone, gone))
        table = np.array(notifying, np.int64).reshape(-1, 4)
        return _Notices(
            lifetime=table[:, 0],
            goes=table[:, 1].astype(np.bool_),
            ticks=np.where(place.joins[table[:, 0]], table[:, 2, None], table[:, 3, None]),
        )

    def delays(self, tick: NDArray[np.int64]) -> Times:
        """Return (N, lifetimes, S) the delay until a notice wakes each target, or `NEVER`."""
        unnotified = self.futures.unnotified[self.lifetimes, None]
        return self._delays((self.lifetimes,), tick[:, None], unnotified)

    def _delays(
        self, at: tuple[Any, ...], tick: NDArray[np.int64], unnotified: NDArray[np.bool_]
    ) -> Times:
        """Return the delays of notices to elements, given as indices of (lifetimes, S)."""
        words = self.futures.words_for(Timer.NOTICE)[at]
        delays = NOTICE.many(draws.ticked(words, tick)) + self.futures.options.one_way_us
        lost = round(self.futures.options.lost_notices * (1 << draws.DRAW_BITS))
        if lost:
            words = self.futures.words_for(Timer.NOTICE_LOST)[at]
            unnotified = unnotified | (draws.ticked(words, tick) < np.uint64(lost))
        return np.where(unnotified, timer_periods.NEVER, delays)

    def _in_time(self, at_us: Times) -> NDArray[np.bool_]:
        return (at_us >= self._segment.since_us) & (at_us < self._segment.end_us)

    def sent(self, place: MemberList, notices: _Notices) -> Times:
        """Return (N, S) when the notices of each operation are sent, or `NEVER` if not in this
        segment.
        """
        since, until = place.since[notices.lifetime], place.until[notices.lifetime]
        ends = np.where((since < until) & (until < place.down), until, timer_periods.NEVER)
        operation_us = np.where(notices.goes[:, None], ends, since)
        notifies = self.futures.ticks.notifies(place.broker, slice(None), operation_us)
        return np.where(self._in_time(operation_us) & notifies, operation_us, timer_periods.NEVER)

    def followed(self, sent: Times) -> Times:
        """Return (N, S) when a newer operation begins to suppress the notices, or `NEVER`."""
        if not self._newest_wins or len(sent) < 2:
            return np.full(sent.shape, timer_periods.NEVER)
        seeds = np.broadcast_to(np.arange(self._seeds), sent.shape)
        return SortedRows(sent.T).first_after(seeds, sent)


class _FreshList:
    """The notices of a list that passes may change."""

    def __init__(self, wake_ups: WakeUps, place: MemberList) -> None:
        self._wake_ups, self.place = wake_ups, place
        self._notices = wake_ups.notices(place)
        self._since, self._until = place.since.reshape(-1), place.until.reshape(-1)
        self._delays = wake_ups.delays(self._notices.ticks).reshape(-1, len(self._since))
        arriving = np.where(self._delays == timer_periods.NEVER, 0, self._delays)
        self._longest_us = arriving.max(axis=1, initial=0) + NOTICE_TOGETHER.longest
        self.refresh()

    def refresh(self) -> None:
        """Record new registrations."""
        self._sent = self._wake_ups.sent(self.place, self._notices)
        self._newer = self._wake_ups.followed(self._sent)
        last_sent = np.where(
            self._sent == timer_periods.NEVER, timer_periods.BEFORE_ALL, self._sent
        ).max(axis=1)
        self._last_us = last_sent + self._longest_us

    def first_after(self, elements: NDArray[np.int64], at_us: Times) -> Times:
        if not len(elements):
            return np.full(0, timer_periods.NEVER, np.int64)
        # the others have arrived
        coming = np.flatnonzero(self._last_us > at_us.min())[:, None]
        seeds = elements % len(self.place.up)
        sent = self._sent[coming, seeds]
        lifetimes = self._wake_ups.lifetimes[elements // len(self.place.up)], seeds
        woken = self._wake_ups.futures.woken(lifetimes, sent + self._delays[coming, elements])
        counts = (self._since[elements] <= sent) & (sent < self._until[elements])
        counts &= (woken > at_us) & (woken < self._newer[coming, seeds])
        first: Times = np.where(counts, woken, timer_periods.NEVER).min(
            axis=0, initial=timer_periods.NEVER
        )
        return first
