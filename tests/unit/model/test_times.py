"""Durations and instants as people write them; times in text, beyond the calendar too."""

from datetime import UTC, datetime

import pytest

from rebalance_core.model.times import read_duration, read_instant, utc, utc_ms, utc_time


@pytest.mark.parametrize(
    ("text", "ms"),
    [("5m", 300_000), ("90s", 90_000), ("1h30m", 5_400_000), ("250ms", 250), ("2d", 172_800_000)],
)
def test_durations(text: str, ms: int) -> None:
    assert read_duration(text) == ms


@pytest.mark.parametrize("value", ["", "5", 5, "5 parsecs", "-5m", "m", None])
def test_what_is_no_duration(value: object) -> None:
    with pytest.raises(ValueError, match="expected a duration such as"):
        read_duration(value)


@pytest.mark.parametrize(
    "value",
    [1795231709901, "1795231709901", "2026-11-21T03:28:29.901Z", "2026-11-21T11:28:29.901+08:00",
     datetime(2026, 11, 21, 3, 28, 29, 901_000, UTC)],
)  # fmt: skip
def test_instants(value: object) -> None:
    assert read_instant(value) == 1795231709901


def test_an_instant_in_seconds_is_reported() -> None:
    for value in (1795231709, "1795231709"):
        with pytest.raises(ValueError, match="in seconds; expected epoch milliseconds"):
            read_instant(value)


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
