"""Groups in which the vectorized and the reference engine once differed."""

import numpy as np
import pytest

from rebalance_core.model.events import OBSERVED
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import PHASES, RANDOM_PHASES, ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one, play_with_passes
from rebalance_core.timing.stretches import stretches_of
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import REGULAR
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import (
    EXACT,
    SECOND,
    START_MS,
    happens,
    joins,
    ms,
    rows_of,
    story,
    two_brokers,
)

OBSERVED_X = (topic(0, 4, detail=OBSERVED), joins(0, "x", detail=OBSERVED))


def alike(
    timeline: GroupTimeline, options: ClockOptions = EXACT, first: int = 0, seeds: int = 30
) -> list[tuple[int, ...]]:
    """The rows of futures that both engines agree on."""
    assert reason_of(timeline) == REGULAR
    wanted = np.arange(first, first + seeds)
    played = rows_of(play_seeds(timeline, wanted, options))
    assert played == rows_of(play_seeds_one_by_one(timeline, wanted.tolist(), options))
    assert len({row[0] for row in played}) == seeds
    return played


def test_an_orderly_pass_that_knows_no_route_sends_a_heartbeat_whatever_else_it_does() -> None:
    timeline = story(
        topic(0, 3),
        topic(0, 4, broker="b"),
        topic(0, 4, "U"),
        joins(1_001, "z"),
        event(3_000, "BROKER_DOWN", broker_name="a"),
        joins(8_000, "y"),  # for whom topic U does not exist
        event(8_001, "BROKER_UP", broker_name="a"),
        subscriptions=("T", "U"),
        ordered=True,
        client_version="5.1",
    )
    alike(timeline)


def test_a_pass_due_just_before_a_stretch_begins_with_it() -> None:
    options = ClockOptions(exact_times=True, phases=RANDOM_PHASES)
    timeline = story(topic(0, 3, detail=OBSERVED), joins(600_000, "x"), options=options)
    number, begin_us = 5431, timeline.begin_us
    ticks = Ticks(timeline, np.array([number]), options)
    for_us = begin_us - int(ticks.created[0, 0])
    assert 20 * SECOND <= for_us < 20 * SECOND + int(ticks.pass_length[0, 0])
    alike(timeline, options, number, 1)


@pytest.mark.parametrize("phases", PHASES)
def test_who_registers_by_its_timer_never_misses_its_own_notice(phases: str) -> None:
    options = ClockOptions(exact_times=True, phases=phases)
    timeline = story(
        topic(0, 3, detail=OBSERVED),
        joins(600_000, "x"),
        consumer_type="LITE_PULL",
        options=options,
    )
    created = Ticks(timeline, np.arange(200), options).created[0]
    joined_us = (START_MS + 600_000) * 1_000
    assert (created < joined_us - 2 * SECOND).any()  # its first heartbeat is due 1 s later
    taken = [row[3] for row in alike(timeline, options, seeds=200)]
    assert max(taken) < joined_us + 4 * SECOND


def test_who_joins_right_after_the_first_change_is_announced_to_those_who_were_there() -> None:
    timeline = story(*OBSERVED_X, topic(100_000, 6), joins(100_005, "z"))
    (stretch,) = stretches_of(timeline)
    assert ms(stretch.begin_us) == 100_005 - 1_000
    drops: dict[int, float] = {}
    for future, lifetime, _, at_us, delta in alike(timeline):
        if delta < 0 and timeline.lifetimes[lifetime].client_id == "x":
            drops.setdefault(future, ms(at_us))
    assert len(drops) == 30
    assert max(drops.values()) < 101_600


def test_who_comes_back_with_its_client_id_shares_its_own_lock() -> None:
    """It need not wait until the lock of its former lifetime has expired; nor for its unlock."""
    timeline = story(
        *two_brokers(),
        joins(300, "x"),
        joins(301, "y"),
        happens(60_300, "CONSUMER_LOST", "y"),
        joins(60_310, "y"),
        happens(120_300, "CONSUMER_LEAVE", "x"),
        joins(120_310, "x"),
        ordered=True,
    )
    again = {
        lifetime.index for lifetime in timeline.lifetimes if ms(lifetime.joined.event_us) == 60_310
    }
    first: dict[int, float] = {}
    for future, lifetime, _, at_us, delta in alike(timeline):
        if lifetime in again and delta > 0:
            first.setdefault(future, ms(at_us))
    assert max(first.values()) < 60_310 + 21_000
    assert min(first.values()) < 60_310 + 3_000


