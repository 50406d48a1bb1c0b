"""Passes that change nothing are counted, not played; the log is the reference's."""

import numpy as np
import pytest

from rebalance_core.timing.group_timeline import GroupTimeline
from rebalance_core.timing.reference.play import play_seeds_one_by_one, play_with_passes
from rebalance_core.timing.vectorized import play_seeds
from rebalance_core.timing.vectorized.member_lists import MemberLists
from rebalance_core.timing.vectorized.passes import Runner
from tests.unit.replay.histories import event, topic
from tests.unit.timing.futures import EXACT, happens, joins, rows_of, story

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
    """Thirty members of six queues: who comes last by name changes no share."""
    timeline = story(
        *(topic(0, 3, "T", name) for name in "ab"),
        *(joins(100 * n, f"c{n:02}") for n in range(30)),
        *(joins(400_000 + 900 * n, f"d{n:02}") for n in range(20)),
        *(happens(700_000 + 900 * n, "CONSUMER_LEAVE", f"d{n:02}") for n in range(20)),
        subscriptions=("T",),
        client_version="4.9.4",
        broker_version="4.9.4",
    )
    passes = sum(len(play_with_passes(timeline, seed, EXACT).passes) for seed in STEADY_SEEDS)
    assert played(timeline, monkeypatch) < passes / 3


def test_who_came_long_ago_still_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """The only member, and a route that loses queues a good while after it came."""
    timeline = story(
        *(topic(0, 5, "T", name) for name in "ab"),
        joins(0, "c1"),
        event(400_000, "TOPIC_DELETED", topic="T", broker_name="b"),
        subscriptions=("T",),
        client_version="4.9.4",
        broker_version="4.9.4",
    )
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
        subscriptions=("T", "U", "V"),
        client_version="4.9.4",
        broker_version="4.9.4",
    )
    assert rows_of(play_seeds(timeline, STEADY_SEEDS, EXACT)) == rows_of(
        play_seeds_one_by_one(timeline, STEADY_SEEDS, EXACT)
    )
    assert len(asked) == len(rounds) > 1
