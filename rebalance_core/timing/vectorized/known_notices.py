"""Looks up the notices of lists that no pass changes, making draws only for those that matter.

A segment has (operations x brokers x members) notices, but a member's next pass depends on only one
of them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from rebalance_core.timing.timer_periods import NEVER, Times
from rebalance_core.timing.vectorized.member_lists import MemberList
from rebalance_core.timing.vectorized.sorted_rows import SortedRows

_AT_ONCE = 8
"""The number of notices per element that one step examines."""
_CELLS = 1 << 16
"""The number of notices that one step examines over all elements; they fit into the cache."""
_ALL_DRAWN = 4 << 20
"""Draw and sort all wake-ups of a segment if they take up to this many bytes; beyond that, search
and draw on demand. Drawing all cost 7 to 30 % less up to 2.9 MB, and more from 11.5 MB on.
"""


@dataclass(frozen=True, eq=False)
class ListNotices:
    """The operations on a member list about which its broker notifies the other members.

    Attributes:
        place: the list.
        ticks: (N, S) the tick numbers of the notices' draws.
        sent: (N, S) when they are sent, or `NEVER`.
        newer: (N, S) the time from which a newer operation suppresses them, or `NEVER`.
    """

    place: MemberList
    ticks: NDArray[np.int64]
    sent: Times
    newer: Times


Arrival = Callable[[NDArray[np.int64], NDArray[np.int64], Times], Times]
"""Maps (elements, ticks, times sent), each (n, K), to the times at which the notices wake them."""


class KnownNotices:
    """The notices of several lists, sorted by the time at which they are sent.

    Args:
        notices: the notices of each list.
        seeds: the number of futures.
        arrival: when notices wake elements; `NEVER` where they do not.
        fastest_us: the shortest time from sending to waking.
        slowest_us: the longest such time.
    """

    def __init__(
        self,
        notices: Sequence[ListNotices],
        seeds: int,
        arrival: Arrival,
        fastest_us: int,
        slowest_us: int,
    ) -> None:
        self._arrival, self._fastest_us, self._slowest_us = arrival, fastest_us, slowest_us
        self._seeds = seeds
        counts = [len(each.sent) for each in notices]
        empty = np.empty((0, seeds), np.int64)
        sent = np.concatenate([empty, *(each.sent for each in notices)]).T
        order = np.argsort(sent, axis=1, kind="stable")
        ordered = np.take_along_axis(sent, order, axis=1)
        width = int((ordered < NEVER).any(axis=0).sum())
        order = order[:, :width]
        self._width = width + 1
        """Includes the `NEVER` that ends each row."""

        def padded(values: Times) -> Times:
            rows = np.full((seeds, self._width), NEVER, np.int64)
            rows[:, :width] = values
            return rows.reshape(-1)

        self._sent = padded(ordered[:, :width])
        columns = (
            np.concatenate([empty, *(getattr(each, name) for each in notices)]).T
            for name in ("ticks", "newer")
        )
        self._ticks, self._newer = (
            padded(np.take_along_axis(each, order, axis=1)) for each in columns
        )
        of_list = np.repeat(np.arange(len(notices)), counts)
        self._list = padded(of_list[order])
        self._list[self._list == NEVER] = 0
        self._since, self._until = (
            np.concatenate([each.reshape(-1) for each in times] or [np.empty(0, np.int64)])
            for times in (
                [each.place.since for each in notices],
                [each.place.until for each in notices],
            )
        )
        self._elements = notices[0].place.since.size if notices else 0
        listed = (len(notices), self._elements)
        self._listed_us = self._since.reshape(listed).min(axis=0, initial=NEVER)
        """(elements,): when any list first contains each element."""
        self._gone_us = self._until.reshape(listed).max(axis=0, initial=-NEVER)

    def first_after(self, elements: NDArray[np.int64], at_us: Times, enough_us: Times) -> Times:
        """Return the first notice that wakes each element after a time, or `NEVER`. If that notice
        is no later than ``enough_us``, return any such notice.

        Args:
            elements: (n,) numbers of elements.
            at_us: (n,) only later wake-ups count.
            enough_us: (n,) the time up to which any wake-up will do.
        """
        best = np.full(len(elements), NEVER, np.int64)
        if self._width == 1 or not len(elements):
            return best
        if self._elements * (self._width - 1) * best.itemsize <= _ALL_DRAWN:
            return self._all_drawn.first_after(elements, at_us)
        begin = elements % self._seeds * self._width
        listed_us = self._listed_us[elements] - 1
        rows = np.flatnonzero(enough_us > np.maximum(at_us, listed_us) + self._fastest_us)
        # In a busy period, the next notice is soon enough.
        later = self._after(begin[rows], np.maximum(at_us, listed_us)[rows])
        self._look(rows, later, best, elements, at_us, enough_us, most=2 * _AT_ONCE)
        rows = np.flatnonzero(best > enough_us)
        early_us = np.maximum(at_us - self._slowest_us, listed_us)
        early = self._after(begin[rows], early_us[rows])
        self._look(rows, early, best, elements, at_us, enough_us, most=self._width)
        return best

    @cached_property
    def _all_drawn(self) -> SortedRows:
        """All wake-ups of each element."""
        woken = np.empty((self._elements, self._width - 1), np.int64)
        step = max(1, _CELLS // self._width)
        for first in range(0, self._elements, step):
            who = np.arange(first, min(first + step, self._elements))
            begin = who % self._seeds * self._width
            woken[who[0] : who[-1] + 1] = self._woken(who, begin, self._width - 1)
        return SortedRows(woken)

    def _look(
        self,
        rows: NDArray[np.int64],
        position: NDArray[np.int64],
        best: Times,
        elements: NDArray[np.int64],
        at_us: Times,
        enough_us: Times,
        *,
        most: int,
    ) -> None:
        """Examine about ``most`` notices of each element, starting at its position, while an
        earlier wake-up is still possible.
        """
        seen = 0
        while len(rows) and seen < most:
            count = min(max(_AT_ONCE, _CELLS // len(rows)), most - seen)
            for first in range(0, len(rows), _CELLS // _AT_ONCE):
                part = slice(first, first + _CELLS // _AT_ONCE)
                who = rows[part]
                woken = self._woken(elements[who], position[part], count)
                woken[woken <= at_us[who, None]] = NEVER
                best[who] = np.minimum(best[who], woken.min(axis=1))
            position = np.minimum(position + count, self._ends(position))
            seen += count
            until_us = np.minimum(best[rows] - self._fastest_us, self._gone_us[elements[rows]])
            more = (best[rows] > enough_us[rows]) & (self._sent[position] < until_us)
            rows, position = rows[more], position[more]

    def _ends(self, position: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return the end of each element's row, which is a position without a notice."""
        return (position // self._width + 1) * self._width - 1

    def _woken(self, elements: NDArray[np.int64], position: NDArray[np.int64], count: int) -> Times:
        """Return (n, count) when the notices from each position on wake elements."""
        places = position[:, None] + np.arange(count)
        places = np.minimum(places, self._ends(position)[:, None])
        sent = self._sent[places]
        cells = self._list[places] * self._elements + elements[:, None]
        counts = (self._since[cells] <= sent) & (sent < self._until[cells])
        woken = self._arrival(elements[:, None], self._ticks[places], sent)
        counts &= (woken < self._newer[places]) & (sent < NEVER)
        return np.where(counts, woken, NEVER)

    def _after(self, begin: NDArray[np.int64], at_us: Times) -> NDArray[np.int64]:
        """Return the position of each future's first notice sent after a time."""
        low, size = begin.copy(), self._width - 1
        while size > 0:
            half = (size + 1) // 2
            low += half * (self._sent[low + half - 1] <= at_us)
            size -= half
        return low
