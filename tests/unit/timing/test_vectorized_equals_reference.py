"""The vectorized engine gives the reference's log, to the microsecond, for random groups."""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from random import Random
from typing import Any

import hypothesis
import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from rebalance_core.model import events
from rebalance_core.model.events import EXPIRED, OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.fit import NAMES, fit_of
from rebalance_core.timing.options import PHASES, ClockOptions
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play, play_seeds, reason_of
from rebalance_core.timing.vectorized.mixed_state import is_mixed
from rebalance_core.timing.vectorized.reference_only import REGULAR
from tests.unit.kernels.random_groups import groups
from tests.unit.timing.futures import rows_of

T0_MS = 1_700_000_000_000
FUTURES = 4
EXAMPLES, MANY_EXAMPLES = 40, 10_000
TRAITS = ("twins", "own strategies", "own models", "masters")

_SLOW: list[list[Any]] = [[{"kind": kind, "ms": 9.0 * n * n} for n in range(25)] for kind in NAMES]
SLOW = fit_of(_SLOW)
"""A cluster whose latencies are long, some of them seconds."""
OPTIONS = st.builds(
    ClockOptions,
    phases=st.sampled_from(PHASES),
    exact_times=st.booleans(),
    lost_notices=st.sampled_from((0.0, 0.0, 0.3)),
    late_share=st.sampled_from((0.0, 0.0, 0.5)),
    late_ms=st.sampled_from((0, 45_000)),
    concurrent_heartbeat=st.booleans(),
    rtt_us=st.sampled_from((0, 0, 20_001, 400_000)),
    fit=st.sampled_from((None, None, SLOW)),
)
VERSIONS = st.sampled_from(("4.9", "5.0", "5.1", "5.2", "5.3", "5.4", "5.5"))
CALM_VERSIONS = st.sampled_from(("4.9", "5.2", "5.3", "5.4", "5.5"))
"""Others pass without a pause while a topic is missing; the reference takes minutes for that."""
AFTER_MS = st.sampled_from((0, 0, 500, 123, 7_321))


@dataclass
class Tally:
    """What the examples of a run were about."""

    reasons: Counter[str] = field(default_factory=Counter)
    mixed: int = 0
    suspended: int = 0
    rows: int = 0


def awake(
    history: GroupHistory, after_ms: int, client: str, broker: str, *, mixed: bool
) -> GroupHistory:
    """The group with members that never resume, and unless ``mixed`` subscribe alike."""
    left_out = [events.CONSUMER_RESUME]
    left_out += [] if mixed else [events.SUBSCRIBE, events.UNSUBSCRIBE]
    kept: list[Event] = []
    for event in history.events:
        if event.event_type in left_out:
            continue
        if event.event_type == events.CONSUMER_JOIN and not mixed:
            event = replace(event, subscriptions=None)
        if event.event_type == events.CONSUMER_JOIN and event.sequence % 2:
            event = replace(event, source="brokers/a/broker.log:1")
        kept.append(replace(event, event_ms=T0_MS + after_ms + event.event_ms))
    its = replace(history.settings, client_version=client, broker_version=broker)
    return replace(history, events=tuple(kept), settings=its)


def with_suspensions(history: GroupHistory, seed: int) -> GroupHistory:
    """The group with half of its members suspended some time before they stop, or before the
    end.
    """
    random = Random(seed)
    last_ms = max((event.event_ms for event in history.events), default=0)
    added: list[Event] = []
    for number, join in enumerate(history.events):
        if join.event_type != events.CONSUMER_JOIN or random.random() < 0.5:
            continue
        key = join.client_id, join.channel_id
        ends = [
            event.event_ms
            for event in history.events
            if event.event_type in (events.CONSUMER_LEAVE, events.CONSUMER_LOST)
            and (event.client_id, event.channel_id) == key
            and event.event_ms > join.event_ms
        ]
        before_ms = random.choice((500, 3_000, 10_000, 40_000))
        at_ms = max(join.event_ms, min(ends, default=last_ms + 60_000) - before_ms)
        # after all events of its instant
        sequence = (1 << 40) + number
        added.append(
            Event(at_ms, sequence, events.CONSUMER_SUSPEND, client_id=key[0], channel_id=key[1])
        )
    return replace(history, events=(*history.events, *added))


