from bisect import bisect_left, bisect_right

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import bisect, pointers
from rebalance_core.kernels.starts.lookups import pick
from tests.unit.kernels.hypothesis_settings import RANDOM

SEGMENTS = st.lists(st.lists(st.integers(0, 9), max_size=6).map(sorted), min_size=1, max_size=4)


@RANDOM
@given(SEGMENTS, st.data())
def test_bisect_of_many_is_that_of_each(segments: list[list[int]], data: st.DataObject) -> None:
    asked = data.draw(st.lists(st.tuples(st.integers(0, len(segments) - 1), st.integers(-1, 10))))
    values = np.array([value for s in segments for value in s], np.int64)
    bounds = pointers(np.array([len(s) for s in segments], np.int64))
    of = np.array([segment for segment, _ in asked], np.int64)
    wanted = np.array([value for _, value in asked], np.int64)
    for right, plain in ((False, bisect_left), (True, bisect_right)):
        found = bisect(values, bounds[:-1][of], bounds[1:][of], wanted, right=right)
        expected = [plain(segments[segment], value) for segment, value in asked]
        assert (found - bounds[:-1][of]).tolist() == expected


def test_bisect_changes_none_of_its_arguments() -> None:
    low, high = np.array([0]), np.array([3])
    assert bisect(np.array([1, 2, 3]), low, high, np.array([2]), right=True).tolist() == [2]
    assert (low.tolist(), high.tolist()) == ([0], [3])


def test_pick_has_nothing_where_there_is_no_row() -> None:
    assert pick(np.array([7, 8]), np.array([1, -1, 0])).tolist() == [8, -1, 7]
    assert pick(np.zeros(0, np.int64), np.array([-1])).tolist() == [-1]
