"""Facts about the cluster as functions of time, whose values may be unknown at some times."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import groupby
from typing import Generic, TypeVar, cast

T = TypeVar("T")
Other = TypeVar("Other")

EVER_MS = 1 << 62
"""A time after every event; its negative lies before every event."""


@dataclass(frozen=True, slots=True)
class Unknown:
    """Why a value is unknown, and what would settle it.

    Attributes:
        reason: LOG_BEGINS, LOG_ENDED or NOT_COVERED of `model.verdicts`.
        where: the broker or client folder whose file is missing; empty if there is no single
            folder.
        why: the evidence that is missing, in words.
        remedy: the file or command that would supply it.
    """

    reason: str
    where: str
    why: str
    remedy: str


@dataclass(frozen=True, slots=True)
class Interval(Generic[T]):
    """A period with a single value, in epoch ms; ``to_ms`` is exclusive."""

    from_ms: int
    to_ms: int
    value: T | Unknown


@dataclass(frozen=True, slots=True)
class Timeline(Generic[T]):
    """Consecutive intervals that cover all of time.

    Every operation returns a new timeline. Costs are linear in the number of intervals, except for
    `at` and the start of `over`, which are logarithmic.

    Attributes:
        intervals: the intervals in order and without gaps; neighbours differ in value.
    """

    intervals: tuple[Interval[T], ...]

    @staticmethod
    def always(value: Other | Unknown) -> Timeline[Other]:
        """Return a timeline with the same value at all times.

        >>> Timeline.always(3).at(0)
        3
        """
        return Timeline((Interval(-EVER_MS, EVER_MS, value),))

    def at(self, at_ms: int) -> T | Unknown:
        """Return the value at a moment."""
        return self.intervals[self._index(at_ms)].value

    def known_at(self, at_ms: int, otherwise: T) -> T:
        """Return the value at a moment, or ``otherwise`` if it is unknown."""
        value = self.at(at_ms)
        return otherwise if isinstance(value, Unknown) else value

    def over(self, from_ms: int, to_ms: int) -> Iterator[Interval[T]]:
        """Yield the intervals that overlap the period from ``from_ms`` to ``to_ms``, inclusive."""
        for index in range(self._index(from_ms), len(self.intervals)):
            if self.intervals[index].from_ms > to_ms:
                return
            yield self.intervals[index]

    def gap(self, from_ms: int, to_ms: int) -> Unknown | None:
        """Return why the value is unknown at the first such moment from ``from_ms`` to ``to_ms``,
        inclusive, or None if it is known throughout.
        """
        values = (interval.value for interval in self.over(from_ms, to_ms))
        return next((value for value in values if isinstance(value, Unknown)), None)

    def gaps(self) -> Iterator[tuple[Interval[T], Unknown]]:
        """Yield the intervals without a known value, each with its reason."""
        for interval in self.intervals:
            if isinstance(interval.value, Unknown):
                yield interval, interval.value

    def where_known(self, value: Other) -> Timeline[Other]:
        """Return a timeline with a single value wherever this one is known."""
        return _joined(
            Interval(
                each.from_ms, each.to_ms, each.value if isinstance(each.value, Unknown) else value
            )
            for each in self.intervals
        )

    def put(self, from_ms: int, to_ms: int, value: T | Unknown) -> Timeline[T]:
        """Return the timeline with the value replaced from ``from_ms`` up to, but excluding,
        ``to_ms``.

        >>> Timeline.always("a").put(10, 20, "b").at(20)
        'a'
        """
        if from_ms >= to_ms:
            return self
        before = (
            replace(interval, to_ms=min(interval.to_ms, from_ms))
            for interval in self.intervals
            if interval.from_ms < from_ms
        )
        after = (
            replace(interval, from_ms=max(interval.from_ms, to_ms))
            for interval in self.intervals
            if interval.to_ms > to_ms
        )
        return _joined([*before, Interval(from_ms, to_ms, value), *after])

    def refined(self, other: Timeline[T]) -> Timeline[T]:
        """Return the timeline with unknown values filled in from ``other``.

        >>> late = Timeline.always("b").put(-EVER_MS, 10, Unknown("", "", "", ""))
        >>> late.refined(Timeline.always("a")).at(5)
        'a'
        """
        refined = self
        for gap, _ in self.gaps():
            for stated in other.over(gap.from_ms, gap.to_ms - 1):
                if not isinstance(stated.value, Unknown):
                    begin_ms, end_ms = (
                        max(gap.from_ms, stated.from_ms),
                        min(gap.to_ms, stated.to_ms),
                    )
                    refined = refined.put(begin_ms, end_ms, stated.value)
        return refined

    def proven(self, shown_ms: Iterable[int]) -> Timeline[T]:
        """Return the timeline of a state, given this timeline of its changes.

        In a stretch without a gap, the state is known if it is known at one moment, because all
        changes before and after are known. A stretch without a beginning is also known.

        Args:
            shown_ms: moments at which evidence shows the whole state.
        """
        shown = sorted(shown_ms)
        proven: list[Interval[T]] = []
        before: Unknown | None = None
        for is_gap, intervals in groupby(self.intervals, _is_gap):
            stretch = list(intervals)
            if is_gap:
                before = cast("Unknown", stretch[-1].value)
            elif before is not None:
                first = bisect_left(shown, stretch[0].from_ms)
                if first == len(shown) or shown[first] >= stretch[-1].to_ms:
                    stretch = [Interval(stretch[0].from_ms, stretch[-1].to_ms, before)]
            proven += stretch
        return _joined(proven)

    def _index(self, at_ms: int) -> int:
        return max(
            0, bisect_right(self.intervals, at_ms, key=lambda interval: interval.from_ms) - 1
        )


def _is_gap(interval: Interval[T]) -> bool:
    return isinstance(interval.value, Unknown)


def _joined(intervals: Iterable[Interval[T]]) -> Timeline[T]:
    """Return the timeline of these intervals, merging neighbours with equal values."""
    joined: list[Interval[T]] = []
    for interval in intervals:
        if joined and joined[-1].value == interval.value:
            joined[-1] = replace(joined[-1], to_ms=interval.to_ms)
        else:
            joined.append(interval)
    return Timeline(tuple(joined))


def first_gap(timelines: Iterable[Timeline[T]], from_ms: int, to_ms: int) -> Unknown | None:
    """Return why the first of these timelines with a gap is unknown within a span, or None if all
    are known throughout.
    """
    gaps = (timeline.gap(from_ms, to_ms) for timeline in timelines)
    return next((gap for gap in gaps if gap is not None), None)
