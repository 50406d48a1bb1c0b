"""Segments of arrays."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import (
    NEVER,
    extreme,
    find,
    first_of_run,
    last_of_run,
    last_true,
    pair,
    pointers,
    ranges,
    running_max,
    running_min,
    sums,
)
from tests.unit.kernels.arrays import bools, ints
from tests.unit.kernels.hypothesis_settings import RANDOM

NOTHING: list[int] = []


def flags(mask: np.ndarray) -> str:
    """The inverse of `bools`."""
    return "".join("01"[int(value)] for value in mask)


@pytest.mark.parametrize(
    ("counts", "expected"), [([], [0]), ([3], [0, 3]), ([2, 0, 3], [0, 2, 2, 5])]
)
def test_pointers_are_where_segments_begin_and_the_end(
    counts: list[int], expected: list[int]
) -> None:
    assert pointers(ints(*counts)).tolist() == expected


def test_pointers_of_truth_values_count_them() -> None:
    assert pointers(bools("101")).tolist() == [0, 1, 1, 2]


@pytest.mark.parametrize(
    ("starts", "counts", "expected"),
    [
        ([], [], []),
        ([7], [0], []),
        ([7], [2], [7, 8]),
        ([7, 1, 0], [2, 0, 3], [7, 8, 0, 1, 2]),
        ([5, 5], [1, 2], [5, 5, 6]),
    ],
)
def test_ranges_follow_each_other(
    starts: list[int], counts: list[int], expected: list[int]
) -> None:
    assert ranges(ints(*starts), ints(*counts)).tolist() == expected


@pytest.mark.parametrize(
    ("keys", "first", "last"),
    [
        ([[]], "", ""),
        ([[4]], "1", "1"),
        ([[4, 4, 5, 4]], "1011", "0111"),
        ([[1, 1, 1, 2], [7, 7, 8, 8]], "1011", "0111"),
    ],
)
def test_runs_end_where_any_key_differs(keys: list[list[int]], first: str, last: str) -> None:
    arrays = [ints(*values) for values in keys]
    assert flags(first_of_run(*arrays)) == first
    assert flags(last_of_run(*arrays)) == last


@pytest.mark.parametrize(
    ("mask", "first", "expected"),
    [
        ("", "", []),
        ("0", "1", [-1]),
        ("1", "1", [0]),
        ("0100", "1000", [-1, 1, 1, 1]),
        ("1001", "1010", [0, 0, -1, 3]),
        ("110", "101", [0, 1, -1]),
    ],
)
def test_the_last_true_row_is_looked_for_in_its_own_segment(
    mask: str, first: str, expected: list[int]
) -> None:
    assert last_true(bools(mask), bools(first)).tolist() == expected


@pytest.mark.parametrize(
    ("values", "segment", "highest", "lowest"),
    [
        ([], [], [], []),
        ([-3], [9], [-3], [-3]),
        ([1, 5, 2, 7], [0, 0, 0, 0], [1, 5, 5, 7], [1, 1, 1, 1]),
        ([9, 1, 2, -4, 3], [2, 2, 5, 5, 5], [9, 9, 2, 2, 3], [9, 1, 2, -4, -4]),
    ],
)
def test_running_extremes_begin_anew_in_each_segment(
    values: list[int], segment: list[int], highest: list[int], lowest: list[int]
) -> None:
    assert running_max(ints(*values), ints(*segment)).tolist() == highest
    assert running_min(ints(*values), ints(*segment)).tolist() == lowest


def test_running_min_takes_values_far_apart() -> None:
    far = int(NEVER)
    found = running_min(ints(far, 3, far, -far), ints(0, 0, 1_000, 1_000))
    assert found.tolist() == [far, 3, far, -far]


SEGMENTS = st.lists(st.lists(st.integers(-50, 50), max_size=4), max_size=6)


@RANDOM
@given(SEGMENTS)
def test_every_segment_stands_for_itself(segments: list[list[int]]) -> None:
    values, bounds = ints(*sum(segments, NOTHING)), pointers(ints(*map(len, segments)))
    segment = np.repeat(np.arange(len(segments)), np.diff(bounds))
    so_far = [row[: i + 1] for row in segments for i in range(len(row))]
    assert sums(values, bounds).tolist() == [sum(s) for s in segments]
    assert extreme(np.maximum, values, bounds, -99).tolist() == [
        max(s, default=-99) for s in segments
    ]
    assert extreme(np.minimum, values, bounds, 99).tolist() == [
        min(s, default=99) for s in segments
    ]
    assert running_max(values, segment).tolist() == [max(s) for s in so_far]
    assert running_min(values, segment).tolist() == [min(s) for s in so_far]


@pytest.mark.parametrize(
    ("segments", "totals", "highest"),
    [([0], [], []), ([0, 0], [0], [-1]), ([0, 0, 2, 2], [0, 7, 0], [-1, 4, -1])],
)
def test_empty_segments_sum_to_0_and_have_no_extreme(
    segments: list[int], totals: list[int], highest: list[int]
) -> None:
    values = ints(3, 4)[: segments[-1]]
    assert sums(values, ints(*segments)).tolist() == totals
    assert extreme(np.maximum, values, ints(*segments), -1).tolist() == highest


@pytest.mark.parametrize(
    ("keys", "wanted", "expected"),
    [
        ([], [], []),
        ([], [3], [-1]),
        ([3], [], []),
        ([2, 5, 9], [5, 1, 9, 10, 2, 6], [1, -1, 2, -1, 0, -1]),
    ],
)
def test_find_gives_the_index_or_minus_1(
    keys: list[int], wanted: list[int], expected: list[int]
) -> None:
    assert find(ints(*keys), ints(*wanted)).tolist() == expected


HALF = st.integers(0, 2**32 - 1)
PAIRS = st.lists(st.tuples(st.integers(-1, 2**31 - 1), HALF), max_size=5)


@RANDOM
@given(PAIRS)
def test_pairs_sort_like_tuples_and_tell_each_other_apart(pairs: list[tuple[int, int]]) -> None:
    keys = pair(ints(*(high for high, _ in pairs)), ints(*(low for _, low in pairs))).tolist()
    assert [pairs[i] for i in np.argsort(keys, kind="stable")] == sorted(pairs)
    assert len(set(keys)) == len(set(pairs))
