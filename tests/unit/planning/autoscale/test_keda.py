"""KEDA: rest and waking, activation, cooldown, minimum and maximum, fallback."""

from dataclasses import replace

import numpy as np

from rebalance_core.planning.autoscale.hpa import Reading
from rebalance_core.planning.autoscale.keda import KedaScaler
from rebalance_core.planning.autoscale.policy import (
    DOWN_LIMITS,
    KEDA,
    UP_LIMITS,
    Direction,
    Keda,
    Policy,
    Target,
)

SCALED = Policy(
    "keda",
    KEDA,
    least=0,
    most=100,
    lag=Target(100.0),
    up=Direction(limits=UP_LIMITS),
    down=Direction(0, limits=DOWN_LIMITS),
    keda=Keda(cooldown_s=60),
)


def walk(policy: Policy, begin: int, values: list[float | None]) -> list[int]:
    scaler, current = KedaScaler(policy, 1), np.array([begin])
    replicas = []
    for number, value in enumerate(values):
        read = Reading(None if value is None else np.array([value]), 100.0)
        current = scaler.decide(15 * number, current, [read])
        replicas.append(int(current[0]))
    return replicas


def test_it_wakes_at_a_poll_and_the_hpa_goes_on() -> None:
    # polls are every 30 s, decisions of the HPA every 15
    assert walk(SCALED, 0, [0.0, 800.0, 800.0, 800.0]) == [0, 0, 5, 8]


def test_it_wakes_to_the_minimum() -> None:
    least = replace(SCALED, least=4, most=4)
    assert walk(least, 0, [50.0]) == [4]
    assert walk(least, 0, [0.0]) == [4]  # also without activity


def test_it_rests_after_the_cooldown_alone() -> None:
    # active until 30 s; 60 s later it is not yet over, at the next poll it is
    assert walk(SCALED, 3, [300.0, 300.0, 50.0, *[0.0] * 6]) == [3, 3, 1, 1, 1, 1, 1, 1, 0]


def test_what_is_not_above_the_activation_does_not_wake() -> None:
    keda = replace(SCALED, keda=Keda(cooldown_s=60, activation=5.0))
    assert walk(keda, 0, [5.0, 5.0, 5.0, 5.0]) == [0] * 4
    assert walk(keda, 0, [6.0]) == [1]


def test_a_minimum_never_rests() -> None:
    assert walk(replace(SCALED, least=2), 2, [0.0] * 40) == [2] * 40


def test_a_fallback_after_more_failures_than_the_threshold() -> None:
    falling = replace(SCALED, least=1, keda=Keda(failure_threshold=3, fallback=6))
    assert walk(falling, 2, [200.0, *[None] * 5, 300.0]) == [2, 2, 2, 2, 6, 6, 3]
    assert walk(replace(SCALED, least=1), 2, [200.0, *[None] * 6]) == [2] * 7