def compare(history: GroupHistory, options: ClockOptions, tally: Tally) -> None:
    timeline = build_timeline(history, options)
    reason = reason_of(timeline)
    tally.reasons[reason] += 1
    tally.mixed += reason == REGULAR and is_mixed(timeline)
    members = (member for each in timeline.lifetimes for _, member in each.states)
    tally.suspended += reason == REGULAR and any(member.suspended for member in members)
    if reason != REGULAR:
        return
    seeds = np.arange(FUTURES) * 977 + len(history.events)
    found = rows_of(play_seeds(timeline, seeds, options))
    assert found == rows_of(play_seeds_one_by_one(timeline, seeds.tolist(), options))
    tally.rows += len(found)


def equal_in(
    examples: int,
    seed: int,
    versions: st.SearchStrategy[str] = VERSIONS,
    *,
    mixed: bool = False,
    suspend: bool = False,
) -> Tally:
    tally = Tally()
    any_groups = groups(traits=("twins", "masters") if mixed else TRAITS) | groups()

    def check(
        history: GroupHistory, options: ClockOptions, after_ms: int, client: str, broker: str
    ) -> None:
        history = awake(history, after_ms, client, broker, mixed=mixed)
        compare(with_suspensions(history, after_ms) if suspend else history, options, tally)

    quietly(check, examples, seed, any_groups, OPTIONS, AFTER_MS, versions, versions)
    return tally


