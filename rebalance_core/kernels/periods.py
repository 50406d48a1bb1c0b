"""Periods of epochs or cells by key, looked up for many keys and moments at once."""

from __future__ import annotations

import numpy as np

from rebalance_core.kernels.segments import (
    AnyInts,
    Bools,
    Ints,
    first_of_run,
    last_of_run,
    pair,
    ranges,
    running_max,
    stretches,
)


class Periods:
    """Periods [begin, end) of keys (major, minor), sorted by key and start, without overlaps.

    Args:
        major: one value per period, as in all arrays below; ascending.
        minor: in [0, 2**32).
        begin: in [0, 2**32).
        end: greater than ``begin``.
    """

    def __init__(self, major: Ints, minor: Ints, begin: Ints, end: Ints) -> None:
        self.major, self.minor, self.begin, self.end = major, minor, begin, end
        key = pair(major, minor)
        first = first_of_run(key)
        self._keys = key[first]
        self._first = np.append(np.flatnonzero(first), len(key))
        self._begins = pair(np.cumsum(first) - 1, begin)

    @classmethod
    def union(cls, major: Ints, minor: Ints, begin: Ints, end: Ints) -> Periods:
        """Return the union of these periods, which may overlap and touch, in any order."""
        order = np.lexsort((begin, minor, major))
        major, minor, begin, end = (a[order] for a in (major, minor, begin, end))
        starts = begins_of_union(first_of_run(major, minor), begin, end)
        number = np.cumsum(starts) - 1
        last = last_of_run(number)
        return cls(major[starts], minor[starts], begin[starts], running_max(end, number)[last])

    @classmethod
    def of_stretches(cls, value: AnyInts | Bools, major: Ints, moment: Ints) -> Periods:
        """Return the moments covered by each of the `stretches` of equal values, by (major, 0)."""
        first, last = stretches(value, major)
        of = major[first]
        return cls(of, np.zeros_like(of), moment[first], moment[last] + 1)

    def __len__(self) -> int:
        return len(self.begin)

    def at(self, major: Ints, minor: Ints, moment: Ints) -> Ints:
        """Return the index of each key's period that covers a moment, or -1."""
        if not len(self):
            return np.full(len(moment), -1, np.int64)
        key = pair(major, minor)
        rank = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        row = np.searchsorted(self._begins, pair(rank, moment), side="right") - 1
        has_begun = (self._keys[rank] == key) & (row >= self._first[rank])
        return np.where(has_begun & (moment < self.end[row]), row, -1)

    def meeting(self, major: Ints, minor: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints]:
        """Return (query index, period index) for each period of a key that overlaps [begin,
        end).
        """
        if not len(self):
            return np.zeros(0, np.int64), np.zeros(0, np.int64)
        key = pair(major, minor)
        rank = np.minimum(np.searchsorted(self._keys, key), len(self._keys) - 1)
        first = np.searchsorted(self._begins, pair(rank, begin), side="right") - 1
        first = np.maximum(first, self._first[rank])
        first += self.end[np.minimum(first, len(self) - 1)] <= begin
        last = np.searchsorted(self._begins, pair(rank, end))
        count = np.where(self._keys[rank] == key, np.maximum(0, last - first), 0)
        return np.repeat(np.arange(len(key)), count), ranges(first, count)

    def parts(self, major: Ints, minor: Ints, begin: Ints, end: Ints) -> tuple[Ints, Ints, Ints]:
        """Return (query index, begin, end) for the part of every `meeting` period that lies in the
        query.
        """
        asker, period = self.meeting(major, minor, begin, end)
        return (
            asker,
            np.maximum(begin[asker], self.begin[period]),
            np.minimum(end[asker], self.end[period]),
        )


def begins_of_union(first: Bools, begin: Ints, end: Ints) -> Bools:
    """Return whether each row begins a period of the union, because it touches no earlier row of
    its key.

    Args:
        first: True at the first row of every key.
        begin: the start of each row; ascending within a key.
        end: the end of each row.
    """
    starts = first.copy()
    reach = running_max(end, np.cumsum(first))
    starts[1:] |= begin[1:] > reach[:-1]
    return starts
