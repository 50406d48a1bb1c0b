"""Names and sets of topics as numbers."""

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.codes import encode, java_sorted, names_of
from rebalance_core.kernels.segments import pointers
from rebalance_core.kernels.table_columns import Columns, list_pointers
from rebalance_core.kernels.topic_sets import TopicSets
from rebalance_core.model.queue import java_string_key
from tests.unit.kernels.hypothesis_settings import RANDOM


def names(*texts: str | None) -> pa.StringArray:
    return pa.array(texts, pa.string())


@pytest.mark.parametrize(
    ("given_names", "expected"),
    [
        ((), ""),
        (("b", "a", "ab"), "a ab b"),
        # the first UTF-16 unit of U+1F600 is D83D, below E000-FFFF
        (("\uff5e", "😀", "z"), "z 😀 \uff5e"),
        (("\ue000", "\U00010000", "\ud7ff"), "\ud7ff \U00010000 \ue000"),
        (("a\uff5e", "a😀", "a"), "a a😀 a\uff5e"),
    ],
)
def test_names_sort_as_java_sorts_them(given_names: tuple[str, ...], expected: str) -> None:
    assert " ".join(java_sorted(names(*given_names)).to_pylist()) == expected


TEXT = st.text(st.sampled_from("ab\u00e9\ud7ff\ue000\uff5e\U00010000😀\U0010ffff"), max_size=3)


@RANDOM
@given(st.lists(st.lists(st.none() | TEXT, max_size=6), min_size=1, max_size=3))
def test_codes_compare_as_their_names_do_in_java(columns: list[list[str | None]]) -> None:
    distinct, codes = encode(*(names(*column) for column in columns))
    texts = {text for column in columns for text in column if text is not None}
    assert distinct.to_pylist() == sorted(texts, key=java_string_key)
    assert [names_of(distinct, column).to_pylist() for column in codes] == columns


def test_null_is_minus_1_and_the_empty_name_is_a_name() -> None:
    distinct, (codes,) = encode(names("b", None, "", "b"))
    assert distinct.to_pylist() == ["", "b"]
    assert codes.tolist() == [1, -1, 0, 1]


def test_columns_may_be_empty_in_chunks_or_dictionaries() -> None:
    chunked = pa.chunked_array([names("b"), names("a", None)])
    distinct, (empty, first, second) = encode(names(), chunked, names("c", "a").dictionary_encode())
    assert distinct.to_pylist() == ["a", "b", "c"]
    assert (empty.tolist(), first.tolist(), second.tolist()) == ([], [1, 0, -1], [2, 0])


def test_no_name_at_all() -> None:
    distinct, (codes,) = encode(names(None))
    assert (distinct.to_pylist(), codes.tolist()) == ([], [-1])
    assert names_of(distinct, codes).to_pylist() == [None]


def test_every_code_below_0_is_null() -> None:
    assert names_of(names("a", "b"), np.array([-2, 1, -1, 0])).to_pylist() == [None, "b", None, "a"]


TABLE = pa.table(
    {
        "text": names("", None, "PUSH"),
        "number": pa.array([5, None, -7], pa.int32()),
        "truth": [None, True, False],
        "lists": pa.array([["a", "b"], None, []], pa.list_(pa.string())),
    }
)


def test_columns_fill_what_is_null() -> None:
    columns = Columns(TABLE)
    assert columns.ints("number").tolist() == [5, -1, -7]
    assert columns.ints("number", null=1_000).tolist() == [5, 1_000, -7]
    assert columns.bools("truth", null=True).tolist() == [True, True, False]
    assert columns.bools("truth", null=False).tolist() == [False, True, False]
    assert columns.strings("text").to_pylist() == ["", None, "PUSH"]
    assert columns.given("text").to_pylist() == [None, None, "PUSH"]
    assert columns.equal("text", "PUSH").tolist() == [False, False, True]


def test_a_column_that_is_not_there_is_null_in_every_row() -> None:
    columns = Columns(TABLE)
    assert columns.ints("other", null=3).tolist() == [3] * 3
    assert columns.given("other").to_pylist() == [None] * 3
    assert columns.equal("other", "PUSH").tolist() == [False] * 3
    assert columns.lists("other").to_pylist() == [None] * 3


def test_a_null_list_takes_no_place() -> None:
    lists = Columns(TABLE).lists("lists")
    assert list_pointers(lists).tolist() == [0, 2, 2, 2]
    assert list_pointers(Columns(TABLE.slice(0, 0)).lists("lists")).tolist() == [0]


def numbered(sets: TopicSets, *rows: tuple[list[int], int]) -> list[int]:
    """The numbers of (topics, the one left out)."""
    topics = np.array([t for codes, _ in rows for t in codes], np.int64)
    bounds = pointers(np.array([len(codes) for codes, _ in rows], np.int64))
    return sets.numbers(topics, bounds, np.array([out for _, out in rows], np.int64)).tolist()


def test_equal_sets_have_one_number_whatever_their_order() -> None:
    sets = TopicSets()
    first, second = sets.number([3, 1]), sets.number([1])
    assert first != second
    assert sets.number([1, 3, 1]) == first
    assert (sets.topics(first), sets.topics(second)) == ((1, 3), (1,))


def test_many_sets_at_once_are_numbered_as_one_by_one() -> None:
    sets = TopicSets()
    found = numbered(sets, ([5, 2], -1), ([], -1), ([2, 5], -1), ([2, 5, 2], -1))
    both, none = sets.number([2, 5]), sets.number([])
    assert found == [both, none, both, both]
    assert [sets.topics(n) for n in (both, none)] == [(2, 5), ()]


def test_the_topic_left_out_is_in_no_set() -> None:
    sets = TopicSets()
    # the same codes with and without a topic that does not count, one after the other
    found = numbered(sets, ([2, 5], 5), ([2, 5], 9), ([2, 5], 5), ([5], 5), ([], 5))
    assert [sets.topics(number) for number in found] == [(2,), (2, 5), (2,), (), ()]


def test_members_of_many_rows() -> None:
    sets = TopicSets()
    both, none, one = sets.number([4, 1]), sets.number([]), sets.number([7])
    rows, topics = sets.members(np.array([one, none, both, one]))
    assert rows.tolist() == [0, 2, 2, 3]
    assert topics.tolist() == [7, 1, 4, 7]


def test_members_of_no_rows() -> None:
    rows, topics = TopicSets().members(np.zeros(0, np.int64))
    assert (rows.tolist(), topics.tolist()) == ([], [])
