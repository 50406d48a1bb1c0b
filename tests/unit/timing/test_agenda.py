"""The order of the agenda, the clock of passes, and which members get a notice."""

from functools import partial
from typing import Any

import pytest

from rebalance_core.timing.operations import Operation, operation_id
from rebalance_core.timing.reference.event_queue import EventQueue, Kind
from rebalance_core.timing.reference.pass_clock import PassClock
from rebalance_core.timing.stretches import stretches_of
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import futures, joins, ms, story, two_brokers

SECOND = 1_000_000


def test_what_is_due_at_one_moment_is_done_by_kind_process_broker_and_turn() -> None:
    done: list[str] = []
    agenda = EventQueue()
    for name, kind, process, broker in (
        ("pass", Kind.PASS, 0, -1),
        ("z hears of b", Kind.NOTICE, 2, 1),
        ("x hears of b", Kind.NOTICE, 0, 1),
        ("x hears of a", Kind.NOTICE, 0, 0),
        ("again", Kind.NOTICE, 0, 0),
        ("event", Kind.TIMELINE, 9, -1),
    ):
        agenda.put(5, kind, partial(done.append, name), process=process, broker=broker)
    agenda.put(6, Kind.TIMELINE, lambda: done.append("too late"))
    agenda.run_until(6)
    assert done == ["event", "x hears of a", "again", "x hears of b", "z hears of b", "pass"]
    assert agenda.now_us == 6


def test_what_is_put_down_for_the_past_is_done_now() -> None:
    agenda = EventQueue()
    times: list[int] = []
    agenda.put(10, Kind.PASS, lambda: agenda.put(3, Kind.POLL, lambda: times.append(agenda.now_us)))
    agenda.run_until(20)
    assert times == [10]


def clock(**fields: Any) -> PassClock:
    usual = {"min_interval_us": SECOND, "length_us": 5_000, "own_wait_us": 20 * SECOND}
    return PassClock(**{"last_end_us": 0} | usual | fields)


@pytest.mark.parametrize(
    ("woken_us", "min_interval_us", "next_us"),
    [
        (None, SECOND, 20 * SECOND),
        (300, SECOND, SECOND),
        (5 * SECOND, SECOND, 5 * SECOND),
        (25 * SECOND, SECOND, 20 * SECOND),
        (-5, 0, 0),
        (300, 0, 300),
    ],
)
def test_a_wake_up_brings_the_next_pass_forward_but_not_below_the_minimum(
    woken_us: int | None, min_interval_us: int, next_us: int
) -> None:
    assert clock(woken_us=woken_us, min_interval_us=min_interval_us).next_us == next_us


def test_wake_ups_are_a_latch_that_a_pass_uses_up() -> None:
    its = clock()
    its.wake(7 * SECOND)
    its.wake(5 * SECOND)
    its.wake(6 * SECOND)
    assert its.next_us == 5 * SECOND
    assert its.begin(5 * SECOND) == 0
    assert its.woken_us is None
    assert its.next_us == 25 * SECOND + 5_000


def test_an_unbalanced_pass_is_followed_by_one_a_second_later_from_5_2_on() -> None:
    new, old = clock(), clock(min_interval_us=0)
    for its in (new, old):
        its.begin(SECOND)
        its.unbalanced()
    assert new.next_us == 2 * SECOND + 5_000
    assert old.next_us == 21 * SECOND + 5_000


def test_idle_passes_are_counted_and_forget_wake_ups() -> None:
    its = clock(number=3, woken_us=SECOND)
    its.skip_idle(61 * SECOND)
    assert (its.number, its.last_end_us, its.woken_us) == (6, 3 * (20 * SECOND + 5_000), None)
    its.skip_idle(60 * SECOND)
    assert its.number == 6


def test_operations_have_ids_of_their_own() -> None:
    ids = {
        operation_id(entity, broker, lifetime, operation, number)
        for entity in (1, 2)
        for broker in "ab"
        for lifetime in (0, 1)
        for operation in Operation
        for number in (0, 1, 7)
    }
    assert len(ids) == 2 * 2 * 2 * len(Operation) * 3
    assert all(0 <= each < 1 << 63 for each in ids)


def test_changes_whose_windows_touch_are_one_stretch() -> None:
    made = story(
        *two_brokers(),
        joins(5_100, "x"),
        topic(100_300, 6),
        topic(900_300, 7),
        event(2_000_300, "BROKER_DOWN", broker_name="b", detail="EXPIRED"),
    )
    found = list(stretches_of(made))
    assert [list(each.changes) for each in found] == [[0, 1], [2], [3]]
    assert [ms(each.end_us) for each in found] == [340_300, 1_140_300, 2_240_300]
    assert ms(found[1].begin_us) == 900_299
    assert ms(found[2].begin_us) == 2_000_299 - 125_000  # the host was silent before


def test_a_newer_notification_stops_the_loop_of_an_older_one() -> None:
    """Two are lost one after the other: from 5.3.3 on some hear of the second alone."""
    members = [joins(5_000 * (n + 1), name) for n, name in enumerate("vwxyz")]
    gone = [
        event(100_001 + n, "CONSUMER_LOST", name, channel_id=f"{name}/1")
        for n, name in enumerate("yz")
    ]
    woken = {"5.3.2": 0, "5.3.3": 0}
    for version in woken:
        for future in futures(
            topic(0, 8), *members, *gone, seeds=30, client_version="5.1.4", broker_version=version
        ):
            woken[version] += sum(
                one.trigger == "woken" and 100_000 <= ms(one.begin_us) < 102_000
                for one in future.played.passes
            )
            assert future.orphans(103_000) == 0
    assert woken["5.3.2"] == 30 * 3 * 2
    assert woken["5.3.3"] < woken["5.3.2"]
