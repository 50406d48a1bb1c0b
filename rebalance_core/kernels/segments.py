"""Ragged arrays: the rows of many groups in one array, in which each group is a consecutive
segment.

All functions take and return one-dimensional arrays; cost is linear, without Python loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Counts: TypeAlias = NDArray[np.int32]
"""For large arrays of small numbers."""
Bools: TypeAlias = NDArray[np.bool_]
AnyInts: TypeAlias = NDArray[Any]

NONE = -1
"""No row, or no offset."""
NEVER = np.int64(2**62)
"""An ordinal or instant that no event has."""


def pointers(counts: AnyInts) -> Ints:
    """Return the start of each segment and the end of the last one: shape (n + 1,).

    >>> pointers(np.array([2, 0, 3])).tolist()
    [0, 2, 2, 5]
    """
    ends = np.zeros(len(counts) + 1, np.int64)
    counts.cumsum(out=ends[1:])
    return ends


def ranges(starts: AnyInts, counts: AnyInts) -> Ints:
    """Return ``arange(start, start + count)`` for every pair, concatenated.

    >>> ranges(np.array([5, 9]), np.array([2, 3])).tolist()
    [5, 6, 9, 10, 11]
    """
    ends = counts.cumsum()
    values = np.arange(int(ends[-1]) if len(ends) else 0, dtype=np.int64)
    values += (starts - ends + counts).repeat(counts)
    return values


def first_of_run(*keys: AnyInts) -> Bools:
    """Return True where any of the keys differs from the previous row; the first row is True."""
    new = np.zeros(len(keys[0]), np.bool_)
    new[:1] = True
    for key in keys:
        new[1:] |= key[1:] != key[:-1]
    return new


def distinct(values: AnyInts) -> AnyInts:
    """Return the distinct values in ascending order.

    Cost: a stable sort, which is linear if values are nearly in order, as most codes here are;
    NumPy's own ``unique`` hashes them from NumPy 2.3 on and takes 72 to 89 times as long for three
    million such values; in random order with few distinct values, this takes 2.4 times as long.

    >>> distinct(np.array([3, 1, 3])).tolist()
    [1, 3]
    """
    ordered = np.sort(values, kind="stable")
    return ordered[first_of_run(ordered)]


def last_of_run(*keys: AnyInts) -> Bools:
    """Return True where any of the keys differs from the next row; the last row is True."""
    return ends_of_runs(*keys)[1]


def ends_of_runs(*keys: AnyInts) -> tuple[Bools, Bools]:
    """Return `first_of_run` and `last_of_run`."""
    first = first_of_run(*keys)
    last = np.ones(len(first), np.bool_)
    last[:-1] = first[1:]
    return first, last


def stretches(value: AnyInts | Bools, segment: Ints) -> tuple[Ints, Ints]:
    """Return the first and last row of every stretch of equal positive values within a segment.

    >>> first, last = stretches(np.array([0, 2, 2, 1, 1]), np.array([0, 0, 0, 0, 1]))
    >>> first.tolist(), last.tolist()
    ([1, 3, 4], [2, 3, 4])
    """
    first, last = ends_of_runs(value, segment)
    return np.flatnonzero(first & (value > 0)), np.flatnonzero(last & (value > 0))


def rank(*keys: AnyInts) -> Ints:
    """Return the number of each row in its run of equal keys, counted from 0.

    >>> rank(np.array([5, 5, 7, 7, 7])).tolist()
    [0, 1, 0, 1, 2]
    """
    first = np.flatnonzero(first_of_run(*keys))
    lengths = np.diff(np.append(first, len(keys[0])))
    return np.arange(len(keys[0])) - np.repeat(first, lengths)


def last_true(mask: Bools, first: Bools) -> Ints:
    """Return the nearest True row at or before each row within the same segment, or -1.

    Args:
        mask: the rows to look for.
        first: True at the first row of every segment.
    """
    rows = np.arange(len(mask), dtype=np.int64)
    last = np.maximum.accumulate(np.where(mask, rows, -1))
    begin = np.maximum.accumulate(np.where(first, rows, -1))
    return np.where(last >= begin, last, -1)


def running_max(values: Ints, segment: Ints) -> Ints:
    """Return the running maximum within each segment; ``segment`` is ascending."""
    if not len(values):
        return values
    low = values.min()
    height = values.max() - low + 1
    lifted = values - low + (segment - segment[0]) * height
    return np.maximum.accumulate(lifted) - (segment - segment[0]) * height + low


def running_min(values: Ints, segment: Ints) -> Ints:
    """Return the running minimum within each segment; any int64 values."""
    distinct, rank = np.unique(values, return_inverse=True)
    return distinct[-running_max(-rank, segment)]


def sums(values: AnyInts, segment_pointers: Ints) -> Ints:
    """Return the sum of each segment; an empty segment gives 0."""
    result = np.zeros(len(segment_pointers) - 1, np.int64)
    filled = segment_pointers[1:] > segment_pointers[:-1]
    if filled.any():
        result[filled] = np.add.reduceat(values, segment_pointers[:-1][filled], dtype=np.int64)
    return result


def extreme(reduce: np.ufunc, values: AnyInts, segment_pointers: Ints, empty: int) -> AnyInts:
    """Return ``reduce`` (np.maximum, np.minimum …) over each segment, or ``empty`` if it has no
    rows.
    """
    result = np.full(len(segment_pointers) - 1, empty, values.dtype)
    filled = segment_pointers[1:] > segment_pointers[:-1]
    if filled.any():
        result[filled] = reduce.reduceat(values, segment_pointers[:-1][filled])
    return result


def find(keys: Ints, wanted: Ints) -> Ints:
    """Return the index of each wanted value in sorted unique keys, or -1."""
    if not len(keys):
        return np.full(len(wanted), -1, np.int64)
    index = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
    return np.where(keys[index] == wanted, index, -1)


def on_periods(keys: Sequence[Ints], ordinal: Ints, on: Bools) -> tuple[Ints, Ints]:
    """Return (row of the start, ordinal of the end) of each period in which a key is on.

    Args:
        keys: the key of each row; equal keys are adjacent, and a key is off before its first row.
        ordinal: the ordinal of each row; ascending within a key.
        on: for each row, whether the key is on from then.
    """
    turns = np.flatnonzero(on != np.where(first_of_run(*keys), False, np.roll(on, 1)))
    last = last_of_run(*(key[turns] for key in keys))
    end = np.where(last, NEVER, np.roll(ordinal[turns], -1))
    begins = on[turns]
    return turns[begins], end[begins]


def equal_range(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return the range of sorted keys that equal each wanted value."""
    return np.searchsorted(keys, wanted), np.searchsorted(keys, wanted, side="right")


