"""When queues change hands: timers, notices, locks (rocketmq.md §3.1, §6.4, §7, §13)."""

from collections import Counter
from itertools import pairwise
from typing import Any

import pytest

from rebalance_core.protocol.settling_windows import MASTER_BACK_MS
from rebalance_core.timing.delays import ADD_AFTER, DROP_AFTER, PASS_LENGTH
from rebalance_core.timing.draws import Timer, uniform
from rebalance_core.timing.options import ClockOptions
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import (
    EXACT,
    SECOND,
    START_MS,
    Future,
    futures,
    happens,
    joins,
    ms,
    two_brokers,
)

V4: dict[str, Any] = {"client_version": "4.9.7", "broker_version": "4.9.7"}
V5: dict[str, Any] = {"client_version": "5.3.3"}
THREE = [*two_brokers(), joins(5_100, "x"), joins(17_300, "y"), joins(31_700, "z")]
BOTH = pytest.mark.parametrize("versions", [V4, V5], ids=["4.9", "5.3"])


@BOTH
def test_survivors_of_a_graceful_leave_take_over_at_once(versions: dict[str, Any]) -> None:
    for future in futures(*THREE, happens(100_300, "CONSUMER_LEAVE", "z"), **versions):
        taken = [at for client in "xy" for at, _ in future.takes(client, 100_300)]
        assert len(taken) == 3  # x one of y's, y both of z's
        assert all(100_300 < at < 105_300 for at in taken)


@BOTH
def test_who_is_found_by_the_scan_is_replaced_by_the_survivors_own_passes(
    versions: dict[str, Any],
) -> None:
    lost = happens(100_300, "CONSUMER_LOST", "z", detail="EXPIRED")
    late = []
    for future in futures(*THREE, lost, **versions):
        late += [at - 100_300 for at, _ in future.takes("y", 100_300)]
        assert future.orphans(135_000) == 0
    assert 10_000 < max(late) < 31_500


@BOTH
def test_after_a_join_route_events_move_queues_at_once_or_20_seconds_apart(
    versions: dict[str, Any],
) -> None:
    together = Counter[bool]()
    for future in futures(*THREE, topic(40_300, 6), seeds=40, **versions):
        for gap in future.hand_overs(40_300):
            together[
                min(abs(gap - step) for step in (-40_000, -20_000, 0, 20_000, 40_000)) < 1_500
            ] += 1
        assert future.orphans(100_000) == future.shared(100_000) == 0
    assert together[True] > 9 * together[False]
    assert together[True] > 50


def late_topic(version: str) -> list[tuple[float, list[float]]]:
    """(when the first queue of a late topic was taken, begins of the passes since it came)."""
    came, found = 60_300, []
    events = [
        topic(0, 4, detail="OBSERVED"),
        *(joins(0, c, subscriptions=("T", "U"), detail="OBSERVED") for c in "xy"),
        topic(came, 4, "U"),
    ]
    for future in futures(*events, seeds=60, client_version=version):
        for client in "xy":
            first = min(at for at, queue in future.takes(client) if queue.startswith("U/"))
            begins = [ms(one.begin_us) for one in future.passes(client)]
            found.append((first - came, [at for at in begins if came < at <= first]))
    return found


def test_a_topic_that_a_pass_fetched_is_taken_by_the_pass_20_seconds_later() -> None:
    found = late_topic("5.3.3")
    assert max(first for first, _ in found) < 41_000
    two_passes = [begins for _, begins in found if len(begins) == 2]
    assert len(two_passes) > 20
    for earlier, later in two_passes:
        assert later - earlier == pytest.approx(20_000, abs=500)


def test_in_5_5_no_pass_fetches_a_route() -> None:
    """A client waits for its route poll, so a third pass is possible (rocketmq.md §15)."""
    assert 41_000 < max(first for first, _ in late_topic("5.5.0")) < 52_000


ORDERLY: dict[str, Any] = {"ordered": True}


