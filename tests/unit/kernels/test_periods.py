"""Periods by key, against a plain search."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import Periods
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
