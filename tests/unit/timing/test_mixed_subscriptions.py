"""Groups whose members subscribe differently, or change their topics: the engines agree."""

from collections.abc import Iterable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import PULL, GroupSettings
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.reference_only import MIXED_SUBSCRIPTIONS, REGULAR
from tests.unit.timing.futures import rows_of

T0_MS = 1_700_000_000_123
FUTURES = 12
OPTIONS = ClockOptions()
Happening = tuple[int, str, dict[str, Any]]


def topic(name: str, broker: str, queues: int = 4, at_ms: int = -100_000) -> Happening:
    detail = OBSERVED if at_ms < 0 else None
    said = {"topic": name, "broker_name": broker, "read_queue_nums": queues, "detail": detail}
    return at_ms, events.TOPIC_CONFIG, said


def member(client: str, *topics: str, at_ms: int = -100_000) -> Happening:
    detail = OBSERVED if at_ms < 0 else None
    return at_ms, events.CONSUMER_JOIN, {
        "client_id": client, "subscriptions": topics, "detail": detail
    }  # fmt: skip


def subscribes(at_ms: int, client: str, name: str, kind: str = events.SUBSCRIBE) -> Happening:
    return at_ms, kind, {"client_id": client, "topic": name}


def unsubscribes(at_ms: int, client: str, name: str) -> Happening:
    return subscribes(at_ms, client, name, events.UNSUBSCRIBE)


def timeline(
    happened: Iterable[Happening], options: ClockOptions = OPTIONS, **settings: Any
) -> GroupTimeline:
    made = tuple(
        Event(T0_MS + at_ms, number, kind, **said)
        for number, (at_ms, kind, said) in enumerate(happened)
    )
    its = replace(GroupSettings(subscriptions=("T",)), **settings)
    return build_timeline(GroupHistory("c", "g", its, made), options)


def played(of: GroupTimeline, options: ClockOptions = OPTIONS) -> OwnershipLog:
    """The log of the vectorized engine, which is the reference's."""
    assert reason_of(of) == REGULAR
    log = play_seeds(of, np.arange(FUTURES), options)
    assert rows_of(log) == rows_of(play_seeds_one_by_one(of, range(FUTURES), options))
    return log


VERSIONS = pytest.mark.parametrize("version", ["4.9", "5.1", "5.3", "5.5"])


@VERSIONS
def test_every_heartbeat_gives_all_members_other_topics(version: str) -> None:
    happened = [
        topic("T", "a"), topic("T", "b"), topic("U", "b"),
        member("c1", "T"), member("c2", "T", "U"), member("c3", "T", at_ms=0),
    ]  # fmt: skip
    its = timeline(happened, client_version=version, broker_version=version)
    log = played(its)
    # everybody has passed well before the 20 s of its own wait
    last = [int(log.at_us[log.seed == seed].max()) for seed in range(FUTURES)]
    assert max(last) < (T0_MS + 20_000) * 1_000


@VERSIONS
def test_who_subscribes_a_topic_takes_its_share_and_gives_it_back(version: str) -> None:
    happened = [
        topic("T", "a"), topic("U", "b"),
        member("c1", "T", "U"), member("c2", "T"),
        subscribes(0, "c2", "U"), unsubscribes(130_000, "c2", "U"),
    ]  # fmt: skip
    its = timeline(happened, client_version=version, broker_version=version)
    log = played(its)
    second = [its.lifetimes[lifetime].client_id == "c2" for lifetime in log.lifetime.tolist()]
    assert sorted(log.delta[second].tolist()) == [-1] * 2 * FUTURES + [1] * 2 * FUTURES


@VERSIONS
def test_a_route_that_is_known_when_its_topic_is_subscribed(version: str) -> None:
    """Who comes back to a topic has its route from the first time, and beats to its brokers."""
    happened = [
        topic("T", "a"), topic("U", "b"), topic("U", "c"),
        member("c1", "T", "U"), member("c2", "T", at_ms=0),
        subscribes(60_000, "c2", "U"), unsubscribes(120_000, "c2", "U"),
        subscribes(150_001, "c2", "U"), topic("U", "b", 8, at_ms=152_000),
        (200_000, events.BROKER_DOWN, {"broker_name": "b"}),
        (230_000, events.BROKER_UP, {"broker_name": "b"}),
        subscribes(231_000, "c1", "W"), unsubscribes(233_000, "c2", "U"),
        subscribes(234_500, "c2", "U"),
    ]  # fmt: skip
    played(timeline(happened, client_version=version, broker_version=version))