def matching(keys: Ints, wanted: Ints) -> tuple[Ints, Ints]:
    """Return (query index, row) for every row of sorted keys that equals a wanted value.

    >>> asker, row = matching(np.array([3, 3, 4]), np.array([4, 5, 3]))
    >>> asker.tolist(), row.tolist()
    ([0, 2, 2], [2, 0, 1])
    """
    first, end = equal_range(keys, wanted)
    count = end - first
    return np.repeat(np.arange(len(wanted)), count), ranges(first, count)


def covered(begin: Ints, end: Ints, rows: int) -> Ints:
    """Return how many ranges [begin, end) cover each row."""
    steps = np.bincount(begin, minlength=rows + 1) - np.bincount(end, minlength=rows + 1)
    return np.cumsum(steps[:-1])


def pair(high: AnyInts, low: AnyInts) -> Ints:
    """Return two numbers, the low in [0, 2**32), as an integer that sorts like the pair."""
    return (np.asarray(high, np.int64) << 32) | np.asarray(low, np.int64)


def halves(pairs: Ints) -> tuple[Ints, Ints]:
    """Return the two numbers of each `pair`."""
    return pairs >> 32, pairs & 0xFFFFFFFF


def bisect(values: Ints, low: Ints, high: Ints, wanted: Ints, *, right: bool) -> Ints:
    """Return ``bisect_left`` or ``bisect_right`` of each wanted value in ``values[low:high]``.

    Cost: all ranges are halved as often as the longest one.
    """
    low, length = low.copy(), np.maximum(high - low, 0)
    for _ in range(int(length.max(initial=0)).bit_length()):
        half = length >> 1
        middle = np.minimum(low + half, len(values) - 1)  # for an empty range at the end
        seen = values[middle]
        after = (seen <= wanted if right else seen < wanted) & (length > 0)
        low += np.where(after, half + 1, 0)
        length = np.where(after, length - half - 1, half)
    return low
