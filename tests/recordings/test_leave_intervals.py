"""The constants of leaves that meet, beside the intervals that were measured."""

from statistics import median

import numpy as np
import pytest

from rebalance_core.timing.delay import Delay
from rebalance_core.timing.delays import (
    LEAVE_BEGIN_TOGETHER,
    NOTICE,
    NOTICE_TOGETHER,
    UNLOCK_TOGETHER,
)
from tests.recordings.rollouts.intervals import TOGETHER, Stop, stops

SAMPLED_MS = 20
"""The recorder read the tables so often."""
FIVE = [run for run, others in TOGETHER.items() if others == 5]


@pytest.fixture(scope="module")
def of_six() -> list[Stop]:
    """Members that left with five others."""
    return [stop for run in FIVE for stop in stops(run)]


def share_ms(delay: Delay, share: float, others: int = 1) -> float:
    """A quantile of a delay, ms, times the others that leave."""
    draw = np.array([min(int(share * 2**32), 2**32 - 1)], np.uint64)
    return others * float(delay.many(draw)[0]) / 1_000


def test_unlock_all_comes_as_late_as_it_was_seen(of_six: list[Stop]) -> None:
    seen = [stop.unlocked_ms for stop in of_six if stop.unlocked_ms is not None]
    assert (len(seen), min(seen), median(seen), max(seen)) == (18, 21, 82.5, 183)
    assert share_ms(UNLOCK_TOGETHER, 0, 5) - SAMPLED_MS <= min(seen)
    assert max(seen) <= share_ms(UNLOCK_TOGETHER, 1, 5) + SAMPLED_MS
    low, high = (share_ms(UNLOCK_TOGETHER, share, 5) for share in (0.4, 0.6))
    assert low <= median(seen) <= high


def test_passes_go_on_after_it_as_long_as_was_seen(of_six: list[Stop]) -> None:
    after = sorted(
        ms - stop.unlocked_ms
        for stop in of_six
        for ms in stop.locked_ms
        if stop.unlocked_ms is not None
    )
    assert after == [24, 26, 50, 50, 95, 998, 998]  # the last two of one member
    late = [ms for ms in after if ms <= 95]
    # an interval is at least as long as from unlockAll to the lock
    assert max(late) <= share_ms(LEAVE_BEGIN_TOGETHER, 0.97, 5)
    assert max(after) <= share_ms(LEAVE_BEGIN_TOGETHER, 1, 5) + SAMPLED_MS
    lasts = np.mean([share_ms(LEAVE_BEGIN_TOGETHER, n / 1_000, 5) >= min(late) for n in range(999)])
    locked = sum(bool(stop.locked_ms) for stop in of_six)
    assert locked == 5
    assert lasts >= locked / len(of_six)


def test_notices_wake_such_members_as_late_as_was_seen(of_six: list[Stop]) -> None:
    free = sorted(ms for stop in of_six for ms in stop.free_ms)
    assert free == [50, 98, 98, 122, 143, 998, 998]
    # free since the unlockAll of whoever had it: its interval, the notice, a pass
    longest = share_ms(NOTICE, 1) + share_ms(NOTICE_TOGETHER, 1)
    assert free[4] <= share_ms(LEAVE_BEGIN_TOGETHER, 0.97, 5) + longest
    middle = share_ms(LEAVE_BEGIN_TOGETHER, 0.5, 5) + share_ms(NOTICE_TOGETHER, 0.5)
    assert free[0] <= middle <= free[4]


def test_three_on_a_host_that_stood_still_are_outside() -> None:
    seen = sorted(stop.unlocked_ms or 0 for stop in stops("r1-P3-1"))
    longest = share_ms(UNLOCK_TOGETHER, 1, TOGETHER["r1-P3-1"]) + SAMPLED_MS
    assert [ms for ms in seen if ms > longest] == [126, 131, 136]
