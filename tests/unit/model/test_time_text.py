"""Times in text, inside the calendar and beyond it."""

import pytest

from rebalance_core.model.times import utc, utc_ms, utc_time


def test_a_time_is_cut_to_the_second() -> None:
    assert utc(1_795_231_709_999) == "2026-11-21 03:28:29Z"
    assert utc_ms(1_795_231_709_009) == "2026-11-21 03:28:29.009Z"


def test_before_1970_seconds_are_cut_downwards() -> None:
    assert utc_ms(-1) == "1969-12-31 23:59:59.999Z"


@pytest.mark.parametrize("time_ms", [10**18, -(10**18)])
def test_a_time_beyond_the_calendar_is_a_number(time_ms: int) -> None:
    assert utc_time(time_ms) is None
    assert utc(time_ms) == f"{time_ms} ms"
    assert utc_ms(time_ms) == f"{time_ms} ms"
