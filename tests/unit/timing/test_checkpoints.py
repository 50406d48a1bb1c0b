"""Timelines that begin alike: the second goes on with what it would have played."""

import random
from collections.abc import Iterator
from dataclasses import replace
from itertools import product

import numpy as np
import pytest

from rebalance_core.model import events
from rebalance_core.model.events import OBSERVED, Event
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.options import RANDOM_PHASES, ClockOptions
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.checkpoints import Checkpoints
from rebalance_core.timing.vectorized.reference_only import REGULAR, takes_locks
from rebalance_core.timing.vectorized.segment_play import SegmentPlay
from tests.unit.timing.futures import rows_of

T0_MS = 1_700_000_000_123
SEEDS = np.arange(6)
OPTIONS = ClockOptions(phases=RANDOM_PHASES, exact_times=True)
TOPICS = ("T", "U")
KINDS = ("alike", "mixed", "orderly")


def event_at(at_ms: int, number: int, kind: str, **said: object) -> Event:
    return Event(T0_MS + at_ms, number, kind, **said)  # type: ignore[arg-type]


def recorded(pick: random.Random, mixed: bool) -> Iterator[Event]:
    """A group whose members come and go, at times that meet and at others."""
    for number, (name, broker) in enumerate([("T", "a"), ("T", "b"), ("U", "b")]):
        yield event_at(
            -100_000,
            number,
            events.TOPIC_CONFIG,
            topic=name,
            broker_name=broker,
            read_queue_nums=pick.choice([3, 4, 8]),
            detail=OBSERVED,
        )
    there = [f"c{number}" for number in range(4)]
    for number, client in enumerate(there):
        topics = TOPICS[: pick.choice([1, 2])] if mixed else TOPICS
        yield event_at(
            -100_000,
            10 + number,
            events.CONSUMER_JOIN,
            client_id=client,
            subscriptions=topics,
            detail=OBSERVED,
        )
    at_ms = 0
    for number in range(4):
        client = pick.choice(there)
        if pick.random() < 0.5 or client not in there:
            kind = pick.choice([events.CONSUMER_LEAVE, events.CONSUMER_LOST])
            yield event_at(at_ms, 20 + number, kind, client_id=client)
            there.remove(client)
        else:
            there.append(f"d{number}")
            yield event_at(
                at_ms, 20 + number, events.CONSUMER_JOIN, client_id=there[-1], subscriptions=TOPICS
            )
        if not there:
            return
        at_ms += pick.choice([20, 700, 9_000, 1_000_000])


def edited(pick: random.Random, given: list[Event], at_ms: int) -> list[Event]:
    """The same group; from a time on other things happen to it."""
    kept = [before for before in given if before.event_ms < T0_MS + at_ms]
    there: set[str] = set()
    for one in kept:
        if one.client_id is not None:
            ends = one.event_type != events.CONSUMER_JOIN
            (there.discard if ends else there.add)(one.client_id)
    more = [
        event_at(at_ms + 2_000, 100, events.CONSUMER_JOIN, client_id="new", subscriptions=TOPICS)
    ]
    for number, client in enumerate(sorted(there)[:3]):
        kind = pick.choice([events.CONSUMER_LEAVE, events.CONSUMER_LOST])
        at = at_ms + pick.choice([0, 300, 4_000])
        more.append(event_at(at, 101 + number, kind, client_id=client))
        if pick.random() < 0.5:  # under the same name
            more.append(
                event_at(
                    at + 20_000,
                    110 + number,
                    events.CONSUMER_JOIN,
                    client_id=client,
                    channel_id="again",
                    subscriptions=TOPICS,
                )
            )
    return kept + more


def timeline(made: list[Event], ordered: bool, version: str) -> GroupTimeline:
    its = GroupSettings(
        subscriptions=TOPICS, ordered=ordered, client_version=version, broker_version=version
    )
    return build_timeline(GroupHistory("c", "g", its, tuple(made)), OPTIONS)


