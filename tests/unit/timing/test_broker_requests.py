"""Starts and leaves that tell one broker after the other: more brokers, and brokers far away."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.timing.broker_requests import HEARTBEAT_THREADS
from rebalance_core.timing.delays import longest_lead_us
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import LONGEST_RTT_US, ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import REGULAR
from tests.unit.replay.histories import topic
from tests.unit.timing.futures import happens, joins, rows_of, story

SEEDS = np.arange(100)
MS = 1_000
SETTLED_MS, CHANGE_MS = 0, 300_000


def options(rtt_ms: float = 0, **more: Any) -> ClockOptions:
    return ClockOptions(exact_times=True, rtt_us=round(rtt_ms * MS), **more)


def cluster(brokers: int, *changes: Event, members: int = 4, queues: int = 4) -> list[Event]:
    """Members on a topic of so many brokers, from before the log; then the changes."""
    there = [topic(SETTLED_MS, queues, "T", f"broker-{n:03}") for n in range(brokers)]
    seen = [joins(SETTLED_MS, f"c{n}", detail=OBSERVED) for n in range(members)]
    return [*(replace(each, detail=OBSERVED) for each in there), *seen, *changes]


def joined(brokers: int, clock: ClockOptions, **join: Any) -> tuple[GroupTimeline, Ticks]:
    """A fifth member joins; its number is 4."""
    timeline = story(*cluster(brokers, joins(CHANGE_MS, "c9", **join)), options=clock)
    return timeline, Ticks(timeline, SEEDS, clock)


def start_up_s(ticks: Ticks) -> np.ndarray:
    return np.asarray((ticks.joined[4] - ticks.created[4]) / 1e6)


def first_queue_s(log: OwnershipLog, ticks: Ticks) -> np.ndarray:
    """How long after the call of its ``start()`` the fifth member takes a queue, by future."""
    first = np.full(len(SEEDS), np.inf)
    taken = (log.lifetime == 4) & (log.delta > 0)
    np.minimum.at(first, log.seed[taken], log.at_us[taken])
    return np.asarray((first - ticks.created[4]) / 1e6)


@pytest.mark.parametrize(
    ("brokers", "rtt_ms", "low_s", "high_s"),
    [(2, 0, 0.3, 0.5), (8, 0, 0.25, 0.5), (16, 0, 0.4, 0.7), (177, 2, 3.5, 7), (177, 20, 8, 14)],
)
def test_a_start_takes_as_long_as_measured_with_so_many_brokers(
    brokers: int, rtt_ms: float, low_s: float, high_s: float
) -> None:
    _, ticks = joined(brokers, options(rtt_ms))
    assert low_s <= np.median(start_up_s(ticks)) <= high_s
    if brokers == 177:
        assert start_up_s(ticks).min() >= low_s
        assert start_up_s(ticks).max() <= high_s


def test_a_member_takes_queues_while_its_start_still_shows_brokers() -> None:
    clock = options(rtt_ms=2)
    timeline, ticks = joined(177, clock)
    first = first_queue_s(play_seeds(timeline, SEEDS, clock), ticks)
    assert (first < start_up_s(ticks)).mean() > 0.95
    assert 1.4 <= np.median(first) <= 4.9
    assert first.min() >= 1


def test_brokers_hear_of_a_join_in_turn_a_connection_and_a_heartbeat_apart() -> None:
    near, far = (joined(30, options(rtt_ms))[1].registered[4] for rtt_ms in (0, 50))
    assert (np.argsort(near, axis=0) == np.argsort(far, axis=0)).all()
    assert len(np.unique(np.argsort(near, axis=0)[:, 0])) == 30
    further = np.diff(np.sort(far, axis=0), axis=0) - np.diff(np.sort(near, axis=0), axis=0)
    assert (further == 2 * 50 * MS).all()


def test_no_registration_comes_before_the_change_is_followed() -> None:
    clock = options(rtt_ms=20)
    timeline, ticks = joined(177, clock)
    lead_us = longest_lead_us(177, clock)
    assert timeline.changes[-1].begin_us == timeline.lifetimes[4].joined.event_us - lead_us
    assert (ticks.registered[4] > timeline.changes[-1].begin_us).all()
    assert (ticks.registered[4].min(axis=0) > ticks.created[4]).all()


def test_a_join_that_a_broker_logged_is_dated_by_the_first_registration() -> None:
    clock = options(rtt_ms=2)
    timeline, ticks = joined(177, clock, source="brokers/broker-000/broker.log:355")
    logged_us = timeline.lifetimes[4].joined.event_us
    first = ticks.registered[4].min(axis=0)
    assert ((first - logged_us >= 0) & (first - logged_us < 10 * MS)).all()
    assert (ticks.joined[4] - logged_us > 3_500 * MS).all()


@pytest.mark.parametrize(("version", "speed"), [("5.4", 1), ("5.5", HEARTBEAT_THREADS)])
def test_concurrent_heartbeats_go_out_as_many_at_a_time_as_threads(
    version: str, speed: int
) -> None:
    plain = options(rtt_ms=100)
    at_once = replace(plain, concurrent_heartbeat=True)
    spans = []
    for clock in (plain, at_once):
        _, ticks = joined(41, clock, version=version)
        spans.append(np.ptp(ticks.registered[4], axis=0).mean())
    assert spans[0] / spans[1] == pytest.approx(speed, rel=0.05)


@pytest.mark.parametrize(
    ("brokers", "rtt_ms", "low_s", "high_s"), [(8, 0, 1, 1.3), (177, 20, 3, 6)]
)
def test_a_leave_settles_once_the_last_broker_knows(
    brokers: int, rtt_ms: float, low_s: float, high_s: float
) -> None:
    clock = options(rtt_ms)
    events = cluster(brokers, happens(CHANGE_MS, "CONSUMER_LEAVE", "c0"))
    timeline = story(*events, options=clock)
    log = play_seeds(timeline, SEEDS, clock)
    last = np.zeros(len(SEEDS))
    np.maximum.at(last, log.seed, log.at_us)
    left_us = timeline.changes[-1].change_ms * MS
    assert low_s <= np.median(last - left_us) / 1e6 <= high_s


@pytest.mark.parametrize("ordered", [False, True])
def test_the_engines_agree_on_many_brokers_far_away(ordered: bool) -> None:
    clock = options(rtt_ms=30)
    changes = [
        joins(CHANGE_MS, "c9", source="brokers/a/broker.log:1"),
        joins(CHANGE_MS + 100, "c8"),
        happens(CHANGE_MS + 30_000, "CONSUMER_LEAVE", "c0"),
    ]
    timeline = story(*cluster(12, *changes, queues=2), options=clock, ordered=ordered)
    assert reason_of(timeline) == REGULAR
    seeds = range(6)
    log = play_seeds(timeline, seeds, clock)
    assert rows_of(log) == rows_of(play_seeds_one_by_one(timeline, seeds, clock))
    assert len(log)


@pytest.mark.parametrize("rtt_us", [-1, LONGEST_RTT_US + 1])
def test_a_round_trip_is_at_most_a_second(rtt_us: int) -> None:
    with pytest.raises(ValueError, match=r"rtt_us is .*; expected 0 to 1,000,000"):
        ClockOptions(rtt_us=rtt_us)
