"""Timelines that begin alike, and passes that change nothing: the log is the reference's."""

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
from rebalance_core.timing.reference.play import play_seeds_one_by_one, play_with_passes
from rebalance_core.timing.timeline_builder import build_timeline
from rebalance_core.timing.vectorized import play_seeds, reason_of
from rebalance_core.timing.vectorized.checkpoints import Checkpoints
from rebalance_core.timing.vectorized.member_lists import MemberLists
from rebalance_core.timing.vectorized.passes import Runner
from rebalance_core.timing.vectorized.reference_only import REGULAR, takes_locks
from rebalance_core.timing.vectorized.segment_play import play_segment
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import EXACT, happens, joins, rows_of, story

# Timelines that begin alike: what the second one goes on with is what it would have played.

T0_MS = 1_700_000_000_123
SEEDS = np.arange(6)
OPTIONS = ClockOptions(phases=RANDOM_PHASES, exact_times=True)
TOPICS = ("T", "U")
KINDS = ("alike", "mixed", "orderly")


def told(at_ms: int, number: int, kind: str, **said: object) -> Event:
    return Event(T0_MS + at_ms, number, kind, **said)  # type: ignore[arg-type]


def recorded(pick: random.Random, mixed: bool) -> Iterator[Event]:
    """A group whose members come and go, at times that meet and at others."""
    for number, (name, broker) in enumerate([("T", "a"), ("T", "b"), ("U", "b")]):
        yield told(-100_000, number, events.TOPIC_CONFIG, topic=name, broker_name=broker,
                   read_queue_nums=pick.choice([3, 4, 8]), detail=OBSERVED)  # fmt: skip
    there = [f"c{number}" for number in range(4)]
    for number, client in enumerate(there):
        topics = TOPICS[: pick.choice([1, 2])] if mixed else TOPICS
        yield told(-100_000, 10 + number, events.CONSUMER_JOIN, client_id=client,
                   subscriptions=topics, detail=OBSERVED)  # fmt: skip
    at_ms = 0
    for number in range(4):
        client = pick.choice(there)
        if pick.random() < 0.5 or client not in there:
            kind = pick.choice([events.CONSUMER_LEAVE, events.CONSUMER_LOST])
            yield told(at_ms, 20 + number, kind, client_id=client)
            there.remove(client)
        else:
            there.append(f"d{number}")
            yield told(at_ms, 20 + number, events.CONSUMER_JOIN, client_id=there[-1],
                       subscriptions=TOPICS)  # fmt: skip
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
    more = [told(at_ms + 2_000, 100, events.CONSUMER_JOIN, client_id="new", subscriptions=TOPICS)]
    for number, client in enumerate(sorted(there)[:3]):
        kind = pick.choice([events.CONSUMER_LEAVE, events.CONSUMER_LOST])
        at = at_ms + pick.choice([0, 300, 4_000])
        more.append(told(at, 101 + number, kind, client_id=client))
        if pick.random() < 0.5:  # under the same name
            more.append(told(at + 20_000, 110 + number, events.CONSUMER_JOIN, client_id=client,
                             channel_id="again", subscriptions=TOPICS))  # fmt: skip
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
    # other settings are another group
    del played[:]
    slow = replace(later, settings=replace(later.settings, client_version="4.9.7"))
    play_seeds(slow, SEEDS, OPTIONS, checkpoints)
    assert len(played) > shared


def test_nothing_is_kept_for_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    def kept(*_: object) -> None:
        raise AssertionError("a copy of all futures")

    monkeypatch.setattr(Checkpoints, "keep", kept)
    given = list(recorded(random.Random(6), mixed=False))
    play_seeds(timeline(given, ordered=True, version="5.3.3"), SEEDS, OPTIONS)


