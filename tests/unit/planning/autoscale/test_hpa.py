"""The HPA against Kubernetes' documented examples, and the corners of its windows."""

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from rebalance_core.planning.autoscale.hpa import HorizontalPodAutoscaler, Reading, proposals
from rebalance_core.planning.autoscale.policy import (
    DISABLED,
    DOWN_LIMITS,
    MAX,
    MIN,
    PERCENT,
    PODS,
    UP_LIMITS,
    Direction,
    Policy,
    StepLimit,
    Target,
)

DEFAULT = Policy("hpa", least=1, most=100, lag=Target(100.0))
BEHAVIOR = replace(DEFAULT, up=Direction(limits=UP_LIMITS), down=Direction(limits=DOWN_LIMITS))


def behavior(up: Direction | None = None, down: Direction | None = None) -> Policy:
    return replace(BEHAVIOR, up=up or BEHAVIOR.up, down=down or BEHAVIOR.down, most=10_000)


def walk(policy: Policy, begin: int, values: Sequence[float | None], step_s: int = 15) -> list[int]:
    """The replicas after each decision, for these values of a metric with a target of 100."""
    hpa, current = HorizontalPodAutoscaler([policy], 1), np.array([begin])
    replicas = []
    for number, value in enumerate(values):
        read = Reading(None if value is None else np.array([value]), 100.0)
        current = hpa.decide(number * step_s, current, [read])
        replicas.append(int(current[0]))
    return replicas


@pytest.mark.parametrize(
    ("value", "current", "asked"),
    [
        (400.0, 2, 4),  # "if the current metric value is 200m and the desired 100m": doubled
        (100.0, 2, 1),  # 50m: halved
        (210.0, 2, 2),  # a ratio of 1.05 is within the tolerance of 0.1
        (220.0, 2, 2),  # 1.1 is within, too: the comparison includes it
        (220.2, 2, 3),
        (180.0, 2, 2),
        (179.0, 2, 2),  # below 0.9, and still two are needed
        (0.0, 3, 0),
        (101.0, 0, 2),  # nothing to be near to
    ],
)
def test_proposals_of_the_formula(value: float, current: int, asked: int) -> None:
    read = Reading(np.array([value]), 100.0)
    assert proposals(read, np.array([current]), 0.1).tolist() == [asked]


def test_the_largest_of_several_metrics_counts() -> None:
    hpa = HorizontalPodAutoscaler([BEHAVIOR], 1)
    reads = [Reading(np.array([250.0]), 100.0), Reading(np.array([40.0]), 10.0)]
    assert hpa.decide(0, np.array([2]), reads).tolist() == [4]


def test_a_failed_metric_stops_scale_down_only() -> None:
    for value, expected in ((100.0, 4), (600.0, 6)):
        hpa = HorizontalPodAutoscaler([replace(BEHAVIOR, down_window_s=0)], 1)
        reads = [Reading(np.array([value]), 100.0), Reading(None, 10.0)]
        assert hpa.decide(0, np.array([4]), reads).tolist() == [expected]
    assert walk(replace(BEHAVIOR, down_window_s=0), 4, [None, None, 100.0]) == [4, 4, 1]


def test_no_value_leaves_no_recommendation() -> None:
    # what was asked for before the outage is older than the window when values return
    values = [500.0, *[None] * 20, 100.0]
    assert walk(BEHAVIOR, 5, values)[-1] == 1
    assert walk(BEHAVIOR, 5, [500.0, *[None] * 18, 100.0])[-1] == 5


def test_the_default_doubles_or_adds_four_a_period() -> None:
    assert walk(BEHAVIOR, 1, [10_000.0] * 5) == [5, 10, 20, 40, 80]


def test_without_a_behavior_the_limit_is_twice_or_four() -> None:
    assert walk(DEFAULT, 1, [10_000.0] * 6) == [4, 8, 16, 32, 64, 100]


def test_ten_percent_or_four_pods_a_minute() -> None:
    """The example of the documentation: 80, 72, and 7.2 is rounded up to 8."""
    down = Direction(0, MAX, (StepLimit(PODS, 4, 60), StepLimit(PERCENT, 10, 60)))
    steps = walk(behavior(down=down), 80, [1_000.0] * 16, step_s=60)
    assert steps[:3] == [72, 64, 57]
    assert steps[5:] == [40, 36, 32, 28, 24, 20, 16, 12, 10, 10, 10]


def test_the_smallest_change_of_min() -> None:
    down = Direction(0, MIN, (StepLimit(PODS, 5, 60), StepLimit(PERCENT, 10, 60)))
    assert walk(behavior(down=down), 100, [100.0] * 3, step_s=60) == [95, 90, 85]
    up = Direction(0, MIN, (StepLimit(PODS, 4, 60), StepLimit(PERCENT, 50, 60)))
    assert walk(behavior(up=up), 4, [10_000.0] * 3, step_s=60) == [6, 9, 13]


def test_disabled_never_goes_that_way() -> None:
    down = Direction(0, DISABLED, DOWN_LIMITS)
    assert walk(behavior(down=down), 8, [100.0, 900.0, 0.0]) == [8, 9, 9]
    up = Direction(0, DISABLED, UP_LIMITS)
    assert walk(behavior(up=up, down=Direction(0, MAX, DOWN_LIMITS)), 8, [9_000.0, 300.0]) == [8, 3]


def test_scale_up_by_900_percent_a_minute() -> None:
    """Story 1 of the enhancement proposal on behavior (KEP-853): 1, 10, 100, 1,000."""
    up = Direction(0, MAX, (StepLimit(PERCENT, 900, 60),))
    assert walk(behavior(up=up), 1, [1e6] * 3, step_s=60) == [10, 100, 1_000]
    assert walk(behavior(up=up), 1, [1e6] * 5, step_s=15) == [10, 10, 10, 10, 100]