@pytest.mark.parametrize(
    ("kind", "number"),
    [
        *product(KINDS, range(3)),
        ("orderly mixed", 0),
        *(pytest.param(*each, marks=pytest.mark.slow) for each in product(KINDS, range(3, 5))),
    ],
)
def test_a_later_script_has_the_log_that_it_has_alone(kind: str, number: int) -> None:
    """By default three groups of each kind."""
    pick = random.Random(f"{kind} {number}")
    given = list(recorded(pick, "mixed" in kind))
    version = pick.choice(["4.9.7", "5.1.4", "5.3.3"])
    end_ms = max(event.event_ms for event in given) - T0_MS
    cuts_ms = [end_ms + 600_000, pick.choice([end_ms // 2, end_ms + 1_000])]
    first = timeline(given, "orderly" in kind, version)
    assert reason_of(first) == REGULAR
    assert takes_locks(first) == ("orderly" in kind)
    checkpoints = Checkpoints([(T0_MS + at_ms) * 1_000 for at_ms in cuts_ms])
    alone = play_seeds(first, SEEDS, OPTIONS)
    assert rows_of(play_seeds(first, SEEDS, OPTIONS, checkpoints)) == rows_of(alone)
    assert rows_of(play_seeds(first, SEEDS, OPTIONS, checkpoints)) == rows_of(alone)
    # here what leaves later meets a leave that both have
    for at_ms in (*cuts_ms, end_ms - 500):
        other = timeline(edited(pick, given, at_ms), "orderly" in kind, version)
        found = play_seeds(other, SEEDS, OPTIONS, checkpoints)
        assert rows_of(found) == rows_of(play_seeds(other, SEEDS, OPTIONS))


LOSSES = (
    [(events.BROKER_DOWN, None)],
    [(events.BROKER_DOWN, None), (events.BROKER_UP, None)],
    [(events.BROKER_DOWN, events.EXPIRED), (events.BROKER_UP, None)],
    [(events.NOTICES, events.OFF)],
)


@pytest.mark.parametrize("kind", [*KINDS, "orderly mixed"])
@pytest.mark.parametrize("loss", LOSSES, ids=["lost", "back", "host", "silent"])
def test_a_group_that_loses_a_broker_has_the_log_that_it_has_alone(
    kind: str, loss: list[tuple[str, str | None]]
) -> None:
    """Also at a time when the edit is too close to the last change to resume all of it."""
    pick = random.Random(f"{kind} {loss}")
    given = [
        *recorded(pick, "mixed" in kind),
        event_at(-50_000, 15, events.BROKER_DOWN, broker_name="b", detail=None),
        event_at(-20_000, 16, events.BROKER_UP, broker_name="b"),
    ]
    end_ms = max(event.event_ms for event in given) - T0_MS
    cuts_ms = [end_ms + 600_000, end_ms + 100_000, end_ms // 2]
    first = timeline(given, "orderly" in kind, "5.3.3")
    checkpoints = Checkpoints([(T0_MS + at_ms) * 1_000 for at_ms in cuts_ms])
    play_seeds(first, SEEDS, OPTIONS, checkpoints)
    for at_ms in cuts_ms:
        later = [
            event_at(at_ms + 30_000 * number, 100 + number, what, broker_name="b", detail=detail)
            for number, (what, detail) in enumerate(loss)
        ]
        other = timeline([*edited(pick, given, at_ms), *later], "orderly" in kind, "5.3.3")
        assert reason_of(other) == REGULAR
        found = play_seeds(other, SEEDS, OPTIONS, checkpoints)
        assert rows_of(found) == rows_of(play_seeds(other, SEEDS, OPTIONS))


def test_what_scripts_have_in_common_is_played_once(monkeypatch: pytest.MonkeyPatch) -> None:
    given = list(recorded(random.Random(6), mixed=False))
    end_ms = max(event.event_ms for event in given) - T0_MS
    first = timeline(given, ordered=True, version="5.3.3")
    later = timeline(
        edited(random.Random(1), given, end_ms + 600_000), ordered=True, version="5.3.3"
    )
    checkpoints = Checkpoints([(T0_MS + end_ms + 600_000) * 1_000])
    played = _count_segments(monkeypatch)
    play_seeds(first, SEEDS, OPTIONS, checkpoints)
    of_first = len(played)
    play_seeds(first, SEEDS, OPTIONS, checkpoints)
    assert len(played) == of_first > 0  # the same timeline again
    del played[:]
    play_seeds(later, SEEDS, OPTIONS, checkpoints)
    shared = len(played)
    play_seeds(later, SEEDS, OPTIONS)
    # the first timeline's last segment, too: nothing of it lasts until the edit
    assert 0 < shared == len(played) - shared - of_first
    # a broker that is lost later changes nothing before
    del played[:]
    lost = event_at(end_ms + 600_000, 100, events.BROKER_DOWN, broker_name="b")
    play_seeds(timeline([*given, lost], True, "5.3.3"), SEEDS, OPTIONS, checkpoints)
    assert 0 < len(played) < of_first
    # other settings are another group
    del played[:]
    slow = replace(later, settings=replace(later.settings, client_version="4.9.7"))
    play_seeds(slow, SEEDS, OPTIONS, checkpoints)
    assert len(played) > shared


def test_nothing_is_kept_without_a_later_script(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(*_: object) -> None:
        raise AssertionError("a copy of all futures")

    monkeypatch.setattr(Checkpoints, "keep", kept)
    given = list(recorded(random.Random(6), mixed=False))
    play_seeds(timeline(given, ordered=True, version="5.3.3"), SEEDS, OPTIONS)


def _count_segments(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    played: list[object] = []

    def counted(*given: object) -> SegmentPlay:
        played.append(given[1])
        return SegmentPlay(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("rebalance_core.timing.vectorized.play.SegmentPlay", counted)
    return played
