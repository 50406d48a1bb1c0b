"""Groups that share client instances: a notice to one runs passes of all."""

from collections import Counter
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest

from rebalance_core.model import events
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import ClockOptions
from rebalance_core.timing.reference.play import play_with_passes
from rebalance_core.timing.shared_instances import SharedInstanceWakes
from rebalance_core.timing.ticks import Ticks
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.timer_periods import BEFORE_ALL, NEVER, POLL_US
from rebalance_core.timing.vectorized.reference_only import REGULAR, SHARED_CLIENTS, reason_of
from tests.unit.kernels.random_groups import groups
from tests.unit.replay.histories import event, history, topic
from tests.unit.timing.futures import EXACT, Future, happens, joins, shifted
from tests.unit.timing.test_vectorized_equals_reference import (
    AFTER_MS,
    CALM_VERSIONS,
    OPTIONS,
    Tally,
    awake,
    compare,
    quietly,
    with_own_timers,
)

V5: dict[str, Any] = {"subscriptions": ("T",), "client_version": "5.3.3", "broker_version": "5.3.3"}


def sharing(one: GroupHistory, *others: GroupHistory) -> GroupHistory:
    """The first group, with the other ones in its instances."""
    sharing_groups = (replace(each, consumer_group=f"mate-{n}") for n, each in enumerate(others))
    return replace(one, sharing_groups=tuple(sharing_groups))


def known_beforehand(one: GroupHistory) -> GroupHistory:
    """The group without most of what makes its passes wake others."""
    left_out = (events.BROKER_UP, events.BROKER_DOWN, *events.MASTER_EVENTS)
    kept = tuple(
        replace(each, strategy=None, broker_name=None if each.client_id else each.broker_name)
        for each in one.events
        if each.event_type not in left_out
    )
    settings = replace(one.settings, strategy="AVG", ordered=False, consumer_type="PUSH")
    return replace(one, events=kept, settings=settings)


@pytest.mark.parametrize("own_timers", [False, True])
def test_loop_and_batch_play_groups_that_share_clients_alike(seed: int, own_timers: bool) -> None:
    """Also where clients have other intervals, and brokers or groups tell nobody."""
    tally, woken = Tally(), Counter[str]()

    def check(
        one: GroupHistory, other: GroupHistory, options: ClockOptions, version: str, after_ms: int
    ) -> None:
        its = awake(one, 0, version, version, mixed=False)
        others = [
            awake(other, after_ms, version, version, mixed=False),
            awake(one, after_ms + 1_234, version, version, mixed=False),  # all of its clients
        ]
        others = list(map(known_beforehand, others))
        if own_timers:
            its, *others = (with_own_timers(each, after_ms) for each in (its, *others))
        shared = sharing(its, *others)
        compare(shared, options, tally)
        ticks = Ticks(build_timeline(shared, options), np.arange(1), options)
        woken["wakes"] += len(list(SharedInstanceWakes(ticks).between(BEFORE_ALL, NEVER)))

    any_groups = groups(traits=("timers",)) if own_timers else groups()
    quietly(check, 160, seed, any_groups, any_groups, OPTIONS, CALM_VERSIONS, AFTER_MS)
    assert tally.reasons[REGULAR] > 5
    assert tally.rows > 40
    assert woken["wakes"] > 60


def scale_out(*sharing_groups: GroupHistory) -> GroupTimeline:
    """Two members and a topic that gets more queues at 10 s, with other groups in c1's instance."""
    happen = (
        *(topic(0, 2, "T", name) for name in "ab"),
        joins(0, "c1"),
        joins(0, "c2"),
        *(topic(600_000, 4, "T", name) for name in "ab"),
    )
    its = history(*shifted(happen), **V5)
    return build_timeline(replace(its, sharing_groups=sharing_groups), EXACT)


def flapping(client: str, channel: str | None = None) -> GroupHistory:
    """A group in the instance of a client, in which another process comes every 5 s."""
    happen = [topic(0, 2, "U", "a"), joins(1_000, client, channel, subscriptions=("U",))]
    for n in range(24):
        happen.append(joins(560_000 + 5_000 * n, f"other{n}", subscriptions=("U",)))
    return replace(history(*shifted(happen), **V5 | {"subscriptions": ("U",)}), consumer_group="u")


def first_takes(timeline: GroupTimeline, *clients: str, seeds: int = 60) -> list[list[float]]:
    """Of each client, by future: how long after the scale-out it takes its first new queue, s."""
    futures = [Future(timeline, play_with_passes(timeline, seed, EXACT)) for seed in range(seeds)]
    return [
        [(min(future.takes(client, 600_000))[0] - 600_000) / 1_000 for future in futures]
        for client in clients
    ]


@cache
def beside_a_flapping_group() -> list[list[float]]:
    """What c1 and c2 take first where c1 is in a flapping group, too."""
    return first_takes(scale_out(flapping("c1")), "c1", "c2")


def test_a_flapping_group_of_the_instance_makes_its_other_groups_act_earlier() -> None:
    """A pass follows the route poll by up to 5 s where another group is told every 5 s, not 20."""
    (alone,), (beside, other) = first_takes(scale_out(), "c1"), beside_a_flapping_group()
    assert max(alone) > 38
    assert max(beside) < 36.5
    assert max(other) > 38  # is in no other group


