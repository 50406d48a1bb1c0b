"""The lowest start passes from owner to owner until a commit is known."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import NONE
from rebalance_core.kernels.starts.stored_starts import BIGGEST, chain_lows
from tests.unit.kernels.hypothesis_settings import RANDOM

Rows = list[tuple[int, int, bool]]
"""Lowest start by itself, where the first pull is sent, chained."""


def chained(lanes: list[Rows]) -> list[int]:
    low, back, links = ([row[i] for rows in lanes for row in rows] for i in range(3))
    lane = [number for number, rows in enumerate(lanes) for _ in rows]
    return chain_lows(
        np.array(low, np.int64),
        np.array(back, np.int64),
        np.array(lane, np.int64),
        np.array(links, np.bool_),
    ).tolist()


def passed_on(rows: Rows) -> list[int]:
    """The same for one lane, one row after the other."""
    found, before = [], NONE
    for low, back, is_link in rows:
        found.append(before if is_link else NONE)
        if is_link:
            low = min(low, max(before, 0))
        before = min(low, back)
    return found


NOWHERE = BIGGEST


def test_a_start_is_passed_on_until_a_commit_is_known() -> None:
    known, link = (9, NOWHERE, False), (BIGGEST, NOWHERE, True)
    assert chained([[known, link, link, known, link]]) == [NONE, 9, 9, NONE, 9]


def test_a_lower_commit_lowers_what_follows() -> None:
    rows: Rows = [(9, NOWHERE, False), (4, NOWHERE, True), (6, NOWHERE, True), (7, NOWHERE, True)]
    assert chained([rows]) == [NONE, 9, 4, 4]


def test_who_is_sent_back_lowers_what_follows() -> None:
    rows: Rows = [(9, 5, False), (BIGGEST, 2, True), (BIGGEST, NOWHERE, True)]
    assert chained([rows]) == [NONE, 5, 2]


def test_an_unknown_start_counts_as_0_for_all_but_the_next() -> None:
    link = (BIGGEST, NOWHERE, True)
    assert chained([[(NONE, NOWHERE, False), link, link]]) == [NONE, NONE, 0]
    assert chained([[(7, NOWHERE, True), link]]) == [NONE, 0]


def test_lanes_do_not_hear_of_each_other() -> None:
    rows: Rows = [(2, NOWHERE, False), (BIGGEST, NOWHERE, True)]
    link = (BIGGEST, NOWHERE, True)
    assert chained([rows, [link, link], rows]) == [NONE, 2, NONE, 0, NONE, 2]


def test_no_rows() -> None:
    assert chained([]) == []


OFFSET = st.integers(0, 9) | st.sampled_from((2**62, 2**63 - 1))
BACK = st.just(NOWHERE) | OFFSET
FREE = st.tuples(st.just(NONE) | OFFSET, BACK, st.just(False))
LINK = st.tuples(st.just(BIGGEST) | OFFSET, BACK, st.just(True))


@RANDOM
@given(st.lists(st.lists(st.one_of(FREE, LINK, LINK), max_size=7), max_size=5))
def test_chains_of_many_lanes_are_those_of_each(lanes: list[Rows]) -> None:
    assert chained(lanes) == [low for rows in lanes for low in passed_on(rows)]
