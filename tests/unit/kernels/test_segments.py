"""Segments of arrays, and periods by key against a plain search."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import (
    NEVER,
    Ints,
    covered,
    extreme,
    find,
    first_of_run,
    last_of_run,
    last_true,
    on_periods,
    pair,
    pointers,
    ranges,
    running_max,
    running_min,
    sums,
)
from tests.unit.kernels.hypothesis_settings import RANDOM

NOTHING: list[int] = []


def ints(*values: int) -> Ints:
    return np.array(values, np.int64)


def bools(text: str) -> np.ndarray:
    """``"10"``: True, False."""
    return np.array([c == "1" for c in text], np.bool_)


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


# Periods by key, against a plain search.

PERIOD = st.tuples(st.integers(0, 2), st.integers(0, 2), st.integers(0, 12), st.integers(1, 5)).map(
    lambda p: (p[0], p[1], p[2], p[2] + p[3])
)
ASKED = st.tuples(st.integers(0, 3), st.integers(0, 3), st.integers(0, 18), st.integers(0, 6))


def columns(rows: list[tuple[int, ...]]) -> list[np.ndarray]:
    return list(np.array(rows, np.int64).reshape(-1, 4).T)


@RANDOM
@given(st.lists(PERIOD, max_size=12), st.lists(ASKED, min_size=1, max_size=8))
def test_a_union_covers_what_any_period_covers(
    rows: list[tuple[int, ...]], asked: list[tuple[int, ...]]
) -> None:
    union = Periods.union(*columns(rows))
    major, minor, moment, length = columns(asked)
    at = union.at(major, minor, moment)
    for row, (a, b, time, _) in zip(at.tolist(), asked, strict=True):
        covered = any(p[:2] == (a, b) and p[2] <= time < p[3] for p in rows)
        assert (row >= 0) == covered
        if covered:
            assert (union.major[row], union.minor[row]) == (a, b)
            assert union.begin[row] <= time < union.end[row]

    asker, found = union.meeting(major, minor, moment, moment + length)
    expected = [
        (index, row)
        for index, (a, b, begin, count) in enumerate(asked)
        for row in range(len(union))
        if (union.major[row], union.minor[row]) == (a, b)
        and union.begin[row] < begin + count
        and begin < union.end[row]
    ]
    met = list(zip(asker.tolist(), found.tolist(), strict=True))
    assert [pair for pair in met if asked[pair[0]][3] > 0] == [
        pair for pair in expected if asked[pair[0]][3] > 0
    ]


def test_periods_of_a_union_do_not_touch() -> None:
    union = Periods.union(*columns([(0, 0, 5, 7), (0, 0, 1, 3), (0, 0, 3, 4), (0, 1, 7, 9)]))
    assert union.begin.tolist() == [1, 5, 7]
    assert union.end.tolist() == [4, 7, 9]


def test_parts_are_what_a_period_shares_with_each_asker() -> None:
    known = Periods(ints(0, 0, 1), ints(0, 0, 0), ints(1, 5, 2), ints(3, 9, 4))
    asker, begin, end = known.parts(ints(0, 1, 2), ints(0, 0, 0), ints(2, 0, 0), ints(7, 3, 9))
    assert asker.tolist() == [0, 0, 1]
    assert begin.tolist() == [2, 5, 2]
    assert end.tolist() == [3, 7, 3]


def test_stretches_end_with_their_value_and_their_segment() -> None:
    segment, moment = ints(4, 4, 4, 4, 6, 6), ints(10, 11, 12, 13, 10, 11)
    made = Periods.of_stretches(bools("011110"), segment, moment)
    assert (made.major.tolist(), made.minor.tolist()) == ([4, 6], [0, 0])
    assert (made.begin.tolist(), made.end.tolist()) == ([11, 10], [14, 11])
    counts = Periods.of_stretches(ints(0, 2, 2, 3, 3, 0), segment, moment)
    assert (counts.begin.tolist(), counts.end.tolist()) == ([11, 13, 10], [13, 14, 11])


def test_a_key_that_stays_on_never_ends() -> None:
    row, end = on_periods((ints(0, 0, 0, 1, 1),), ints(2, 3, 5, 4, 6), bools("11001"))
    assert row.tolist() == [0, 4]
    assert end.tolist() == [5, NEVER]


def test_rows_are_covered_by_each_stretch_on_them() -> None:
    assert covered(ints(0, 1, 1), ints(2, 3, 1), 4).tolist() == [1, 2, 1, 0]
    assert covered(ints(), ints(), 2).tolist() == [0, 0]
