"""The lowest start of each owner before, passed on from owner to owner until a commit is known."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import NONE
from rebalance_core.kernels.stored_starts import BIGGEST, chain_lows
from tests.unit.kernels.hypothesis_settings import RANDOM

pytestmark = pytest.mark.unit

Rows = list[tuple[int, int, bool]]
"""Lowest start, lowest commit inside the window, chained."""


def chained(lanes: list[Rows]) -> list[int]:
    low, least, links = ([row[i] for rows in lanes for row in rows] for i in range(3))
    lane = [number for number, rows in enumerate(lanes) for _ in rows]
    return chain_lows(
        np.array(low, np.int64), np.array(least, np.int64), np.array(lane, np.int64),
        np.array(links, np.bool_),
    ).tolist()  # fmt: skip


def passed_on(rows: Rows) -> list[int]:
    """The same for one lane, one row after the other."""
    found, before = [], NONE
    for low, least, is_link in rows:
        found.append(before if is_link else NONE)
        if is_link:
            known = [value for value in (least, before) if NONE < value < BIGGEST]
            low = min(known, default=0)
        before = low
    return found


def test_a_start_is_passed_on_until_a_commit_is_known() -> None:
    known, unknown = (9, BIGGEST, False), (NONE, BIGGEST, True)
    assert chained([[known, unknown, unknown, known]]) == [NONE, 9, 9, NONE]


def test_a_lower_commit_inside_a_window_lowers_what_follows() -> None:
    rows: Rows = [(9, BIGGEST, False), (NONE, 4, True), (NONE, 6, True), (NONE, BIGGEST, True)]
    assert chained([rows]) == [NONE, 9, 4, 4]


def test_an_unknown_start_leaves_0_or_the_commit_in_the_window() -> None:
    assert chained([[(NONE, BIGGEST, False), (NONE, BIGGEST, True), (NONE, 7, True)]]) == [
        *(NONE, NONE, 0)
    ]
    assert chained([[(NONE, 3, True), (NONE, 7, True), (NONE, 1, True)]]) == [NONE, 3, 3]


def test_lanes_do_not_hear_of_each_other() -> None:
    rows: Rows = [(2, BIGGEST, False), (NONE, BIGGEST, True)]
    assert chained([rows, [(NONE, 5, True), (NONE, 8, True)], rows]) == [NONE, 2, NONE, 5, NONE, 2]


def test_no_rows() -> None:
    assert chained([]) == []


OFFSET = st.integers(0, 9)
FIRST = st.tuples(st.just(NONE) | OFFSET, st.just(BIGGEST), st.just(False))
LINK = st.tuples(st.just(NONE), st.just(BIGGEST) | OFFSET, st.just(True))
KNOWN = st.tuples(OFFSET, st.just(BIGGEST) | OFFSET, st.just(False))
# once a commit is known it stays known, so the links of a lane follow each other
LANE = st.builds(
    lambda first, links, known: first + links + known,
    st.lists(FIRST, max_size=1), st.lists(LINK, max_size=4), st.lists(KNOWN, max_size=2),
)  # fmt: skip


@RANDOM
@given(st.lists(LANE, max_size=5))
def test_chains_of_many_lanes_are_those_of_each(lanes: list[Rows]) -> None:
    assert chained(lanes) == [low for rows in lanes for low in passed_on(rows)]
