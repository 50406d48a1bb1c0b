"""`pull_starts` of queues whose offsets no file shows."""

from typing import Any

import pytest

from tests.unit.replay.first_starts import (
    first_start,
)
from tests.unit.replay.histories import (
    seen,
)


@pytest.mark.parametrize("version", ["4.9", "5.1.0", "5.3"])
def test_residency_that_is_not_known_leaves_both_answers(version: str) -> None:
    def start(cached: bool | None, last: bool | None) -> tuple[Any, ...]:
        rows = [seen("a0", 90_000, 0, 50, cached), seen("a0", 200_000, 0, 90, last)]
        return first_start(offsets=rows, broker_version=version)

    assert start(None, None) == ("BROKER_ZERO", 0, 0, 90, "OK")
    assert start(True, True) == ("BROKER_ZERO", 0, 0, 0, "OK")
    assert start(True, False) == ("BROKER_ZERO", 0, 0, 90, "OK")
    assert start(False, True) == ("MAX_OFFSET", 50, 0, 90, "OK")
    assert start(False, False) == ("MAX_OFFSET", 50, 50, 90, "OK")


def test_another_minimum_after_the_window_leaves_both_answers() -> None:
    rows = [seen("a0", 90_000, 0, 50, True), seen("a0", 200_000, 3, 90, True)]
    assert first_start(offsets=rows) == ("BROKER_ZERO", 0, 0, 90, "OK")
    assert first_start(offsets=rows[:1]) == ("BROKER_ZERO", 0, 0, None, "OK")  # no later look
