"""A graceful leave is an interval: what members lock meanwhile stays locked (rocketmq.md §7)."""

import random

import numpy as np
import pytest

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import REGULAR
from tests.unit.timing.futures import EXACT, futures, happens, joins, rows_of, story, two_brokers

STOPPED_MS = 100_000
MEMBERS = 6
RECREATED = [
    *two_brokers(8),
    *(joins(0, f"c{n}") for n in range(MEMBERS)),
    *(happens(STOPPED_MS, "CONSUMER_LEAVE", f"c{n}") for n in range(MEMBERS)),
    *(joins(STOPPED_MS + 2_100, f"d{n}") for n in range(MEMBERS)),
]


def longest_ms(ordered: bool, events: list[Event], seeds: int = 20) -> list[float]:
    """When the last queue is taken, after the stop, by future."""
    return [
        max(begin for spans in each.held.values() for begin, _, _ in spans) - STOPPED_MS
        for each in futures(*events, seeds=seeds, ordered=ordered)
    ]


def test_a_group_that_is_recreated_may_block_its_order_locks_for_a_minute() -> None:
    finishes = longest_ms(True, RECREATED)
    blocked = [at for at in finishes if at > 10_000]
    assert len(blocked) >= len(finishes) / 3
    assert all(59_000 < at < 66_000 for at in blocked)
    assert len(blocked) < len(finishes)
    assert max(longest_ms(False, RECREATED)) < 10_000


def test_one_that_leaves_alone_blocks_nothing() -> None:
    alone = [*RECREATED[: 2 + MEMBERS], happens(STOPPED_MS, "CONSUMER_LEAVE", "c0")]
    assert max(longest_ms(True, alone)) < 5_000


def test_nothing_is_read_after_the_begin_of_a_leave() -> None:
    timeline = story(*RECREATED, ordered=True)
    ticks = Ticks(timeline, np.arange(20), EXACT)
    log = play_seeds(timeline, range(20), EXACT)
    assert (log.at_us <= ticks.ended[log.lifetime, log.seed]).all()


def test_brokers_lose_who_leaves_one_after_the_other_a_request_apart() -> None:
    ticks = Ticks(story(*RECREATED), np.arange(1_000), EXACT)
    first, second = np.sort(ticks.unregistered[0], axis=0)
    apart_ms = (second - first) / 1_000
    assert apart_ms.min() >= 1
    assert np.median(apart_ms) == pytest.approx(6, abs=1)  # 5 to 8 in the calibrating half


def test_leaves_at_one_time_begin_in_an_order_that_is_drawn() -> None:
    timeline = story(*RECREATED, ordered=True)
    ticks = Ticks(timeline, np.arange(200), EXACT)
    leaving = [lifetime.index for lifetime in timeline.lifetimes if lifetime.ending is not None]
    orders = {tuple(np.argsort(ticks.ended[leaving, seed])) for seed in range(200)}
    assert len(orders) > 100
    assert (ticks.ended[leaving] <= ticks.unlocked[leaving]).all()
    assert (ticks.unlocked[leaving] < ticks.stopped[leaving]).all()
    assert (ticks.stopped[leaving] <= ticks.unregistered[leaving].min(axis=1)).all()
    lengths = ticks.stopped[leaving] - ticks.ended[leaving]
    assert 50_000 < np.median(lengths) < 300_000


def test_a_leave_alone_takes_as_long_as_before() -> None:
    timeline = story(
        *two_brokers(),
        joins(0, "c1"),
        joins(0, "c2"),
        happens(50_000, "CONSUMER_LEAVE", "c1"),
        happens(60_000, "CONSUMER_LEAVE", "c2"),
    )
    ticks = Ticks(timeline, np.arange(500), EXACT)
    assert (ticks.ended == ticks.unlocked).all()
    assert np.median(ticks.stopped - ticks.ended) < 1_000


def test_a_start_up_time_is_the_same_in_all_futures() -> None:
    timeline = story(*RECREATED)
    ticks = Ticks(timeline, np.arange(9), ClockOptions(exact_times=True, start_up_ms=100))
    assert (ticks.joined - ticks.created == 100_000).all()


VERSIONS = ("4.9", "5.0", "5.1", "5.2", "5.3.3", "5.5")


def restarts(pick: random.Random) -> list[Event]:
    """Members that stop together or one after the other, some killed, some under their old ids."""
    given = [*two_brokers(pick.choice((2, 4, 8)))]
    living = [(f"c{n}", f"c{n}/1") for n in range(pick.choice((2, 3, 6)))]
    given += [joins(pick.choice((0, 0, 700)), *each) for each in living]
    at_ms = pick.choice((20_000, 60_000, 400_000))
    for step in range(pick.choice((1, 2, 3))):
        gone = pick.sample(living, pick.randint(1, len(living)))
        for client, channel in gone:
            living.remove((client, channel))
            kind = events.CONSUMER_LOST if pick.random() < 0.2 else events.CONSUMER_LEAVE
            given.append(happens(at_ms + pick.choice((0, 0, 3, 40, 700)), kind, client, channel))
            fresh = client if pick.random() < 0.2 else f"{client}x"
            living.append((fresh, f"{channel}{step}"))
            given.append(joins(at_ms + pick.choice((1_500, 2_100, 2_300)), *living[-1]))
        at_ms += pick.choice((2_500, 5_000, 15_000, 90_000, 500_000))
    return given


@pytest.mark.parametrize("number", range(12))
def test_the_batch_has_the_log_of_the_loop(number: int) -> None:
    pick = random.Random(number)
    options = ClockOptions(exact_times=pick.random() < 0.5)
    given = restarts(pick)
    timeline = story(*given, options=options, ordered=True, client_version=pick.choice(VERSIONS))
    assert reason_of(timeline) == REGULAR
    found = rows_of(play_seeds(timeline, range(5), options))
    assert found == rows_of(play_seeds_one_by_one(timeline, range(5), options))
    assert found
