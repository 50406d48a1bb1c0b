"""Delays fitted to rows of ``latencies``: what is known comes back, tails and all."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rebalance_core.contracts.observed import (
    QUEUE_TAKEN,
    REGISTRATION,
    START_UP,
    UNREGISTRATION,
)
from rebalance_core.timing.delay import Delay
from rebalance_core.timing.extent import DEFAULT_BASIS, delays_basis, start_up_of
from rebalance_core.timing.fit import FEWEST, NAMES, Fit, delay_of, fit_of
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.ticks import Ticks
from tests.unit.timing.futures import happens, joins, story
from tests.unit.timing.known_nights import BROKERS, KNOWN, night
from tests.unit.timing.test_broker_requests import CHANGE_MS, cluster

NIGHTS, SHARES = 3, (0.25, 0.5, 0.75, 0.85)


@pytest.fixture(scope="module")
def fit(tmp_path_factory: pytest.TempPathFactory) -> Fit:
    folder = tmp_path_factory.mktemp("nights")
    return fit_of([night(folder / str(number), KNOWN, number) for number in range(NIGHTS)])


def rows(kind: str, *ms: float) -> list[Any]:
    return [{"kind": kind, "ms": each} for each in ms]


def is_recovered(found_us: np.ndarray, known: Delay) -> bool:
    found = np.quantile(found_us, SHARES)
    expected = [known.delay_of(int(share * (1 << 32))) for share in SHARES]
    return bool((np.abs(found - expected) <= 0.1 * np.array(expected)).all())


def test_every_line_of_the_nights_is_a_sample(fit: Fit) -> None:
    assert {kind.kind: (kind.samples, kind.nights) for kind in fit.kinds} == {
        START_UP: (120, 3),
        REGISTRATION: (360, 3),
        UNREGISTRATION: (360, 3),
        QUEUE_TAKEN: (600, 3),
    }
    assert fit.of_kind(START_UP).text == "fitted from 120 start-ups of 3 nights"
    assert fit.of_kind(START_UP).spread == "medians by night 1,514 to 1,514 ms"


def test_known_delays_are_recovered_within_a_tenth(fit: Fit) -> None:
    """Of start-ups, steps of joins and of leaves as they are simulated, not only of the rows."""
    clock = ClockOptions(exact_times=True, fit=fit)
    changes = [joins(CHANGE_MS, "c9"), happens(CHANGE_MS + 60_000, "CONSUMER_LEAVE", "c0")]
    ticks = Ticks(story(*cluster(BROKERS, *changes), options=clock), np.arange(1_000), clock)
    assert is_recovered(ticks.joined[4] - ticks.created[4], KNOWN.start_up)
    registered = np.sort(ticks.registered[4], axis=0)
    assert is_recovered(np.diff(registered, axis=0), KNOWN.registration)
    unregistered = np.sort(ticks.unregistered[0], axis=0)
    assert is_recovered(np.diff(unregistered, axis=0), KNOWN.unregistration)
    taken = fit.delay(QUEUE_TAKEN)
    assert taken is not None
    assert is_recovered(
        taken.many(np.arange(0, 1 << 32, 1 << 20, dtype=np.uint64)), KNOWN.queue_taken
    )


def test_a_start_names_the_fit_it_rests_on(fit: Fit) -> None:
    clock = ClockOptions(fit=fit)
    start = start_up_of(story(*cluster(BROKERS)), clock)
    assert start is not None
    assert start.basis == "fitted from 120 start-ups of 3 nights"
    assert start.median_ms == pytest.approx(1_500, rel=0.1)
    assert delays_basis(clock).startswith("fitted from 120 start-ups of 3 nights; fitted from 360")
    assert delays_basis(clock).endswith(f"; else {DEFAULT_BASIS}")
    assert delays_basis(ClockOptions()) == DEFAULT_BASIS


def test_a_tail_is_kept_whole() -> None:
    samples = [10.0] * 99 + [2_900.0]
    (found,) = [each for each in fit_of([rows(REGISTRATION, *samples)]).kinds if each.delay]
    assert found.delay is not None
    assert (found.delay.shortest, found.delay.longest) == (10_000, 2_900_000)
    many = delay_of([*(float(ms) for ms in range(1, 5_001)), 60_000.0])
    assert many.longest == 60_000_000
    assert many.delay_of(1 << 31) == pytest.approx(2_501_000, rel=0.01)


def test_fewer_samples_than_needed_leave_the_recorded_delays() -> None:
    few = fit_of([rows(START_UP, *[5_000.0] * (FEWEST - 1)), rows("ANOTHER", *[1.0] * 30)])
    assert [few.delay(kind) for kind in NAMES] == [None] * 4
    assert few.of_kind(START_UP).text == "default: 19 start-ups of 1 night, 20 are needed"
    clock = ClockOptions(exact_times=True)
    timeline = story(*cluster(2, joins(CHANGE_MS, "c9")))
    default, fitted = (
        Ticks(timeline, np.arange(50), each).created[4] for each in (clock, replace(clock, fit=few))
    )
    assert np.array_equal(default, fitted)


def test_a_night_under_load_shows_in_the_medians() -> None:
    quiet, loaded = rows(START_UP, *[300.0] * 40), rows(START_UP, *[2_000.0] * 40)
    found = fit_of([quiet, quiet, loaded]).of_kind(START_UP)
    assert (found.median_ms, found.lowest_ms, found.highest_ms) == (300.0, 300.0, 2_000.0)
    assert found.spread == "medians by night 300 to 2,000 ms"
    assert fit_of([quiet]).of_kind(START_UP).spread == ""


def test_nights_without_a_kind_do_not_count() -> None:
    found = fit_of([rows(START_UP, *[300.0] * 40), rows(REGISTRATION, 1.0)])
    assert found.of_kind(START_UP).text == "fitted from 40 start-ups of 1 night"
