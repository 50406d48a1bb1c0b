"""Shares and quantiles of slow answers."""

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rebalance_core.producers.draws import draw
from rebalance_core.producers.latencies import (
    FixedLatency,
    Latency,
    LognormalLatency,
    UniformLatency,
)
from rebalance_core.producers.phases import NEVER, Behaviour

OPEN = st.floats(0, 1, exclude_min=True, exclude_max=True)


@pytest.mark.parametrize(
    ("latency", "share"),
    [
        (FixedLatency(549), 0),
        (FixedLatency(550), 1),
        (UniformLatency(100, 500), 0),
        (UniformLatency(450, 650), 0.5),
        (UniformLatency(600, 700), 1),
        (LognormalLatency(550, 5000), 0.5),
        (LognormalLatency(55, 550), 0.01),
    ],
)
def test_the_share_of_slow_answers(latency: Latency, share: float) -> None:
    assert latency.slow_share == pytest.approx(share)


@given(OPEN)
def test_slow_answers_are_slow(u: float) -> None:
    for latency in (UniformLatency(450, 650), LognormalLatency(3, 30), LognormalLatency(900, 2000)):
        assert latency.slow_ms(u) >= 550


def test_the_tail_has_the_quantiles_of_the_distribution() -> None:
    latency = LognormalLatency(55, 550)
    sigma = math.log(10) / 2.3263478740408408
    # half of the slowest percent lies above the quantile 0.995 of the whole
    assert latency.slow_ms(0.5) == math.floor(55 * math.exp(sigma * 2.5758293035489004))


@given(OPEN)
def test_gaps_are_geometric(u: float) -> None:
    behaviour = Behaviour(FixedLatency(3), errors=0.25)
    gap = behaviour.gap(u)
    assert 0.75 ** (gap + 1) <= u * (1 + 1e-9)
    assert u <= 0.75**gap * (1 + 1e-9)
    assert Behaviour(FixedLatency(3)).gap(u) == NEVER
    assert Behaviour(FixedLatency(600)).gap(u) == 0


def test_draws_of_different_events_differ() -> None:
    drawn = {draw(0, a, b) for a in "xyz" for b in range(1000)}
    assert len(drawn) == 3000
    assert all(0 < one < 1 for one in drawn)
    assert abs(sum(drawn) / 3000 - 0.5) < 0.02
    assert draw(0, "a", 12) != draw(0, "a1", 2)
