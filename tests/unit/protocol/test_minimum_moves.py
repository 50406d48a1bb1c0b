"""The minimum of moves against every balanced allocation there is."""

from itertools import product

import pytest

from rebalance_core.protocol.routes import minimum_moves


def brute_force(before: tuple[int | None, ...], members: int) -> int:
    """Fewest queues with a new holder over all allocations whose sizes differ by at most one."""
    fewest = len(before)
    for after in product(range(members), repeat=len(before)):
        sizes = [after.count(member) for member in range(members)]
        if max(sizes) - min(sizes) <= 1:
            fewest = min(fewest, sum(a != b for a, b in zip(after, before, strict=True)))
    return fewest


@pytest.mark.parametrize("members", [1, 2, 3])
@pytest.mark.parametrize("queues", [0, 1, 2, 4, 5])
def test_no_balanced_allocation_moves_less(queues: int, members: int) -> None:
    # None: a queue that is new or was the departed member's.
    for before in product([None, *range(members)], repeat=queues):
        kept = [before.count(member) for member in range(members)]
        assert minimum_moves(queues, members, kept) == brute_force(before, members), before


def test_members_that_held_nothing_may_be_left_out() -> None:
    assert minimum_moves(8, 3, [4, 4]) == minimum_moves(8, 3, [4, 0, 4]) == 2


def test_shared_queues_never_make_it_negative() -> None:
    assert minimum_moves(2, 2, [2, 2]) == 0
    assert minimum_moves(3, 2, [3, 3]) == 0