def quietly(
    check: Callable[..., None], examples: int, seed: int, *arguments: st.SearchStrategy[Any]
) -> None:
    """Run a check on random arguments; histories are too long to be told."""
    quiet = settings(
        max_examples=examples,
        deadline=None,
        database=None,
        print_blob=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    quiet(hypothesis.seed(seed)(given(*arguments)(check)))()


def test_random_groups_have_the_log_of_the_loop(seed: int) -> None:
    tally = equal_in(EXAMPLES, seed)
    assert tally.reasons[REGULAR] > EXAMPLES / 5
    assert tally.rows > EXAMPLES


def test_random_groups_with_different_topics_have_the_log_of_the_loop(seed: int) -> None:
    tally = equal_in(2 * EXAMPLES, seed, CALM_VERSIONS, mixed=True)
    assert tally.mixed > EXAMPLES / 8
    assert tally.rows > EXAMPLES


@pytest.mark.parametrize("mixed", [False, True])
def test_random_groups_with_suspended_members_have_the_log_of_the_loop(
    seed: int, mixed: bool
) -> None:
    tally = equal_in(EXAMPLES, seed, CALM_VERSIONS, mixed=mixed, suspend=True)
    assert tally.suspended > EXAMPLES / 20
    assert tally.rows > EXAMPLES / 2


OWN: tuple[dict[str, Any], ...] = (
    {},
    {"poll_name_server_interval_ms": 5_000, "heartbeat_broker_interval_ms": 5_000},
    {"poll_name_server_interval_ms": 90_000},
    {"wait_interval_ms": 5_000, "min_interval_ms": 3_000},
    {"wait_interval_ms": 60_000, "heartbeat_broker_interval_ms": 100_000},
)
"""Intervals of single clients."""


def with_own_timers(history: GroupHistory, first: int) -> GroupHistory:
    """The group with members that have other timers, and brokers that tell at once or nobody."""
    changed: list[Event] = []
    for number, event in enumerate(history.events, first):
        if event.event_type == events.CONSUMER_JOIN:
            event = replace(event, **OWN[number % len(OWN)])
        elif event.detail == events.BATCHED:
            event = replace(event, detail=events.OFF)
        changed.append(event)
    pushes = replace(history.settings, consumer_type="PUSH")
    return replace(history, events=tuple(changed), settings=pushes)


@pytest.mark.parametrize("mixed", [False, True])
def test_clients_with_own_timers_and_switched_off_notices_have_the_log_of_the_loop(
    seed: int, mixed: bool
) -> None:
    tally = Tally()

    def check(history: GroupHistory, options: ClockOptions, first: int, client: str) -> None:
        its = with_own_timers(awake(history, 123, client, "5.3", mixed=mixed), first)
        compare(its, options, tally)

    quiet = settings(
        max_examples=EXAMPLES,
        deadline=None,
        database=None,
        print_blob=False,
        phases=(Phase.generate,),
        suppress_health_check=list(HealthCheck),
    )
    any_groups = groups(traits=("timers",))
    arguments = given(any_groups, OPTIONS, st.integers(0, 4), CALM_VERSIONS)
    quiet(hypothesis.seed(seed)(arguments(check)))()
    assert tally.reasons[REGULAR] > EXAMPLES / 5
    assert tally.rows > EXAMPLES


@pytest.mark.slow
@pytest.mark.timeout(14_400)
def test_ten_thousand_random_groups_have_the_log_of_the_loop(seed: int) -> None:
    tally = equal_in(MANY_EXAMPLES, seed)
    print(f"seed {seed}: 0 differences in {MANY_EXAMPLES} examples\n{tally}")
    assert tally.reasons[REGULAR] > MANY_EXAMPLES / 4


def restarted(its: GroupSettings) -> GroupHistory:
    """Three members, one of which leaves and comes back, and a broker that goes down and up."""
    told = [
        (0, events.TOPIC_CONFIG, {"topic": "T", "broker_name": "a", "read_queue_nums": 4}),
        (0, events.TOPIC_CONFIG, {"topic": "T", "broker_name": "b", "read_queue_nums": 4}),
        *((0, events.CONSUMER_JOIN, {"client_id": f"c{n}"}) for n in range(3)),
        (60_000, events.CONSUMER_LEAVE, {"client_id": "c1"}),
        (70_000, events.CONSUMER_JOIN, {"client_id": "c9"}),
        (400_000, events.BROKER_DOWN, {"broker_name": "a"}),
        (430_000, events.BROKER_UP, {"broker_name": "a"}),
    ]
    made = tuple(
        Event(T0_MS + at_ms, number, kind, **said)  # type: ignore[arg-type]
        for number, (at_ms, kind, said) in enumerate(told)
    )
    return GroupHistory("c", "g", its, made)


@pytest.mark.parametrize("ordered", [False, True])
def test_slices_of_futures_give_the_whole(monkeypatch: pytest.MonkeyPatch, ordered: bool) -> None:
    history = restarted(GroupSettings(subscriptions=("T",), ordered=ordered))
    timeline = build_timeline(history, ClockOptions())
    assert reason_of(timeline) == REGULAR
    seeds = np.arange(40)
    whole = rows_of(play_seeds(timeline, seeds, ClockOptions()))
    monkeypatch.setattr(play, "seeds_of_a_slice", lambda _: 7)
    assert rows_of(play_seeds(timeline, seeds, ClockOptions())) == whole
    assert {row[0] for row in whole} == set(range(40))


def test_a_group_without_topics_has_an_empty_log() -> None:
    timeline = build_timeline(restarted(GroupSettings(subscriptions=("U",))), ClockOptions())
    assert timeline.changes
    assert len(play_seeds(timeline, np.arange(9), ClockOptions())) == 0


@pytest.mark.parametrize("ends", [(events.CONSUMER_LEAVE, None), (events.CONSUMER_LOST, EXPIRED)])
def test_who_was_there_before_and_goes_at_the_first_change(ends: tuple[str, str | None]) -> None:
    kind, detail = ends
    topic = {"topic": "T", "broker_name": "a", "read_queue_nums": 4, "detail": OBSERVED}
    told = (
        Event(T0_MS, 0, events.TOPIC_CONFIG, **topic),  # type: ignore[arg-type]
        Event(T0_MS, 1, events.CONSUMER_JOIN, client_id="c1", detail=OBSERVED),
        Event(T0_MS, 2, events.CONSUMER_JOIN, client_id="c2", detail=OBSERVED),
        Event(T0_MS + 60_001, 3, kind, client_id="c1", detail=detail),
    )
    history = GroupHistory("c", "g", GroupSettings(subscriptions=("T",)), told)
    timeline = build_timeline(history, ClockOptions())
    played = rows_of(play_seeds(timeline, range(20), ClockOptions()))
    assert played == rows_of(play_seeds_one_by_one(timeline, range(20), ClockOptions()))
    assert sum(row[4] == -1 for row in played) == 2 * 20
