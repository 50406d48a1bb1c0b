"""Rates of queues: skew, gaps, resets, windows."""

import numpy as np
import pytest

from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.autoscale.arrivals import (
    HIGH,
    LIKELY,
    LOW,
    Arrival,
    UnknownRateError,
    arrivals_of,
    rates_of,
)
from rebalance_core.replay.history import QueueOffset

T = 1_800_000_000_000
A0, A1, B0 = (
    MessageQueue("T", broker, number) for broker, number in (("a", 0), ("a", 1), ("b", 0))
)
QUEUES = (A0, A1, B0)


def row(
    begin: int, end: int, broker: str | None = None, queue: int | None = None, rate: float = 6.0
) -> Arrival:
    return Arrival(
        T + begin * 1_000, T + end * 1_000, "T", broker, queue, (rate, rate / 2, rate * 2)
    )


def test_a_row_of_a_topic_is_divided_and_one_of_a_queue_is_not() -> None:
    assert rates_of([row(0, 60)], QUEUES, LIKELY).rate.tolist() == [[2.0, 2.0, 2.0]]
    skewed = [row(0, 60, "a", rate=4.0), row(0, 60, "b", 0, 9.0)]
    assert rates_of(skewed, QUEUES, LIKELY).rate.tolist() == [[2.0, 2.0, 9.0]]
    assert rates_of(skewed, QUEUES, LOW).rate.tolist() == [[1.0, 1.0, 4.5]]
    assert rates_of(skewed, QUEUES, HIGH).rate.tolist() == [[4.0, 4.0, 18.0]]


def test_arrived_adds_up() -> None:
    rates = rates_of([row(0, 60), row(60, 90, rate=12.0)], QUEUES, LIKELY)
    assert rates.arrived(np.array([-5.0, 30.0, 75.0, 500.0]))[:, 0].tolist() == [
        0.0,
        60.0,
        180.0,
        240.0,
    ]
    assert rates.seconds == 90


def test_a_gap_is_unknown_and_names_its_place() -> None:
    with pytest.raises(UnknownRateError, match=r"T/a/0 is unknown from .*08:01:00Z to .*08:02:00Z"):
        rates_of([row(0, 60), row(120, 400)], QUEUES, LIKELY)
    with pytest.raises(UnknownRateError, match=rf"--from {T + 120_000} --to {T + 400_000}"):
        rates_of([row(0, 60), row(120, 400)], QUEUES, LIKELY)


def test_a_queue_without_any_row_is_unknown() -> None:
    with pytest.raises(UnknownRateError, match="no rate of T/b/0, which the group reads"):
        rates_of([row(0, 60, "a")], QUEUES, LIKELY)
    with pytest.raises(UnknownRateError, match="no row of T"):
        rates_of([], QUEUES, LIKELY)


def test_two_rates_at_once_are_refused() -> None:
    with pytest.raises(UnknownRateError, match="two rows of arrivals have a rate of T/a/0"):
        rates_of([row(0, 60), row(30, 90, "a", 0), row(60, 90)], QUEUES, LIKELY)


def test_what_only_some_queues_have_at_the_ends_is_left_out() -> None:
    rows = [row(10, 60, "a"), row(0, 50, "b")]
    rates = rates_of(rows, QUEUES, LIKELY)
    assert (rates.begin_ms, rates.seconds) == (T + 10_000, 40)


def test_a_window_of_the_time() -> None:
    rows = [row(0, 60), row(60, 90, rate=12.0)]
    part = rates_of(rows, QUEUES, LIKELY, T + 30_000, T + 70_000)
    assert (part.begin_ms, part.edges.tolist()) == (T + 30_000, [0.0, 30.0, 40.0])
    assert part.rate[:, 0].tolist() == [2.0, 4.0]
    with pytest.raises(UnknownRateError, match="no second"):
        rates_of(rows, QUEUES, LIKELY, T + 90_000)


def test_the_time_that_a_refusal_names_is_taken() -> None:
    rows = [row(0, 60), row(90, 200)]
    with pytest.raises(UnknownRateError, match=f"--from {T + 90_000} --to {T + 200_000}"):
        rates_of(rows, QUEUES, LIKELY)
    part = rates_of(rows, QUEUES, LIKELY, T + 90_000, T + 200_000)
    assert part.seconds == 110


def test_offsets_show_mean_rates_and_a_reset_is_unknown() -> None:
    looks = [(0, 100), (60, 700), (120, 50), (180, 110)]
    offsets = [QueueOffset(A0, T + at * 1_000, 0, end) for at, end in looks]
    rows = arrivals_of(offsets)
    assert [(r.from_ms - T, r.rates[0]) for r in rows] == [(0, 10.0), (120_000, 1.0)]
    with pytest.raises(UnknownRateError, match="unknown from"):
        rates_of(rows, (A0,), LIKELY)
