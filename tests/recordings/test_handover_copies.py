"""The shares of hand-overs with a message more, beside what was measured."""

import numpy as np
import pytest

from rebalance_core.timing.messages import ONE_MORE, ONE_MORE_ORDERLY
from tests.recordings.rollouts.copies import GAPS_MS, LEAVES, OVERLAP, STAYS, HandOver, of_kinds

pytestmark = pytest.mark.conformance

CONCURRENT, ORDERLY = "orders-fast", "orders-ordered"
SEEN = {
    f"{STAYS}, {OVERLAP}": (29, 26),
    f"{STAYS}, < 50 ms": (82, 39),
    f"{STAYS}, < 300 ms": (21, 7),
    f"{STAYS}, < 1000 ms": (56, 4),
}
"""By kind: hand-overs of the concurrent group, and how many had a message read again."""


def is_near(share: float, hand_overs: list[HandOver]) -> bool:
    """Within two standard errors of the copies beyond those of an overlap and in work."""
    beyond = np.array([one.beyond for one in hand_overs])
    return bool(abs(beyond.mean() - share) <= 2 * beyond.std() / np.sqrt(len(beyond)))


def test_of_members_of_a_concurrent_group_that_stay() -> None:
    kinds = of_kinds(CONCURRENT)
    assert {
        kind: (len(kinds[kind]), sum(x.copies > 0 for x in kinds[kind])) for kind in SEEN
    } == SEEN
    assert [limit for limit, _ in ONE_MORE] == [1, *GAPS_MS]
    for kind, (_, share) in zip(SEEN, ONE_MORE, strict=True):
        assert is_near(share, kinds[kind]), kind


def test_of_members_of_an_orderly_group_that_stay() -> None:
    stay = [
        x for kind, members in of_kinds(ORDERLY).items() if kind.startswith(STAYS) for x in members
    ]
    assert (len(stay), sum(one.copies for one in stay)) == (223, 21)
    assert is_near(ONE_MORE_ORDERLY, stay)


@pytest.mark.parametrize(("group", "seen"), [(CONCURRENT, (65, 5)), (ORDERLY, (63, 1))])
def test_members_that_leave_gracefully_leave_none_but_what_is_in_work(
    group: str, seen: tuple[int, int]
) -> None:
    leave = of_kinds(group)[LEAVES]
    assert (len(leave), sum(one.copies > 0 for one in leave)) == seen
    assert is_near(0.0, leave)
