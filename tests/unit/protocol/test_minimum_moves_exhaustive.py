"""The minimum of moves against every balanced allocation, for every allocation before it."""

from itertools import product

import numpy as np
import pytest

from rebalance_core.protocol.routes import minimum_moves

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
