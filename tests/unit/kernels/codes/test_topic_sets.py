import numpy as np

from rebalance_core.kernels.codes import TopicSets
from rebalance_core.kernels.segments import pointers


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