def test_a_topic_that_comes_after_its_subscription() -> None:
    happened = [
        topic("T", "a"), member("c1", "T"), member("c2", "T", at_ms=0),
        subscribes(20_000, "c1", "U"), topic("U", "b", at_ms=60_000),
        subscribes(61_000, "c2", "U"),
    ]  # fmt: skip
    log = played(timeline(happened))
    assert {4, 5, 6, 7} <= {int(queue) for queue in log.queue}


def test_several_changes_in_one_instant() -> None:
    happened = [
        topic("T", "a"), topic("U", "a"), topic("V", "b"), topic("V", "a"),
        member("c1", "T"), member("c2", "T"), member("c3", "V"),
        subscribes(0, "c2", "U"), subscribes(0, "c1", "V"), subscribes(0, "c1", "U"),
        unsubscribes(0, "c3", "V"), subscribes(0, "c3", "U"),
    ]  # fmt: skip
    for options in (OPTIONS, ClockOptions(lost_notices=0.4)):
        played(timeline(happened, options), options)


def test_who_subscribes_and_goes_in_one_instant_is_heard() -> None:
    happened = [
        topic("T", "a"), member("c1", "T"), member("c2", "T"), subscribes(60_000, "c1", "U"),
        (60_000, events.CONSUMER_LEAVE, {"client_id": "c1"}), member("c3", "T", at_ms=61_000),
    ]  # fmt: skip
    played(timeline(happened, client_version="4.9", broker_version="4.9"))


def test_who_registers_before_the_first_change_has_named_its_topics() -> None:
    """The timers of a pull consumer may start before its join, as the log has it."""
    happened = [
        topic("T", "a", at_ms=0), topic("U", "a", at_ms=0),
        member("c1", "T", at_ms=0), member("c1", "T", "U", at_ms=0),
    ]  # fmt: skip
    options = ClockOptions(phases=RANDOM_PHASES)
    played(timeline(happened, options, consumer_type=PULL), options)


@pytest.mark.parametrize("version", ["5.0", "5.1"])
def test_a_storm_about_a_topic_that_is_missing(version: str) -> None:
    """Every pass beats (rocketmq.md §3.3), every beat tells the others, and they pass at once."""
    happened = [
        topic("T", "a"), member("c1", "T", "X"), member("c2", "T"), member("c3", "T", at_ms=0),
        (300, events.CONSUMER_LEAVE, {"client_id": "c1"}),
    ]  # fmt: skip
    played(timeline(happened, client_version=version, broker_version=version))


@pytest.mark.parametrize("version", ["4.9", "5.3", "5.5"])
def test_orderly_members_that_subscribe_differently(version: str) -> None:
    happened = [
        topic("T", "a", 8), topic("U", "b", 8), topic("U", "a", 8),
        member("c1", "T"), member("c2", "T", "U"), member("c3", "U", at_ms=0),
        (70_000, events.CONSUMER_LEAVE, {"client_id": "c2"}),
        (90_000, events.BROKER_DOWN, {"broker_name": "b"}),
        (120_000, events.BROKER_UP, {"broker_name": "b"}),
    ]  # fmt: skip
    its = timeline(happened, client_version=version, broker_version=version, ordered=True)
    log = played(its)
    assert {its.queues[queue].topic for queue in log.queue.tolist()} == {"T", "U"}


def test_what_the_loop_plays() -> None:
    happened = [topic("T", "a"), topic("U", "a"), member("c1", "T"), member("c2", "U", at_ms=0)]
    assert reason_of(timeline(happened, ordered=True)) == REGULAR
    happened.append(subscribes(1_000, "c1", "U"))
    assert reason_of(timeline(happened)) == REGULAR
    assert reason_of(timeline(happened, ordered=True)) == MIXED_SUBSCRIPTIONS


def test_a_route_that_changes_while_nothing_is_followed_is_left_to_the_loop() -> None:
    """Members that never find one of their topics are not at rest meanwhile."""
    said = {"topic": "T", "broker_name": "b", "read_queue_nums": 3, "detail": OBSERVED}
    found = (500_000, events.TOPIC_CONFIG, said)
    happened = [
        topic("T", "a"), topic("U", "a"), member("c1", "T"), member("c2", "U", at_ms=0), found,
        (1_000_000, events.CONSUMER_LEAVE, {"client_id": "c1"}),
    ]  # fmt: skip
    assert reason_of(timeline(happened)) == MIXED_SUBSCRIPTIONS
    assert reason_of(timeline(happened[:4])) == REGULAR


def test_members_that_are_observed_later_than_others_are_left_to_the_loop() -> None:
    happened = [topic("T", "a"), topic("U", "a"), member("c1", "T"), member("c2", "U", at_ms=0)]
    assert reason_of(timeline([*happened, member("c3", "U", at_ms=-1_000)])) == MIXED_SUBSCRIPTIONS
    assert reason_of(timeline([*happened, member("c3", "U")])) == REGULAR
