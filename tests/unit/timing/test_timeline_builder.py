"""Timelines of hand-made histories: lifetimes, routes, brokers and changes."""

from dataclasses import replace
from itertools import pairwise

import numpy as np

from rebalance_core.model import events
from rebalance_core.model.events import EXPIRED, OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.delays import LAST_LEAD, LONGEST_LEAD_MS, START_UP
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER

T0 = 1_700_000_000_123
SEEDS = np.arange(50)


def config(at_ms: int, sequence: int, broker: str, queues: int = 2) -> Event:
    return Event(
        at_ms,
        sequence,
        events.TOPIC_CONFIG,
        topic="T",
        broker_name=broker,
        read_queue_nums=queues,
        write_queue_nums=queues,
        perm=6,
    )


def member(
    at_ms: int,
    sequence: int,
    client: str,
    kind: str = events.CONSUMER_JOIN,
    detail: str | None = None,
    broker: str | None = None,
) -> Event:
    return Event(
        at_ms,
        sequence,
        kind,
        client_id=client,
        channel_id=client[-1],
        detail=detail,
        broker_name=broker,
    )


def timeline(*its_events: Event, options: ClockOptions | None = None) -> GroupTimeline:
    settings = GroupSettings(subscriptions=("T",))
    history = GroupHistory("c", "g", settings, its_events)
    return build_timeline(history, options or ClockOptions())


def test_a_snapshot_is_no_change_and_its_members_hold_their_queues() -> None:
    made = timeline(
        member(T0, 1, "c1", detail=OBSERVED),
        member(T0, 2, "c2", detail=OBSERVED),
        Event(
            T0,
            3,
            events.TOPIC_CONFIG,
            topic="T",
            broker_name="a",
            read_queue_nums=4,
            write_queue_nums=4,
            perm=6,
            detail=OBSERVED,
        ),
        member(T0 + 60_000, 4, "c3"),
    )
    assert [change.causes for change in made.changes] == [("CONSUMER_JOIN",)]
    assert made.initial == (frozenset({0, 1}), frozenset({2, 3}), frozenset())
    assert [lifetime.first_brokers for lifetime in made.lifetimes] == [(0,), (0,), (0,)]
    ticks = Ticks(made, SEEDS, ClockOptions())
    assert (ticks.registered[:2] == BEFORE_ALL).all()
    lead = ticks.joined[2] - ticks.registered[2, 0]
    assert LAST_LEAD.shortest <= lead.min() <= lead.max() <= LAST_LEAD.longest
    assert ticks.unknown_phase.tolist() == [True, True, False]


def test_a_stay_ends_and_another_begins() -> None:
    made = timeline(
        config(T0, 0, "a"),
        member(T0, 1, "c1"),
        member(T0 + 5_000, 2, "c1", events.CONSUMER_LOST, EXPIRED),
        member(T0 + 9_000, 3, "c1"),
        member(T0 + 11_000, 4, "c9", events.CONSUMER_LEAVE),
    )
    first, second = made.lifetimes
    assert first.entity != second.entity
    assert first.ending is not None
    assert (first.ending.graceful, first.ending.notified) == (False, False)
    assert second.ending is None
    assert [event.client_id for event in made.unknown_members] == ["c9"]


def test_windows_end_where_the_next_begins() -> None:
    made = timeline(
        config(T0, 0, "a"),
        member(T0, 1, "c1"),
        member(T0 + 5_000, 2, "c2"),
        config(T0 + 600_000, 3, "b"),
    )
    lead = LONGEST_LEAD_MS * 1_000
    assert [change.change_ms - T0 for change in made.changes] == [0, 5_000, 600_000]
    assert made.changes[0].end_us == made.changes[1].begin_us == (T0 + 5_000) * 1_000 - lead
    assert made.changes[1].end_us == (T0 + 245_000) * 1_000
    assert made.changes[2].begin_us == (T0 + 600_000 - 1) * 1_000


def test_windows_of_changes_within_a_second_do_not_cross() -> None:
    made = timeline(config(T0, 0, "a"), member(T0, 1, "c1"), member(T0 + 300, 2, "c2"))
    assert made.changes[0].end_us == made.changes[1].begin_us == T0 * 1_000 + 1


def test_the_last_broker_is_registered_just_before_the_join() -> None:
    brokers = [
        config(T0, number, name) for number, name in enumerate(("broker-a", "broker-b", "broker-c"))
    ]
    ticks = Ticks(timeline(*brokers, member(T0, 9, "c1")), SEEDS, ClockOptions())
    a, b, c = ticks.registered[0]
    assert (b < c).all()
    assert (c < a).all()
    assert (ticks.created[0] <= b).all()
    lead = ticks.joined[0] - a
    assert LAST_LEAD.shortest <= lead.min() <= lead.max() <= LAST_LEAD.longest