@BOTH
def test_the_locks_of_a_killed_member_block_its_queues_for_up_to_a_minute(
    versions: dict[str, Any],
) -> None:
    after = []
    for future in futures(*THREE, happens(100_300, "CONSUMER_LOST", "z"), **versions, **ORDERLY):
        gone = [(end, q) for q, spans in future.held.items() for _, end, who in spans if who == "z"]
        assert {end for end, _ in gone if end >= 100_300} == {100_300}
        blocked = {queue for end, queue in gone if end == 100_300}
        after += [at - 100_300 for at, queue in future.takes("y", 100_300) if queue in blocked]
        assert future.orphans(100_300 + 39_500) == len(blocked) == 2
        assert future.orphans(162_500) == 0
    assert 40_000 <= min(after) <= max(after) < 61_500
    if versions is V4:  # passes at 0, 20, 40 and 60 s
        assert all(abs(at - 60_000) < 1_500 or abs(at - 40_000) < 1_500 for at in after)


def test_a_pass_whose_locks_are_all_refused_ends_with_its_question() -> None:
    """Or as one that changes nothing; the next one begins a second later (rocketmq.md §3.1, §7)."""
    count = 0
    for seed, future in enumerate(
        futures(*THREE, happens(100_300, "CONSUMER_LOST", "z"), **V5, **ORDERLY)
    ):
        lifetime = next(each for each in future.timeline.lifetimes if each.client_id == "y")
        length = PASS_LENGTH.delay_of(uniform(seed, lifetime.entity, Timer.PASS_LENGTH))
        passes = [one for one in future.passes("y") if 103_000 < ms(one.begin_us) < 139_000]
        for before, after in pairwise(passes):
            asked = sum(
                delay.delay_of(uniform(seed, lifetime.entity, timer, before.number))
                for delay, timer in ((DROP_AFTER, Timer.DROP_AFTER), (ADD_AFTER, Timer.ADD_AFTER))
            )
            assert after.begin_us - before.begin_us == max(length, asked) + SECOND
            count += 1
    assert count > 400


@BOTH
def test_no_queue_has_two_orderly_owners(versions: dict[str, Any]) -> None:
    events = [topic(60_300, 6), joins(90_700, "w"), happens(130_300, "CONSUMER_LEAVE", "x")]
    for future in futures(*THREE, *events, **versions, **ORDERLY):
        for queue, spans in future.held.items():
            for (_, end, _), (begin, _, _) in pairwise(spans):
                assert end <= begin, queue
        assert future.orphans(300_000) == 0


def test_before_5_2_a_queue_with_a_backlog_is_unlocked_20_seconds_later() -> None:
    """Its taker asks again with its next pass, 20 s after the refusal in 4.9 (rocketmq.md §7)."""
    gaps = []
    for future in futures(*THREE, joins(90_700, "w"), seeds=40, **V4, **ORDERLY):
        gaps += future.hand_overs(90_000)
    assert sum(gap > 19_000 for gap in gaps) > len(gaps) // 4
    assert sum(gap < 2_000 for gap in gaps) > len(gaps) // 8
    assert all(gap < 41_500 for gap in gaps)


def test_from_5_2_on_it_is_unlocked_within_a_second() -> None:
    for future in futures(*THREE, joins(90_700, "w"), seeds=40, **V5, **ORDERLY):
        assert max(future.hand_overs(90_000)) < 4_000


def test_without_a_master_no_order_lock_is_given() -> None:
    events = [
        event(60_300, "MASTER_DOWN", broker_name="b"),
        happens(80_300, "CONSUMER_LEAVE", "z"),
        event(150_300, "MASTER_UP", broker_name="b"),
    ]
    for future in futures(*THREE, *events, **V5, **ORDERLY):
        assert [queue for queue, who in future.owners(150_000).items() if not who] == ["b2", "b3"]
        # Members ask the master once their poll has its address, in a pass, for 30 s or more.
        assert future.orphans(150_350) == 2
        assert future.orphans(150_300 + MASTER_BACK_MS) == 0


