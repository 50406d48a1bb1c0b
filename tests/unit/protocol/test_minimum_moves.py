"""The minimum of moves against every balanced allocation, for every allocation before it."""

from itertools import product

import numpy as np
import pytest

from rebalance_core.protocol.minimum_moves import minimum_moves


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


UNOWNED, DEPARTED = -1, -2


def balanced_allocations(queues: int, members: int) -> list[tuple[int, ...]]:
    """All of them: the owner of each queue."""
    fewest, extra = divmod(queues, members)
    sizes = [fewest + 1] * extra + [fewest] * (members - extra)
    return [
        owners
        for owners in product(range(members), repeat=queues)
        if sorted(map(owners.count, range(members)), reverse=True) == sizes
    ]


@pytest.mark.parametrize("members", [1, 2, 3, 4])
@pytest.mark.parametrize("queues", range(7))
def test_the_formula_is_the_best_of_all_balanced_allocations(queues: int, members: int) -> None:
    holders = (UNOWNED, DEPARTED, *range(members))
    before = np.array(list(product(holders, repeat=queues)), np.int8)
    before = before.reshape(len(holders) ** queues, queues)
    most_kept = np.zeros(len(before), np.int64)
    for owners in balanced_allocations(queues, members):
        kept = (before == np.array(owners, np.int8)).sum(axis=1)
        np.maximum(most_kept, kept, out=most_kept)
    held = np.stack([(before == member).sum(axis=1) for member in range(members)], axis=1)
    for kept_counts, best in zip(held.tolist(), most_kept.tolist(), strict=True):
        assert minimum_moves(queues, members, kept_counts) == queues - best, kept_counts


def test_every_balanced_allocation_is_looked_at() -> None:
    # 6 queues on 4 members: C(4, 2) ways to choose who gets two, 6! / (2! 2!) to assign them
    assert len(balanced_allocations(6, 4)) == 6 * 180