def test_a_lite_pull_consumer_registers_by_its_timer() -> None:
    made = timeline(config(T0, 0, "a"), member(T0, 1, "c1"))
    pulling = replace(made, settings=replace(made.settings, consumer_type="LITE_PULL"))
    ticks = Ticks(pulling, SEEDS, ClockOptions())
    assert (ticks.registered[0, 0] > ticks.timers_start[0] + 1_000_000).all()
    lead_us = LONGEST_LEAD_MS * 1_000
    assert (ticks.created[0] < ticks.joined[0] - 2 * lead_us).any()
    assert (ticks.registered[0, 0] >= ticks.joined[0] - lead_us).all()


def test_routes_of_a_broker_that_goes_and_comes_back() -> None:
    made = timeline(
        config(T0, 0, "b"),
        config(T0, 1, "a"),
        member(T0, 2, "c1"),
        Event(T0 + 10_000, 3, events.BROKER_DOWN, broker_name="b", detail=EXPIRED),
        Event(T0 + 20_000, 4, events.BROKER_DOWN, broker_name="a"),
        Event(T0 + 30_000, 5, events.BROKER_UP, broker_name="b"),
    )
    (versions,) = made.routes
    assert made.brokers == ("a", "b")
    assert [version.brokers for version in versions] == [(0, 1), (0,), (), (1,)]
    assert [version.gone for version in versions] == [False, False, True, False]
    lifetimes = [
        (lifetime.broker, lifetime.up is None, lifetime.down is None, lifetime.host_lost)
        for lifetime in made.broker_lifetimes
    ]
    assert lifetimes == [(0, True, False, False), (1, True, False, True), (1, False, True, False)]
    visible = Ticks(made, SEEDS, ClockOptions()).route_visible_us[0]
    assert (np.diff(visible, axis=0) > 0).all()


def test_what_one_broker_alone_saw() -> None:
    made = timeline(
        config(T0, 0, "a"),
        config(T0, 1, "b"),
        member(T0, 2, "c1"),
        Event(
            T0 + 1_234, 3, events.CONSUMER_JOIN, client_id="c1", channel_id="again", broker_name="b"
        ),
        member(T0 + 2_345, 4, "c1", events.CONSUMER_LOST, "CLOSED", broker="a"),
        member(T0 + 3_456, 5, "c2", broker="a"),
    )
    real, stale_entry, partial = made.lifetimes
    assert (stale_entry.stale_entry, stale_entry.first_brokers) == (True, (1,))
    assert (partial.stale_entry, partial.first_brokers) == (False, (0,))
    assert [(seen.broker, seen.listed, seen.notified) for seen in real.sightings] == [
        (0, False, True)
    ]
    assert real.ending is None
    assert T0 + 2_345 in [change.change_ms for change in made.changes]


def test_a_whole_second_is_taken_as_logged_to_the_second() -> None:
    whole = T0 - T0 % 1_000
    its_events = (config(T0, 0, "a"), member(T0 + 1, 1, "c1"), member(whole + 60_000, 2, "c2"))
    ticks = Ticks(timeline(*its_events), SEEDS, ClockOptions())
    late = ticks.joined[1] - (whole + 60_000) * 1_000
    assert 0 <= late.min() < late.max() < 1_000_000
    middle = timeline(*its_events[:2], member(whole + 60_500, 2, "c2"))
    late = Ticks(middle, SEEDS, ClockOptions()).joined[1] - (whole + 60_000) * 1_000
    assert 0 <= late.min() < 500_000 < late.max() < 1_000_000
    exact = ClockOptions(exact_times=True)
    ticks = Ticks(timeline(*its_events, options=exact), SEEDS, exact)
    assert (ticks.joined[1] == (whole + 60_000) * 1_000).all()


def test_phases_are_known_from_a_join_unless_random_ones_are_asked_for() -> None:
    its_events = (config(T0, 0, "a"), member(T0, 1, "c1"))
    known = Ticks(timeline(*its_events), SEEDS, ClockOptions())
    random = ClockOptions(phases=RANDOM_PHASES)
    unknown = Ticks(timeline(*its_events), SEEDS, random)
    assert (known.joined - known.created).max() <= START_UP.longest
    assert (unknown.joined - unknown.created).max() > 25_000_000


