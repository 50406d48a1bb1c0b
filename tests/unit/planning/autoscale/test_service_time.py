"""What waits for the oldest message in handlers, against queues of random messages."""

import numpy as np
import pytest

from rebalance_core.planning.autoscale.service_time import (
    MAX_SPAN,
    MOST_P99,
    P99,
    Uncommitted,
    sigma_of,
)


def counted(load: float, sigma: float, rng: np.random.Generator) -> float:
    """Messages from the oldest in handlers on, seen at 2,000 times."""
    come = np.cumsum(rng.exponential(1 / load, 200_000))
    done = come + np.exp(sigma * rng.standard_normal(len(come)) - sigma**2 / 2)
    looks = rng.uniform(come[50_000], come[-1], 2_000)
    total = 0
    for look in looks:
        last = int(np.searchsorted(come, look))
        begin = max(0, last - 20_000)
        open_ = np.flatnonzero(done[begin:last] > look)
        total += last - begin - int(open_[0]) if len(open_) else 0
    return total / len(looks)


@pytest.mark.parametrize(("p99", "load"), [(2.0, 0.3), (2.0, 30.0), (5.0, 2.0), (5.0, 20.0)])
def test_messages_are_those_of_a_simulated_queue(p99: float, load: float) -> None:
    sigma = sigma_of(p99)
    expected = counted(load, sigma, np.random.default_rng(7))
    assert Uncommitted(sigma).messages(np.array([load]))[0] == pytest.approx(expected, rel=0.1)


def test_equal_times_leave_what_is_in_handlers() -> None:
    loads = np.array([0.0, 1e-6, 0.5, 50.0, 1e6])
    assert np.array_equal(Uncommitted(0.0).messages(loads), loads)
    # a spread near 0 is nearly the same
    assert Uncommitted(1e-3).messages(loads) == pytest.approx(loads, rel=0.01)


def test_the_span_bounds_what_is_pulled() -> None:
    varied = Uncommitted(sigma_of(MOST_P99))
    assert varied.messages(np.array([100.0]))[0] == MAX_SPAN
    # a load that is larger than that by itself is in handlers
    assert varied.messages(np.array([5_000.0]))[0] == 5_000.0


@pytest.mark.parametrize("p99", [1.0, 2.0, 10.0, MOST_P99])
def test_the_percentile_is_that_of_the_log_normal(p99: float) -> None:
    sigma = sigma_of(p99)
    assert np.exp(sigma * P99 - sigma**2 / 2) == pytest.approx(p99)
