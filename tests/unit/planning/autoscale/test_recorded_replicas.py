"""Which replicas rows of ``recorded_scaling`` show, and when they show none."""

import json

import numpy as np
import pytest

from rebalance_core.model.times import SECOND_MS, utc
from rebalance_core.planning.autoscale.arrivals import Rates
from rebalance_core.planning.autoscale.range_answer import merged, parse_answer
from rebalance_core.planning.autoscale.recorded_load import WANTED, load_of_metrics
from rebalance_core.planning.autoscale.recorded_replicas import (
    Recorded,
    recorded_during,
    samples_by_group,
)
from tests.unit.planning.autoscale.answers import BEGIN_S, body, come, lag, pods

BEGIN_MS = BEGIN_S * SECOND_MS
TEN_MINUTES = Rates(BEGIN_MS, np.array([0.0, 600.0]), np.ones((1, 1)))
EACH_MINUTE: dict[int, int | None] = dict.fromkeys(range(0, 660, 60), 2)


def during(rows: dict[int, int | None], rates: Rates = TEN_MINUTES) -> Recorded:
    """Return what rows show; their keys are seconds after the begin of the replay."""
    samples = {BEGIN_MS + second * SECOND_MS: count for second, count in sorted(rows.items())}
    return recorded_during(samples, rates)


def unknown(from_s: int, to_s: int) -> Recorded:
    begin, end = (utc(BEGIN_MS + second * SECOND_MS) for second in (from_s, to_s))
    return Recorded(reason=f"recorded_scaling does not show its replicas from {begin} to {end}")


@pytest.mark.parametrize(
    "others",
    [
        dict.fromkeys(range(1, 660, 60)),  # lag a second later
        dict.fromkeys(range(30, 660, 60)),  # lag twice as often
        dict.fromkeys(range(0, 600, 15)),
    ],
)
def test_rows_without_replicas_leave_the_others_as_they_are(others: dict[int, int | None]) -> None:
    rows = others | EACH_MINUTE | {300: 5}
    assert during(rows) == during(EACH_MINUTE | {300: 5})
    assert during(rows).changes == ((0, 2), (300, 5), (360, 2))


@pytest.mark.parametrize("absent", [{}, {180: None}])
def test_a_missing_row_is_a_gap(absent: dict[int, int | None]) -> None:
    rows = {second: count for second, count in EACH_MINUTE.items() if second != 180} | absent
    assert during(rows) == unknown(180, 240)
    # a replay that ends before, or begins after, does not need it
    early = Rates(BEGIN_MS, np.array([0.0, 180.0]), np.ones((1, 1)))
    late = Rates(BEGIN_MS + 240 * SECOND_MS, np.array([0.0, 360.0]), np.ones((1, 1)))
    assert during(rows, early).changes == during(rows, late).changes == ((0, 2),)


def test_rows_that_are_a_little_late_are_no_gap() -> None:
    rows: dict[int, int | None] = {0: 2, 60: 2, 179: 3, 240: 3, 300: 3, 360: 3, 419: 3, 480: 3}
    assert during(rows | {540: 3}).changes == ((0, 2), (179, 3))


def test_the_last_row_holds_for_the_usual_distance() -> None:
    rows = {second: count for second, count in EACH_MINUTE.items() if second <= 480}
    assert during(rows) == unknown(540, 600)
    assert during(rows | {540: 2}).changes == ((0, 2),)


def test_a_single_row_holds_for_no_time() -> None:
    assert during({0: 2}) == during({0: 2, 60: None}) == unknown(0, 600)
    assert during({-60: 2}) == unknown(0, 600)
    assert during({60: 2}) == unknown(0, 60)


def test_the_time_before_the_first_row_is_unknown() -> None:
    assert during(EACH_MINUTE | {0: None}) == unknown(0, 60)
    assert during(dict.fromkeys(EACH_MINUTE)).reason == "recorded_scaling has no replicas of it"


@pytest.mark.parametrize("later_s", [1, 30])
def test_replicas_of_one_answer_and_lag_of_another_are_known(later_s: int) -> None:
    """Queries with begins of their own have rows of their own in ``recorded_scaling``."""
    replicas = json.loads(body(pods([2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3])))
    brokers = json.loads(body(come(range(0, 3_300, 300)), lag([5] * 11)))
    for series in brokers["data"]["result"]:
        series["values"] = [[at_s + later_s, value] for at_s, value in series["values"]]
    answers = [
        parse_answer(json.dumps(answer), name, WANTED)
        for answer, name in ((replicas, "pods.json"), (brokers, "brokers.json"))
    ]
    load = load_of_metrics(merged(answers), threads=20)
    assert {row["replicas"] for row in load.scaling} == {None, 2, 3}
    (samples,) = samples_by_group(load.scaling).values()
    assert recorded_during(samples, TEN_MINUTES).changes == ((0, 2), (180, 3))
