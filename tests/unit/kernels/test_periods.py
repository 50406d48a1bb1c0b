"""Periods by key, against a plain search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.periods import Periods
from rebalance_core.kernels.segments import NEVER, covered, on_periods
from tests.unit.kernels.arrays import bools, ints
from tests.unit.kernels.hypothesis_settings import RANDOM

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