def test_two_processes_of_a_client_id_hold_a_queue_with_one_lock() -> None:
    timeline = story(
        *two_brokers(),
        joins(300, "x"),
        joins(301, "y"),
        joins(30_300, "y", "2"),
        happens(90_300, "CONSUMER_LOST", "y"),
        happens(150_300, "CONSUMER_LEAVE", "y", "2"),
        ordered=True,
    )
    holders: dict[tuple[int, int], set[int]] = {}
    twice = set()
    for future, lifetime, queue, _, delta in sorted(alike(timeline), key=lambda row: row[3]):
        its = holders.setdefault((future, queue), set())
        (its.add if delta > 0 else its.discard)(lifetime)
        if len(its) > 1:
            assert {timeline.lifetimes[each].client_id for each in its} == {"y"}
            twice.add(future)
    assert len(twice) == 30


def test_broadcasting_members_of_orderly_groups_take_locks_that_expire_or_none() -> None:
    timeline = story(
        *two_brokers(),
        joins(300, "x", message_model="BROADCASTING", version="5.3.1"),
        joins(301, "y"),
        joins(40_300, "z", message_model="BROADCASTING", version="5.3.3"),
        happens(150_300, "CONSUMER_LEAVE", "y"),
        ordered=True,
    )
    alike(timeline)


def test_a_pass_that_asks_for_locks_outlasts_the_gap_between_two_stretches() -> None:
    timeline = story(
        *OBSERVED_X,
        event(60_300, "MASTER_DOWN", broker_name="a"),
        joins(100_300, "y"),
        topic(340_303, 5),
        event(342_300, "MASTER_UP", broker_name="a"),
        ordered=True,
    )
    before, after = stretches_of(timeline)
    assert after.begin_us - before.end_us == 2_000
    first = 56
    passes = play_with_passes(timeline, first, EXACT).passes
    assert any(after.begin_us - 10_000 < each.begin_us < before.end_us for each in passes)
    alike(timeline, first=first, seeds=1)


def test_a_group_without_brokers_loses_a_member() -> None:
    timeline = story(
        joins(0, "x", detail=OBSERVED), happens(60_300, "CONSUMER_LOST", "x", detail="EXPIRED")
    )
    assert len(play_seeds(timeline, np.arange(9), EXACT)) == 0


def test_a_gap_shorter_than_the_poll_interval_leaves_one_poll_to_each_client() -> None:
    options = ClockOptions()
    timeline = story(
        joins(0, "z", "2", detail=OBSERVED),
        joins(223_451, "w", "2"),
        topic(466_521, 2),
        options=options,
        message_model="BROADCASTING",
        client_version="5.5",
    )
    before, after = stretches_of(timeline)
    assert 0 < after.begin_us - before.end_us < 30 * SECOND
    alike(timeline, options, first=20_003_960, seeds=1)


def test_a_registration_by_a_pass_that_ends_two_segments_later_is_kept() -> None:
    timeline = story(
        topic(7_321, 3, "U"),
        topic(7_321, 4, "U", "b"),
        joins(7_321, "w", "1"),
        joins(54_975, "y", "2"),
        event(295_475, "BROKER_DOWN", broker_name="a", detail="EXPIRED"),
        event(297_178, "BROKER_DOWN", broker_name="b", detail="EXPIRED"),
        event(300_932, "BROKER_UP", broker_name="b"),
        subscriptions=("V", "U"),
        strategy="CONSISTENT_HASH(virtual_nodes=3)",
        client_version="5.5",
        broker_version="5.1",
    )
    alike(timeline, first=44, seeds=10)


def test_a_heartbeat_tick_after_a_stretch_is_looked_for_again_as_a_pass_may_come_first() -> None:
    """One process knows the broker by a fetched route; the lock of its client id lets it take."""
    timeline = story(
        topic(123, 3),
        joins(62_123, "x"),
        joins(170_123, "x", "2"),
        topic(175_124, 1, "U", "b", perm=2),
        event(229_125, "BROKER_DOWN", broker_name="a", detail="EXPIRED"),
        event(234_125, "BROKER_UP", broker_name="a"),
        subscriptions=("T", "U"),
        ordered=True,
    )
    alike(timeline)
