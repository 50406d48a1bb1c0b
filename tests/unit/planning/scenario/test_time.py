from datetime import UTC, datetime

import pytest

from rebalance_core.model.times import read_instant
from rebalance_core.planning.scenario.keys import read_duration, read_moment


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


def test_an_instant_in_seconds_is_told() -> None:
    for value in (1795231709, "1795231709"):
        with pytest.raises(ValueError, match="in seconds; expected epoch milliseconds"):
            read_instant(value)
        with pytest.raises(ValueError, match="in seconds"):
            read_moment(value)


@pytest.mark.parametrize(("text", "ms"), [("end", 10_001), ("+1s", 11_000), ("-1s", 9_000), (7, 7)])
def test_moments(text: object, ms: int) -> None:
    assert read_moment(text).at(10_000) == ms


@pytest.mark.parametrize("value", ["noon", "+noon", 5.0, True, None, "2026-11-21"])
def test_what_is_no_moment(value: object) -> None:
    with pytest.raises(ValueError, match=r"expected|time zone"):
        read_moment(value)
