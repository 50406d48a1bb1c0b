"""What is left of periods; and who reaches which queue, in cases that random fleets seldom make."""

import numpy as np
import pytest

from rebalance_core.kernels.ownership.client_reach import without
from rebalance_core.kernels.periods import Periods
from rebalance_core.model.events import Event
from tests.unit.kernels.fleets import assert_equal, kernel_tables, replay_rows
from tests.unit.replay.histories import event, history, join, leave, reaches, topic


def periods(*rows: tuple[int, int, int, int]) -> Periods:
    return Periods(*np.array(rows, np.int64).reshape(-1, 4).T)


@pytest.mark.parametrize(
    ("others", "left"),
    [
        ((), [(0, 2, 9), (1, 0, 5)]),
        (((7, 1, 0, 20),), [(1, 0, 5)]),
        (((7, 1, 3, 4), (7, 1, 6, 7)), [(0, 2, 3), (0, 4, 6), (0, 7, 9), (1, 0, 5)]),
        (((7, 1, 0, 3), (7, 1, 8, 12)), [(0, 3, 8), (1, 0, 5)]),
        (((7, 2, 0, 9), (8, 1, 4, 9)), [(0, 2, 9), (1, 0, 4)]),
    ],
)
def test_what_is_left(
    others: tuple[tuple[int, int, int, int], ...], left: list[tuple[int, int, int]]
) -> None:
    """Row 0 is about major 7, row 1 about major 8, both about minor 1."""
    given = periods((0, 1, 2, 9), (1, 1, 0, 5))
    found = without(given, np.array([7, 8]), periods(*others))
    assert list(zip(*(column.tolist() for column in found), strict=True)) == left


def pop(at_ms: int, share: int) -> Event:
    return event(at_ms, "REQUEST_MODE", topic="T", detail=f"POP(share_queue_num={share})")


TWELVE = [join(0, f"c{number:02}", channel_id="1") for number in range(12)]


@pytest.mark.parametrize("share", range(-1, 13))
@pytest.mark.parametrize("queues", [1, 5, 12, 30])
def test_every_share_of_twelve_with_and_without_a_twin(share: int, queues: int) -> None:
    given = history(
        topic(0, queues),
        topic(0, 2, broker="b"),
        pop(0, share),
        *TWELVE,
        join(9_000, "c04", channel_id="2"),
        leave(20_000, "c11", channel_id="1"),
        event(30_000, "BROKER_DOWN", broker_name="b"),
        rebalance_mode="BROKER",
    )
    kernels, reasons = kernel_tables([given])
    assert set(reasons.values()) == {"REGULAR"}
    assert_equal(kernels, replay_rows([given]))
    everything = share <= 0 or share >= 11
    assert (reaches(kernels, 0)["c00"] == "a* b*") == everything