def test_a_paused_group_of_the_instance_makes_its_other_groups_pass_every_second() -> None:
    """From 5.2 on a pass is unbalanced as long as one of the groups is suspended."""
    suspends = happens(560_000, "CONSUMER_SUSPEND", "c1")
    happen = (topic(0, 2, "U", "a"), joins(1_000, "c1", subscriptions=("U",)), suspends)
    paused = history(*shifted(happen), **V5 | {"subscriptions": ("U",)})
    beside = scale_out(replace(paused, consumer_group="u"))
    assert reason_of(beside) == SHARED_CLIENTS
    its, other = first_takes(beside, "c1", "c2", seeds=30)
    assert max(its) < 32.5
    assert max(other) > 38


def test_notices_that_a_broker_gathers_wake_other_groups_of_the_instance_when_it_sends_them() -> (
    None
):
    """Of one that is told every 5 s, every 15 s."""
    its = flapping("c1")
    (first, *_) = shifted([event(500, "NOTICES", broker_name="a", detail="BATCHED")])
    gathered = replace(its, events=(first, *its.events))
    beside = scale_out(gathered)
    assert reason_of(beside) == SHARED_CLIENTS
    assert 38 < max(first_takes(beside, "c1")[0]) < 46.5
    assert max(beside_a_flapping_group()[0]) < 36.5


def test_retries_for_order_locks_wake_the_other_groups_of_the_instance() -> None:
    """A killed member's locks live for 60 s; whoever wants them asks every second meanwhile."""
    happen = [
        topic(0, 4, "U", "a"), joins(1_000, "c1", subscriptions=("U",)),
        joins(2_000, "dead", subscriptions=("U",)), happens(598_000, "CONSUMER_LOST", "dead"),
    ]  # fmt: skip
    orderly = history(*shifted(happen), ordered=True, **V5 | {"subscriptions": ("U",)})
    beside = scale_out(replace(orderly, consumer_group="u"))
    assert reason_of(beside) == SHARED_CLIENTS
    its, other = first_takes(beside, "c1", "c2", seeds=30)
    assert max(its) < 34
    assert max(other) > 38


def test_one_tick_commits_the_offsets_of_all_groups_of_an_instance() -> None:
    """The ages of the last commits of two groups of a client are equal, as are their intervals."""
    late = history(*shifted((topic(0, 2, "U", "a"), joins(77_777, "c1"))), **V5)
    its = joins(0, "c1", persist_consumer_offset_interval_ms=7_000)
    first = history(*shifted((topic(0, 2, "T", "a"), its)), **V5)
    timeline = build_timeline(
        replace(late, sharing_groups=(replace(first, consumer_group="f"),)), EXACT
    )
    assert timeline.lifetimes[0].intervals.persist_consumer_offset_interval_ms == 7_000
    ticks = Ticks(timeline, np.arange(50), EXACT)
    lifetime, seeds, at_us = np.zeros(50, np.int64), np.arange(50), np.full(50, 10**15)
    ages = ticks.commit_age_us(lifetime, seeds, at_us)
    assert len(set(ages.tolist())) > 40
    assert (ages == ticks.sharing_groups[0].commit_age_us(lifetime, seeds, at_us)).all()
    assert (ages < 7_000_000).all()


def test_another_process_of_the_same_client_id_is_no_other_group_of_the_instance() -> None:
    """Before 4.9 containers share client ids; their connections differ."""
    one, other = scale_out(), scale_out(flapping("c1", "elsewhere"))
    assert first_takes(one, "c1", seeds=8) == first_takes(other, "c1", seeds=8)


def test_groups_of_an_instance_have_one_scheduler() -> None:
    """Its polls and heartbeats go on as they did before the second group was started."""
    late = history(*shifted((topic(0, 2, "U", "a"), joins(77_777, "c1"))), **V5)
    first = history(*shifted((topic(0, 2, "T", "a"), joins(0, "c1"))), **V5)
    timeline = build_timeline(
        replace(late, sharing_groups=(replace(first, consumer_group="f"),)), EXACT
    )
    ticks = Ticks(timeline, np.arange(50), EXACT)
    apart = ticks.timers_start[0] - ticks.sharing_groups[0].timers_start[0]
    assert (apart % POLL_US == 0).all()
    assert (ticks.timers_start[0] >= ticks.created[0]).all()
    alone = Ticks(build_timeline(late, EXACT), np.arange(50), EXACT)
    assert (ticks.pass_length > alone.pass_length).all()


@pytest.mark.parametrize(("joins_ms", "reason"), [(7_000, SHARED_CLIENTS), (700_000, REGULAR)])
def test_heartbeats_of_a_client_that_starts_reach_a_broker_that_its_topic_just_lost(
    joins_ms: int, reason: str
) -> None:
    """The lost broker notifies the instance, which happens before the join is logged."""
    happen = (
        *(topic(0, 2, "U", name) for name in "ab"),
        joins(1_000, "other", subscriptions=("U",)),
        event(2_000, events.TOPIC_DELETED, topic="U", broker_name="b"),
        joins(joins_ms, "c1", subscriptions=("U",)),
    )
    late = history(*shifted(happen), **V5 | {"subscriptions": ("U",)})
    beside = scale_out(replace(late, consumer_group="u"))
    assert reason_of(beside) == reason
