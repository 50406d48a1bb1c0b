"""What is known beside the log: processes that stood still, brokers that registered."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from rebalance_core.timing.delays import ADD_AFTER, DROP_AFTER, PASS_TAIL
from rebalance_core.timing.group_timeline import GroupTimeline, ProcessStop, WatcherKnowledge
from rebalance_core.timing.reference.play import play_seeds_one_by_one, play_with_passes
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import REGULAR, STOPPED
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import EXACT, START_MS, joins, ms, story, two_brokers

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


def test_no_other_member_is_out_of_step_where_all_stops_are_known() -> None:
    timeline = stopped("y", *KNOWN_STOPPED_MS)
    for seed in SEEDS:
        for client in "xz":
            own = [each for each in begins(timeline, seed, client) if 45_000 < each < 140_000]
            assert all(20_000 < b - a < 20_500 for a, b in pairwise(own))


def test_a_broker_that_registered_is_in_the_route_at_once() -> None:
    events = [
        event(60_300, "BROKER_DOWN", broker_name="b"),
        event(90_300, "BROKER_UP", broker_name="b"),
    ]
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
    assert (
        batch.at_us.tolist()
        != play_seeds(
            story(*KNOWN_THREE, topic(100_300, 6), client_version="5.3.3"), SEEDS, EXACT
        ).at_us.tolist()
    )