def test_a_slave_that_acts_as_master_gives_locks_and_knows_none_of_the_masters() -> None:
    events = [
        event(60_300, "MASTER_DOWN", broker_name="b", detail="ACTING"),
        happens(80_300, "CONSUMER_LEAVE", "z"),
        event(150_300, "MASTER_UP", broker_name="b"),
    ]
    shared = 0
    for future in futures(*THREE, *events, seeds=60, **V5, **ORDERLY):
        assert future.orphans(150_000) == future.orphans(150_300 + MASTER_BACK_MS) == 0
        assert future.shared(150_000) == future.shared(150_300 + MASTER_BACK_MS) == 0
        shared += any(future.shared(at) for at in range(150_300, 210_300, 100))
    assert 0 < shared < 60


def test_a_pass_begins_where_the_formula_gives() -> None:
    """min(end of last + 20 s, max(wake-up, end of last + 1 s)); idle passes are as long as ever."""
    for future in futures(*THREE, seeds=5, **V5):
        for client in "xyz":
            passes = future.passes(client)
            assert [one.number for one in passes] == list(range(len(passes)))
            for before, after in pairwise(passes):
                apart = after.begin_us - before.begin_us
                assert SECOND < apart <= 23 * SECOND
                if after.trigger == "own":
                    assert apart >= 20 * SECOND


def test_something_unlogged_may_have_put_a_clock_out_of_step() -> None:
    """One in ten of the clocks that are at rest, at each change that others lie far from."""
    moved = whole = 0
    for future in futures(*THREE, topic(100_300, 6), seeds=60, **V5):
        for client in "xyz":
            begins = [each.begin_us for each in future.passes(client)]
            before = max(at for at in begins if ms(at) < 100_300)
            after = min(at for at in begins if ms(at) >= 100_300)
            if 19_900_000 < after - before < 20_500_000:
                whole += 1
            else:
                moved += 1
    assert 5 <= moved <= 40
    assert whole > 120


def test_a_long_rest_between_two_changes_costs_nothing_and_keeps_the_clocks() -> None:
    """Idle passes are counted, and route polls keep their phase."""
    day = 86_400_000
    for future in futures(*THREE, topic(day + 300, 6), seeds=5, **V5):
        assert len(future.played.passes) < 100
        numbers = [one.number for one in future.passes("x")]
        assert numbers[-1] > day / 20_100 - 20
        first = [min(at for at, _ in future.takes(c, day)) for c in "xyz" if future.takes(c, day)]
        assert all(0 < at - day - 300 < 51_500 for at in first)


def test_events_logged_to_the_second_happen_within_it() -> None:
    left = happens(100_000, "CONSUMER_LEAVE", "z")
    options = ClockOptions()
    gone = {at for f in futures(*THREE, left, options=options, **V5) for at, _ in f.drops("z", 1e5)}
    assert len(gone) == 20
    assert all(100_000 <= at < 101_000 for at in gone)


@BOTH
def test_a_future_depends_on_its_seed_alone(versions: dict[str, Any]) -> None:
    def rows(future: Future) -> list[list[int]]:
        log = future.played.log
        return [log.lifetime.tolist(), log.queue.tolist(), log.at_us.tolist(), log.delta.tolist()]

    first = [rows(future) for future in futures(*THREE, seeds=3, **versions)]
    again = [rows(future) for future in futures(*THREE, seeds=3, **versions)]
    assert first == again
    assert first[0] != first[1]


def test_members_that_were_there_before_the_log_hold_their_queues_from_the_start() -> None:
    there = [
        topic(0, 4, detail="OBSERVED"),
        joins(0, "x", detail="OBSERVED"),
        joins(0, "y", detail="OBSERVED"),
    ]
    phases = set()
    for future in futures(*there, joins(3_600_100, "z"), **V5):
        assert future.timeline.initial[:2] == (frozenset({0, 1}), frozenset({2, 3}))
        assert future.owners(3_660_000) == {"a0": ["x"], "a1": ["x"], "a2": ["y"], "a3": ["z"]}
        phases.add(future.passes("x")[0].begin_us % SECOND)
    assert len(phases) == 20
    assert START_MS % 1_000 == 0
    assert EXACT.exact_times