def test_one_pod_a_period() -> None:
    """Story 3 of KEP-853: slowly up."""
    up = Direction(0, MAX, (StepLimit(PODS, 1, 600),))
    assert walk(behavior(up=up), 1, [1e6] * 4, step_s=600) == [2, 3, 4, 5]


def test_ten_minutes_of_recommendations_before_a_scale_down() -> None:
    """Story 5 of KEP-853: the largest of ten minutes counts, at the tenth minute for the first
    time without the ten at the begin.
    """
    down = Direction(600, MAX, (StepLimit(PODS, 5, 600),))
    policy = replace(behavior(down=down), tolerance=0.0)
    asked = [10, 9, 8, 9, 9, 8, 9, 8, 9, 8, 8]
    steps = walk(policy, 10, [100.0 * each for each in asked], step_s=60)
    assert steps == [10] * 10 + [9]


def test_a_recommendation_as_old_as_the_window_has_left_it() -> None:
    """``rec.timestamp.After(cutoff)``; without a behavior ``Before(cutoff)`` alone drops it."""
    values = [500.0, *[100.0] * 22]
    steps = walk(BEHAVIOR, 5, values)
    assert steps.index(1) == 20  # 300 s later
    assert walk(DEFAULT, 5, values).index(1) == 21


def test_a_scale_up_window_takes_the_lowest() -> None:
    policy = behavior(up=Direction(60, MAX, UP_LIMITS))
    assert walk(policy, 2, [500.0] * 5) == [2, 2, 2, 2, 5]
    # a single low value begins the wait anew
    assert walk(policy, 2, [500.0, 500.0, 200.0, *[500.0] * 4]) == [2, 2, 2, 2, 2, 2, 5]


def test_between_both_windows_nothing_changes() -> None:
    policy = behavior(Direction(60, MAX, UP_LIMITS), Direction(60, MAX, DOWN_LIMITS))
    assert walk(policy, 5, [900.0, 100.0] * 10) == [5] * 20


def test_bounds_need_no_metric() -> None:
    assert walk(replace(BEHAVIOR, least=3), 1, [None]) == [3]
    assert walk(replace(BEHAVIOR, most=4), 9, [None]) == [4]
    assert walk(BEHAVIOR, 0, [900.0]) == [0]  # zero replicas: switched off
    assert walk(replace(BEHAVIOR, least=3, down_window_s=0), 5, [0.0]) == [3]


def test_a_removal_counts_in_the_limit_of_a_scale_up() -> None:
    up = Direction(0, MAX, (StepLimit(PODS, 2, 60),))
    policy = behavior(up, Direction(0, MAX, DOWN_LIMITS))
    # 10, then 4, then up again: to the 10 of the period's begin and two more
    assert walk(policy, 10, [400.0, 2_000.0]) == [4, 12]


def test_futures_decide_alone_and_stillness_changes_nothing() -> None:
    rng = np.random.default_rng(7)
    policies = [
        DEFAULT,
        BEHAVIOR,
        behavior(Direction(60, MAX, UP_LIMITS), Direction(120, MIN, DOWN_LIMITS)),
    ]
    for policy in policies:
        levels = np.repeat(rng.choice([0.0, 90.0, 300.0, 310.0, 1_200.0], (30, 4)), 9, axis=0)
        together, current = HorizontalPodAutoscaler([policy], 4), np.full(4, 2)
        steps = []
        for number, row in enumerate(levels):
            current = together.decide(15 * number, current, [Reading(row, 100.0)])
            steps.append(current)
        for future in range(4):
            alone = walk(policy, 2, list(levels[:, future]))
            assert alone == [int(each[future]) for each in steps]


def test_policies_together_decide_as_each_alone() -> None:
    rng = np.random.default_rng(11)
    once = Direction(0, MIN, (StepLimit(PODS, 3, 60), StepLimit(PERCENT, 50, 30)))
    policies = [
        DEFAULT,
        replace(DEFAULT, tolerance=0.0, down_window_s=60, least=3),
        BEHAVIOR,
        behavior(Direction(60, MAX, UP_LIMITS), Direction(120, MIN, DOWN_LIMITS)),
        behavior(once, replace(once, stabilization_s=45)),
        behavior(Direction(0, DISABLED, UP_LIMITS)),
        behavior(down=Direction(0, DISABLED, DOWN_LIMITS)),
    ]
    values = np.repeat(rng.choice([0.0, 90.0, 300.0, 310.0, 1_200.0], (40, 14)), 7, axis=0)
    lanes = len(policies) * 2
    together, current = HorizontalPodAutoscaler(policies, 2), np.full(lanes, 2)
    alone = [HorizontalPodAutoscaler([policy], 2) for policy in policies]
    by_itself = [np.full(2, 2) for _ in policies]
    rate = rng.choice([0.0, 20.0, 70.0], lanes)
    by_rate = np.arange(lanes) // 2 % 2 == 0
    failing = np.arange(lanes) // 2 == 5
    for number, row in enumerate(values):
        fails = failing & (number % 50 > 40)
        reads = [
            Reading(row, 100.0, None, fails if fails.any() else None),
            Reading(rate, np.full(lanes, 10.0), by_rate),
        ]
        current = together.decide(15 * number, current, reads)
        for place, hpa in enumerate(alone):
            of = slice(2 * place, 2 * place + 2)
            own = [Reading(None if fails[of].any() else row[of], 100.0)]
            own += [Reading(rate[of], 10.0)] if by_rate[of].any() else []
            by_itself[place] = hpa.decide(15 * number, by_itself[place], own)
        assert current.tolist() == np.concatenate(by_itself).tolist(), number
