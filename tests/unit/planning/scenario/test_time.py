import pytest

from rebalance_core.planning.scenario.edit import read_moment


@pytest.mark.parametrize(("text", "ms"), [("end", 10_001), ("+1s", 11_000), ("-1s", 9_000), (7, 7)])
def test_moments(text: object, ms: int) -> None:
    assert read_moment(text).at(10_000) == ms


@pytest.mark.parametrize("value", ["noon", "+noon", 5.0, True, None, "2026-11-21"])
def test_what_is_no_moment(value: object) -> None:
    with pytest.raises(ValueError, match=r"expected|time zone"):
        read_moment(value)


@pytest.mark.parametrize("value", [1795231709, "1795231709"])
def test_a_moment_in_seconds_is_told(value: object) -> None:
    with pytest.raises(ValueError, match="in seconds"):
        read_moment(value)
