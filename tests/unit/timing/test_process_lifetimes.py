"""Leaves that are intervals, hosts that are lost without a word, and what is known beside the
log.
"""

import random
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.timing.delays import ADD_AFTER, DROP_AFTER, PASS_TAIL
from rebalance_core.timing.group_timeline import GroupTimeline, ProcessStop, WatcherKnowledge
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one, play_with_passes
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import REGULAR, STOPPED
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import (
    EXACT,
    START_MS,
    Future,
    futures,
    happens,
    joins,
    ms,
    rows_of,
    story,
    two_brokers,
)

# A graceful leave is an interval: what members lock meanwhile stays locked (rocketmq.md §7).

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
    timeline = story(*two_brokers(), joins(0, "c1"), joins(0, "c2"),
                   happens(50_000, "CONSUMER_LEAVE", "c1"),
                   happens(60_000, "CONSUMER_LEAVE", "c2"))  # fmt: skip
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


# Hosts that are lost without a word: requests to them time out (rocketmq.md §6.1, §6.4).

DOWN = 400_300
THREE_MEMBERS = [joins(5_100, "x"), joins(17_300, "y"), joins(31_700, "z")]
THREE_ON_TWO_BROKERS = [*two_brokers(), *THREE_MEMBERS]
SILENT = (DOWN - 125_000, DOWN)
V5: dict[str, Any] = {"client_version": "5.3.3"}


def apart(future: Future, since_ms: float, until_ms: float) -> list[float]:
    """Begins of successive passes of one client, one less the other, in milliseconds."""
    found = []
    for client in "xyz":
        begins = [ms(each.begin_us) for each in future.passes(client)]
        within = [at for at in begins if since_ms <= at < until_ms]
        found += [b - a for a, b in pairwise(within)]
    return found


@pytest.mark.parametrize("detail", [None, "EXPIRED"])
def test_a_pass_that_asks_a_lost_host_takes_three_seconds_longer(detail: str | None) -> None:
    longer = whole = 0
    for future in futures(
        *THREE_ON_TWO_BROKERS, event(DOWN, "BROKER_DOWN", broker_name="b", detail=detail), **V5
    ):
        for gap in apart(future, *SILENT):
            longer += 23_000 <= gap < 23_600
            whole += 20_000 <= gap < 20_600
    assert (longer > 20) == (detail == "EXPIRED")
    assert (whole > 20) == (detail == "EXPIRED")  # before a broker that stops nothing is followed


def test_until_clients_know_the_new_route_a_lost_host_costs_them_time() -> None:
    gone = {}
    for detail in (None, "EXPIRED"):
        down = event(DOWN, "BROKER_DOWN", broker_name="b", detail=detail)
        gone[detail] = max(
            at - DOWN
            for future in futures(*THREE_ON_TWO_BROKERS, down, **V5, seeds=40)
            for client in "xyz"
            for at, queue in future.drops(client, DOWN)
            if queue.startswith("b")
        )
    assert gone[None] < 51_500
    assert gone[None] < gone["EXPIRED"] < 51_500 + 6_000


def test_heartbeats_to_many_lost_hosts_starve_the_route_poll() -> None:
    """One scheduler thread: thirty hosts take 90 s of every 30 (rocketmq.md §6.1)."""
    brokers = [f"b{number:02}" for number in range(30)]
    topics = [topic(0, 1, "T", broker) for broker in ("a", *brokers)]
    lost = [event(DOWN, "BROKER_DOWN", broker_name=name, detail="EXPIRED") for name in brokers]
    back = {}
    for version, concurrent in (("5.3.3", False), ("5.5.0", True), ("5.3.3", True)):
        options = ClockOptions(exact_times=True, concurrent_heartbeat=concurrent)
        back[version, concurrent] = max(
            at - DOWN
            for future in futures(
                *topics, *THREE_MEMBERS, *lost, options=options, client_version=version
            )
            for client in "xyz"
            for at, queue in future.drops(client, DOWN)
            if not queue.startswith("a")
        )
    assert back["5.5.0", True] < 62_000
    assert back["5.3.3", False] > back["5.5.0", True] + 30_000
    assert back["5.3.3", True] == back["5.3.3", False]  # the option came with 5.5


def test_a_member_that_leaves_while_a_host_is_silent_is_replaced_on_the_other_broker() -> None:
    down = event(DOWN, "BROKER_DOWN", broker_name="b", detail="EXPIRED")
    left = event(DOWN - 60_000, "CONSUMER_LEAVE", "z", channel_id="z/1")
    for future in futures(*THREE_ON_TWO_BROKERS, left, down, options=EXACT, **V5):
        assert future.orphans(DOWN + 70_000) == 4  # those of broker b, which is gone
        assert future.shared(DOWN + 70_000) == 0


