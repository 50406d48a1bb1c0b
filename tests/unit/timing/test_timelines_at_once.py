"""Timelines of a group under several strategies, played at once, are those played alone."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, Phase, given, settings

from rebalance_core.model.events import OBSERVED
from rebalance_core.model.group_settings import BROADCASTING
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from rebalance_core.timing.ownership_log import OwnershipLog
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play, play_seeds, play_timelines
from rebalance_core.timing.vectorized.checkpoints import Checkpoints
from rebalance_core.timing.vectorized.reference_only import differ_in_strategies
from rebalance_core.timing.vectorized.shares import UnlistedQueueError
from tests.unit.kernels.random_groups import TRAITS, groups
from tests.unit.replay.histories import event, history, topic
from tests.unit.timing.futures import COLUMNS, START_MS, happens, joins

RANDOM = settings(
    max_examples=40,
    deadline=None,
    derandomize=True,
    suppress_health_check=list(HealthCheck),
    phases=[Phase.explicit, Phase.generate],
)
STRATEGIES = (
    "AVG",
    "AVG_BY_CIRCLE",
    "CONSISTENT_HASH(virtual_nodes=10)",
    "MACHINE_ROOM_NEARBY-AVG(room_separator=-)",
)
"""The last throws for members without a room, whose next passes then come soon."""
SEEDS = range(3)


def under(group: GroupHistory, strategy: str) -> GroupHistory:
    events = tuple(replace(event, strategy=None) for event in group.events)
    return replace(group, settings=replace(group.settings, strategy=strategy), events=events)


def equal_alone(group: GroupHistory, options: ClockOptions) -> int:
    """Compare the logs; return how many timelines are played at once."""
    timelines = [build_timeline(under(group, each), options) for each in STRATEGIES]
    together = play_timelines(timelines, SEEDS, options)
    for timeline, log in zip(timelines, together, strict=True):
        alone = play_seeds(timeline, SEEDS, options)
        for name in COLUMNS:
            assert np.array_equal(getattr(log, name), getattr(alone, name)), name
    return len(timelines) if differ_in_strategies(timelines) else 1


def test_random_groups() -> None:
    at_once = []

    @RANDOM
    @given(group=groups(traits=TRAITS))
    def equal(group: GroupHistory) -> None:
        options = ClockOptions(phases=RANDOM_PHASES, lost_notices=0.3)
        at_once.append(equal_alone(group, options))

    equal()
    assert at_once.count(len(STRATEGIES)) >= 5


RESTART = (
    topic(0, 6, "T", "b0"),
    topic(0, 6, "T", "b1"),
    *(joins(1, f"room-{number}", detail=OBSERVED) for number in range(4)),
    *(
        each
        for number in range(4)
        for each in (
            happens(600_000 + number * 20_000, "CONSUMER_LEAVE", f"room-{number}"),
            joins(605_000 + number * 20_000, f"other-{number}"),
        )
    ),
)


@pytest.mark.parametrize("ordered", [False, True])
def test_a_restart(ordered: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    assert equal_alone(history(*RESTART, ordered=ordered), ClockOptions()) == len(STRATEGIES)
    slices = count(monkeypatch, "_play_slice")
    monkeypatch.setattr(play, "seeds_of_a_slice", lambda _: 4)
    made = [
        build_timeline(under(history(*RESTART, ordered=ordered), each), ClockOptions())
        for each in STRATEGIES
    ]
    play_timelines(made, SEEDS, ClockOptions())
    assert len(slices) == len(SEEDS)
    equal_alone(history(*RESTART, ordered=ordered), ClockOptions())


@pytest.mark.parametrize("loses", [False, True])
def test_broadcasting_members_are_played_once(loses: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    played = []

    def counted(timeline: GroupTimeline, *asked: Any) -> OwnershipLog:
        played.append(timeline)
        return play_seeds(timeline, *asked)

    monkeypatch.setattr(play, "play_seeds", counted)
    down = (event(700_000, "BROKER_DOWN", broker_name="b1"),) if loses else ()
    made = history(*RESTART, *down, message_model=BROADCASTING)
    assert equal_alone(made, ClockOptions()) == (1 if loses else len(STRATEGIES))
    assert len(played) == 1


@pytest.mark.parametrize("per_slice", [4, 8, 400])
def test_strategies_share_checkpoints(per_slice: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Although fewer futures of the second, which has more members, would fit into a slice."""
    monkeypatch.setattr(
        play,
        "seeds_of_a_slice",
        lambda timeline: per_slice if len(timeline.lifetimes) == 8 else per_slice - 3,
    )
    segments = count(monkeypatch, "SegmentPlay")
    options, sides = ClockOptions(), []
    checkpoints = Checkpoints([(START_MS + 1_400_000) * 1_000])
    for group in (history(*RESTART), history(*RESTART, joins(1_500_000, "room-9"))):
        timelines = [build_timeline(under(group, each), options) for each in STRATEGIES]
        first = len(segments)
        played = play_timelines(timelines, SEEDS, options, checkpoints)
        with_saved = len(segments) - first
        alone = play_timelines(timelines, SEEDS, options)
        sides.append((checkpoints.bytes, with_saved, len(segments) - first - with_saved))
        for log, own in zip(played, alone, strict=True):
            for name in COLUMNS:
                assert np.array_equal(getattr(log, name), getattr(own, name)), name
    (of_first, *firsts), (of_second, resumed, in_full) = sides
    assert of_first == of_second > 0
    assert firsts[0] == firsts[1] > 0
    assert 0 < resumed < firsts[0] < in_full


def test_slices_keep_their_size_in_later_histories() -> None:
    checkpoints = Checkpoints()
    assert checkpoints.slice_size("play", 4, 20) == 20
    assert checkpoints.slice_size("play", 4, 10) == 20
    assert checkpoints.slice_size("play", 4, 9) == 9  # too much memory
    assert checkpoints.slice_size("play", 4, 500) == 20
    assert checkpoints.slice_size("measure", 4, 7) == 7


def test_unlisted_queues_leave_no_checkpoints(monkeypatch: pytest.MonkeyPatch) -> None:
    whole, calls = play._play_slice, []

    def second_fails(timelines: Any, *asked: Any) -> list[OwnershipLog]:
        calls.append(len(timelines))
        if len(timelines) > 1 and len(calls) > 1:
            raise UnlistedQueueError
        return whole(timelines, *asked)

    monkeypatch.setattr(play, "seeds_of_a_slice", lambda _: 4)
    monkeypatch.setattr(play, "_play_slice", second_fails)
    options = ClockOptions()
    timelines = [build_timeline(under(history(*RESTART), each), options) for each in STRATEGIES]
    checkpoints = Checkpoints()
    played = play_timelines(timelines, SEEDS, options, checkpoints)
    assert calls[:2] == [len(STRATEGIES)] * 2
    assert set(calls[2:]) == {1}
    assert {len(strategies) for _, strategies in checkpoints._kept} == {1}
    for timeline, log in zip(timelines, played, strict=True):
        alone = play_seeds(timeline, SEEDS, options)
        for name in COLUMNS:
            assert np.array_equal(getattr(log, name), getattr(alone, name)), name


def count(monkeypatch: pytest.MonkeyPatch, name: str) -> list[object]:
    """Return a list that grows with each call of something in the module `play`."""
    whole = getattr(play, name)
    calls: list[object] = []

    def counted(*given: object) -> object:
        calls.append(given)
        return whole(*given)

    monkeypatch.setattr(play, name, counted)
    return calls
