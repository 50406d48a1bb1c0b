"""Timelines with gaps, held against a value for each moment."""

import random

import pytest

from rebalance_core.model.timeline import EVER_MS, Timeline, Unknown

LOST, CUT = (
    Unknown("NOT_COVERED", "a", "lost", "copy a"),
    Unknown("LOG_ENDED", "b", "cut", "copy b"),
)
VALUES = ("x", "y", LOST, CUT)
MOMENTS = range(-2, 43)

Value = str | Unknown


def drawn(rng: random.Random) -> tuple[Timeline[str], list[Value]]:
    """A timeline, and its value at each of `MOMENTS`."""
    first = rng.choice(VALUES)
    timeline, values = Timeline[str].always(first), [first for _ in MOMENTS]
    for _ in range(rng.randrange(6)):
        begin, end, value = rng.randrange(40), rng.randrange(42), rng.choice(VALUES)
        timeline = timeline.put(begin, end, value)
        values = [
            value if begin <= at < end else old for at, old in zip(MOMENTS, values, strict=True)
        ]
    return timeline, values


@pytest.mark.parametrize("seed", range(200))
def test_a_timeline_has_a_value_at_each_moment(seed: int) -> None:
    rng = random.Random(seed)
    timeline, values = drawn(rng)
    assert [timeline.at(at) for at in MOMENTS] == values
    assert timeline.intervals[0].from_ms == -EVER_MS
    assert timeline.intervals[-1].to_ms == EVER_MS
    for one, other in zip(timeline.intervals, timeline.intervals[1:], strict=False):
        assert one.to_ms == other.from_ms
        assert one.value != other.value
    begin, end = sorted(rng.choices(MOMENTS, k=2))
    seen = values[MOMENTS.index(begin) : MOMENTS.index(end) + 1]
    gaps = (value for value in seen if isinstance(value, Unknown))
    assert timeline.gap(begin, end) == next(gaps, None)


@pytest.mark.parametrize("seed", range(100))
def test_another_timeline_fills_the_gaps(seed: int) -> None:
    rng = random.Random(seed)
    (one, values), (other, others) = drawn(rng), drawn(rng)
    filled = one.refined(other)
    for at, mine, its in zip(MOMENTS, values, others, strict=True):
        taken = isinstance(mine, Unknown) and isinstance(its, str)
        assert filled.at(at) == (its if taken else mine)


@pytest.mark.parametrize("seed", range(200))
def test_a_state_is_known_in_a_stretch_that_shows_it_once(seed: int) -> None:
    rng = random.Random(seed)
    changes, values = drawn(rng)
    shown = rng.choices(range(42), k=rng.randrange(3))
    state = changes.proven(shown)
    for at, value in zip(MOMENTS, values, strict=True):
        begin = end = at
        while begin > -2 and changes.gap(begin - 1, at) is None:
            begin -= 1
        while end < 42 and changes.gap(at, end + 1) is None:
            end += 1
        since_ever = changes.gap(-EVER_MS, at) is None
        if isinstance(value, str) and (since_ever or any(begin <= ms <= end for ms in shown)):
            assert state.at(at) == value
        else:
            assert isinstance(state.at(at), Unknown)


def test_a_log_that_begins_late_hides_what_was_before_its_first_proof_alone() -> None:
    late = Timeline[str].always("x").put(-EVER_MS, 10, LOST)
    assert late.proven([]).gap(0, 50) == LOST
    assert late.proven([30]).gap(10, 50) is None
    assert late.proven([30]).gap(9, 50) == LOST