# What somebody knows beside the log: processes that stood still, brokers that registered.

SEEDS = range(20)
KNOWN_THREE = [*two_brokers(), joins(5_100, "x"), joins(17_300, "y"), joins(31_700, "z")]
KNOWN_STOPPED_MS = 60_000, 82_000
"""More than a wait, so a pass is due in it."""
LONGEST_PASS_MS = sum(each.longest for each in (DROP_AFTER, ADD_AFTER, PASS_TAIL)) // 1_000


def stopped(client: str, since_ms: int, until_ms: int) -> GroupTimeline:
    timeline = story(*KNOWN_THREE, topic(100_300, 6), client_version="5.3.3")
    lifetime = next(each.index for each in timeline.lifetimes if each.client_id == client)
    at_us = [(START_MS + at_ms) * 1_000 for at_ms in (since_ms, until_ms)]
    return replace(timeline, watched=WatcherKnowledge((ProcessStop(lifetime, *at_us),)))


def begins(timeline: GroupTimeline, seed: int, client: str) -> list[float]:
    lifetime = next(each.index for each in timeline.lifetimes if each.client_id == client)
    passes = play_with_passes(timeline, seed, EXACT).passes
    return [ms(each.begin_us) for each in passes if each.lifetime == lifetime]


def test_a_pass_that_is_due_while_a_process_stands_still_begins_when_it_goes_on() -> None:
    timeline = stopped("y", *KNOWN_STOPPED_MS)
    for seed in SEEDS:
        at = begins(timeline, seed, "y")
        assert not [each for each in at if KNOWN_STOPPED_MS[0] <= each < KNOWN_STOPPED_MS[1]]
        assert KNOWN_STOPPED_MS[1] in at
        after = [each for each in at if each >= KNOWN_STOPPED_MS[1]]
        assert all(20_000 < b - a < 20_000 + LONGEST_PASS_MS for a, b in pairwise(after))


def test_a_stop_between_two_passes_changes_nothing() -> None:
    timeline = stopped("y", 60_000, 82_000)
    unwatched = replace(timeline, watched=WatcherKnowledge())
    for seed in SEEDS:
        at = begins(unwatched, seed, "y")
        since = next(each for each in at if each > 40_000)
        short = stopped("y", int(since) + 1_000, int(since) + 19_000)
        assert begins(short, seed, "y") == at


def test_nobody_else_is_out_of_step_where_all_stops_are_known() -> None:
    timeline = stopped("y", *KNOWN_STOPPED_MS)
    for seed in SEEDS:
        for client in "xz":
            own = [each for each in begins(timeline, seed, client) if 45_000 < each < 140_000]
            assert all(20_000 < b - a < 20_500 for a, b in pairwise(own))


def test_a_broker_that_registered_is_in_the_route_at_once() -> None:
    events = [event(60_300, "BROKER_DOWN", broker_name="b"),
              event(90_300, "BROKER_UP", broker_name="b")]  # fmt: skip
    timeline = story(*KNOWN_THREE, *events, client_version="5.3.3")
    seeds = np.arange(50)
    up_us = (START_MS + 90_300) * 1_000
    late = Ticks(timeline, seeds, EXACT).route_visible_us[0][-1] - up_us
    assert late.max() > 10_000_000  # its first registration may get lost
    known = replace(timeline, watched=WatcherKnowledge())
    assert (Ticks(known, seeds, EXACT).route_visible_us[0][-1] == up_us).all()


def test_the_batch_leaves_stops_to_the_loop_and_holds_to_it_without() -> None:
    timeline = stopped("y", *KNOWN_STOPPED_MS)
    assert reason_of(timeline) == STOPPED
    none = replace(timeline, watched=WatcherKnowledge())
    assert reason_of(none) == REGULAR
    batch, loop = (play(none, SEEDS, EXACT) for play in (play_seeds, play_seeds_one_by_one))
    assert batch.at_us.tolist() == loop.at_us.tolist()
    assert batch.seed.tolist() == loop.seed.tolist()
    assert batch.at_us.tolist() != play_seeds(story(*KNOWN_THREE, topic(100_300, 6),
                                                    client_version="5.3.3"),
                                              SEEDS, EXACT).at_us.tolist()  # fmt: skip
