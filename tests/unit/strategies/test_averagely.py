from itertools import chain

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.strategies.averagely import average_slice


@pytest.mark.parametrize(
    ("queues", "sizes"),
    [
        (1, [1]),
        (1, [1, 0, 0]),
        (3, [1, 1, 1]),
        (5, [2, 2, 1]),
        (7, [3, 2, 2]),
        (16, [4, 3, 3, 3, 3]),
        (4, [1, 1, 1, 1, 0, 0, 0]),
    ],
)
def test_sizes(queues: int, sizes: list[int]) -> None:
    slices = [average_slice(i, queues, len(sizes)) for i in range(len(sizes))]
    assert [len(range(queues)[s]) for s in slices] == sizes


@given(st.integers(1, 300), st.integers(1, 60))
def test_slices_tile_the_queues_and_differ_by_at_most_one(queues: int, members: int) -> None:
    shares = [list(range(queues))[average_slice(i, queues, members)] for i in range(members)]
    sizes = [len(share) for share in shares]
    assert list(chain.from_iterable(shares)) == list(range(queues))
    assert max(sizes) - min(sizes) <= 1
    assert sizes == sorted(sizes, reverse=True)


def test_no_slice_reaches_past_the_queues() -> None:
    assert average_slice(4, 3, 5) == slice(7, 7)
