"""Lowest starts of shared queues: rows of a step bound the next, and so does who stays."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.kernels.segments import NONE
from rebalance_core.kernels.starts.shared_handovers import chained_lows
from rebalance_core.kernels.starts.stored_starts import BIGGEST
from tests.unit.kernels.hypothesis_settings import RANDOM

ROW = st.tuples(
    st.sampled_from((NONE, 0, 3, 5, 9, BIGGEST)),
    st.sampled_from((0, 4, 8, BIGGEST, BIGGEST)),
    st.booleans(),
).filter(lambda row: row[2] or row[0] != BIGGEST)
STEP = st.tuples(st.booleans(), st.lists(ROW, min_size=1, max_size=3))
QUEUES = st.lists(st.lists(STEP, min_size=1, max_size=7), min_size=1, max_size=4)
Step = tuple[bool, list[tuple[int, int, bool]]]


def plain(steps: list[Step]) -> list[int]:
    """Walk one queue as `replay.pull_starts.PullStarts._of_queue` does."""
    before: list[int] = []
    past: int | None = None
    for stays, rows in steps:
        lows: list[int | None] = [past] if stays else []
        for low, sent_back, chained in rows:
            before.append(NONE if past is None else past)
            own = None if low == NONE else low
            if chained:
                own = min(past or 0, low) if low != NONE else 0
            lows.append(None if own is None else min(own, sent_back))
        past = None if None in lows else min(low for low in lows if low is not None)
    return before


@RANDOM
@given(QUEUES)
def test_lows_are_those_of_the_replay(queues: list[list[Step]]) -> None:
    rows = [
        (number, queue, low if low != NONE or not chained else 0, back, chained, stays)
        for queue, steps in enumerate(queues)
        for number, (stays, of_step) in enumerate(steps, 10 * queue)
        for low, back, chained in of_step
    ]
    step, queue, low, back, chained, stays = (
        np.array(column) for column in zip(*rows, strict=True)
    )
    expected = [value for steps in queues for value in plain(steps)]
    assert chained_lows(step, queue, low, back, chained, stays).tolist() == expected