def test_who_starts_together_takes_equally_long_in_half_of_the_futures() -> None:
    """Joins up to 5 s apart; the one after them has its own time, in all but chance."""
    joins = (member(T0 + at_ms, n, f"c{n}") for n, at_ms in enumerate((60_001, 65_001, 70_002), 1))
    ticks = Ticks(timeline(config(T0, 0, "a"), *joins), np.arange(1_000), ClockOptions())
    start_up = ticks.joined - ticks.created
    assert 0.4 < (start_up[0] == start_up[1]).mean() < 0.6
    assert (start_up[1] == start_up[2]).mean() < 0.02


def test_ticks_run_from_the_creation() -> None:
    ticks = Ticks(timeline(config(T0, 0, "a"), member(T0, 1, "c1")), SEEDS, ClockOptions())
    at = ticks.joined[0] + 100_000_000
    polls, beats = np.arange(20)[:, None], np.arange(40)[:, None]
    poll = (ticks.poll_us(0, polls) < at).sum(axis=0)
    assert (ticks.poll_us(0, poll) >= at).all()
    assert (ticks.poll_us(0, poll - 1) < at).all()
    assert (ticks.poll_answered_us(0, poll) > ticks.poll_us(0, poll)).all()
    beat = (ticks.heartbeat_us(0, beats) < ticks.poll_us(0, poll)).sum(axis=0)
    late = ticks.heartbeat_us(0, beat) - ticks.poll_us(0, poll)
    assert set(late.tolist()) == {990_000}


def test_endings_reach_brokers_one_after_the_other_or_by_their_scans() -> None:
    made = timeline(
        config(T0, 0, "a"),
        config(T0, 1, "b"),
        member(T0, 2, "c1"),
        member(T0, 3, "c2"),
        member(T0, 4, "c3"),
        member(T0 + 9_001, 5, "c1", events.CONSUMER_LEAVE),
        member(T0 + 9_001, 6, "c2", events.CONSUMER_LOST, EXPIRED),
    )
    ticks = Ticks(made, SEEDS, ClockOptions())
    left = np.sort(ticks.unregistered[0], axis=0) - (T0 + 9_001) * 1_000
    assert (left[0] > 0).all()
    assert (left[1] > left[0]).all()
    scanned = np.sort(ticks.unregistered[1], axis=0) - (T0 + 9_001) * 1_000
    assert (scanned[0] == 0).all()
    assert scanned[1].max() > 5_000_000
    assert (ticks.unregistered[2] == NEVER).all()


def test_what_happens_to_a_broker_within_a_second_keeps_its_order() -> None:
    """Logged to the second it is anywhere in that second, but not before what came first."""
    second = (T0 // 1_000 + 100) * 1_000
    told = (
        (second, events.BROKER_DOWN), (second + 500, events.BROKER_UP),
        (second + 600, events.MASTER_DOWN), (second + 1_000, events.MASTER_UP),
        (second + 1_003, events.MASTER_DOWN), (second + 1_500, events.MASTER_UP),
        (second + 1_501, events.BROKER_DOWN),
    )  # fmt: skip
    made = timeline(
        config(T0, 0, "a"),
        member(T0, 1, "c1"),
        *(Event(at, 2 + n, kind, broker_name="a") for n, (at, kind) in enumerate(told)),
    )
    ticks = Ticks(made, SEEDS, ClockOptions())
    lifetimes = zip(made.broker_lifetimes, ticks.broker_lifetimes_us, strict=True)
    (_, first_down), (up, down) = [times for lifetime, times in lifetimes if lifetime.broker == 0]
    assert (first_down <= up).all()
    assert (up == first_down).any()
    assert (up <= down).all()
    moments = [at for times in ticks.lockless_us for at in times]
    assert len(moments) == 4
    for earlier, later in pairwise(moments):
        assert (earlier <= later).all()


def test_order_locks_are_lost_whenever_another_process_gives_them() -> None:
    """rocketmq.md §15: a slave that acts, and the master that is back, know none."""
    told = (
        (events.MASTER_DOWN, "REFUSED"), (events.MASTER_DOWN, "SLAVE_READ"),
        (events.MASTER_DOWN, "ACTING"), (events.MASTER_DOWN, "ACTING"),
        (events.MASTER_UP, None), (events.MASTER_UP, None),
        (events.MASTER_DOWN, "ACTING"), (events.MASTER_UP, None),
    )  # fmt: skip
    made = timeline(
        config(T0, 0, "a"),
        member(T0, 1, "c1"),
        *(
            Event(T0 + 60_000 * (1 + n), 2, kind, broker_name="a", detail=detail)
            for n, (kind, detail) in enumerate(told)
        ),
    )
    found = [
        tuple(at and (at.event_us // 1_000 - T0) // 60_000 for at in (each.since, each.until))
        for each in made.lockless
    ]
    assert found == [(1, 3), (5, 5), (7, 7), (8, 8)]