def _count_segments(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    played: list[object] = []

    def counted(*given: object) -> None:
        played.append(given[1])
        play_segment(*given)  # type: ignore[arg-type]

    monkeypatch.setattr("rebalance_core.timing.vectorized.play.play_segment", counted)
    return played


# Passes that change nothing are counted, not played; the log is the reference's.

STEADY_SEEDS = range(6)


def played(timeline: GroupTimeline, monkeypatch: pytest.MonkeyPatch) -> int:
    """How many passes the vectorized engine plays; its log is the reference's."""
    count, run = 0, Runner.run

    def counted(self: Runner, who: np.ndarray, begin: np.ndarray) -> object:
        nonlocal count
        count += len(who)
        return run(self, who, begin)

    monkeypatch.setattr(Runner, "run", counted)
    found = rows_of(play_seeds(timeline, STEADY_SEEDS, EXACT))
    assert found == rows_of(play_seeds_one_by_one(timeline, STEADY_SEEDS, EXACT))
    assert found
    return count


def test_members_without_a_queue_are_not_played(monkeypatch: pytest.MonkeyPatch) -> None:
    """Thirty members of six queues: who comes last by name changes nobody's share."""
    timeline = story(
        *(topic(0, 3, "T", name) for name in "ab"),
        *(joins(100 * n, f"c{n:02}") for n in range(30)),
        *(joins(400_000 + 900 * n, f"d{n:02}") for n in range(20)),
        *(happens(700_000 + 900 * n, "CONSUMER_LEAVE", f"d{n:02}") for n in range(20)),
        subscriptions=("T",), client_version="4.9.4", broker_version="4.9.4",
    )  # fmt: skip
    passes = sum(len(play_with_passes(timeline, seed, EXACT).passes) for seed in STEADY_SEEDS)
    assert played(timeline, monkeypatch) < passes / 3


def test_who_came_long_ago_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only member, and a route that loses queues a good while after it came."""
    timeline = story(
        *(topic(0, 5, "T", name) for name in "ab"),
        joins(0, "c1"),
        event(400_000, "TOPIC_DELETED", topic="T", broker_name="b"),
        subscriptions=("T",), client_version="4.9.4", broker_version="4.9.4",
    )  # fmt: skip
    assert played(timeline, monkeypatch) > 0
    given_up = [row for row in rows_of(play_seeds(timeline, STEADY_SEEDS, EXACT)) if row[4] < 0]
    assert len(given_up) == 5 * len(STEADY_SEEDS)


def test_passes_look_lists_up_once_for_all_topics(monkeypatch: pytest.MonkeyPatch) -> None:
    """And each list that no pass changes is as it was looked over member by member."""
    asked, hashes_at = list[int](), MemberLists.hashes_at

    def looked_up(lists: MemberLists, *where: np.ndarray) -> np.ndarray:
        found = hashes_at(lists, *where)
        for number, place in enumerate(lists.lists):
            rows = where[0] == number
            seeds, at_us = (each[rows] for each in where[1:])
            assert found[rows].tolist() == lists._hash_at(place, seeds, at_us).tolist()
        asked.append(len(found))
        return found

    rounds, run = list[int](), Runner.run

    def counted(passes: Runner, who: np.ndarray, begin: np.ndarray) -> object:
        rounds.append(len(who))
        return run(passes, who, begin)

    monkeypatch.setattr(MemberLists, "hashes_at", looked_up)
    monkeypatch.setattr(Runner, "run", counted)
    timeline = story(
        *(topic(0, 3, name, "a") for name in "TUV"),
        *(joins(100 * n, f"c{n}") for n in range(5)),
        *(happens(400_000 + 900 * n, "CONSUMER_LEAVE", f"c{n}") for n in range(3)),
        subscriptions=("T", "U", "V"), client_version="4.9.4", broker_version="4.9.4",
    )  # fmt: skip
    assert rows_of(play_seeds(timeline, STEADY_SEEDS, EXACT)) == rows_of(
        play_seeds_one_by_one(timeline, STEADY_SEEDS, EXACT)
    )
    assert len(asked) == len(rounds) > 1
