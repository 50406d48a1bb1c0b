"""What the first pull corrects, skips and reads again."""

import pytest

from tests.unit.replay.first_starts import FIRST, JOINED_MS, OLD, starts
from tests.unit.replay.histories import (
    commit,
    join,
    topic,
)


@pytest.mark.parametrize(
    ("stored", "corrected", "skipped"),
    [
        (None, None, 40),  # MAX_OFFSET 50 jumps over 10..49
        (4, 10, 0),  # below min -> min
        (60, 50, 0),  # above max -> max
        (30, None, 0),
    ],
)
def test_corrected_and_skipped(stored: int | None, corrected: int | None, skipped: int) -> None:
    commits = [] if stored is None else [commit("a0", 90_000, stored)]
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), offsets=OLD, commits=commits)
    assert (row["min_offset"], row["max_offset"]) == (10, 50)
    assert (row["corrected_offset"], row["skipped"]) == (corrected, skipped)


@pytest.mark.parametrize(
    ("seen_before", "corrected"),
    [
        (False, None),  # the queue has grown to what its reader committed
        (True, 50),  # it ended at 50 when 60 was committed already
    ],
)
def test_an_end_that_is_older_than_the_commit_moves_nothing(
    seen_before: bool, corrected: int | None
) -> None:
    commits = [commit("a0", 95_000, 60)] + [commit("a0", 80_000, 70)] * seen_before
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), offsets=OLD, commits=commits)
    assert (row["start_offset"], row["max_offset"], row["corrected_offset"]) == (60, 50, corrected)


def test_without_an_observation_nothing_is_corrected() -> None:
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), commits=[], consume_from_where=FIRST)
    assert (row["start_offset"], row["corrected_offset"], row["skipped"]) == (0, None, None)
