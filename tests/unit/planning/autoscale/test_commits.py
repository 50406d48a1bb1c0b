"""The age of a queue's last commit, against events drawn one by one."""

import numpy as np
import pytest

from rebalance_core.planning.autoscale.commits import (
    COMMIT_S,
    PULL_BATCH,
    age_behind_s,
    age_of_commit_s,
)

LOOKS = np.linspace(100.0, 19_900.0, 400_001)


def mean_age(pulls: np.ndarray, ticks: np.ndarray) -> float:
    """The mean time since the later of the last pull and the last tick."""
    events = np.sort(np.concatenate([pulls, ticks]))
    return float((LOOKS - events[np.searchsorted(events, LOOKS) - 1]).mean())


@pytest.mark.parametrize("come", [0.05, 0.5, 2.0, 20.0])
def test_a_member_that_keeps_up_commits_with_each_message(come: float) -> None:
    draws = np.random.default_rng(7)
    pulls = np.cumsum(draws.exponential(1 / come, int(come * 21_000)))
    age = mean_age(pulls, np.arange(0.0, 20_000.0, COMMIT_S))
    assert age_of_commit_s(np.array([come]))[0] == pytest.approx(age, rel=0.03)


@pytest.mark.parametrize("pace", [1.0, 6.4, 40.0])
def test_a_member_with_a_full_cache_commits_with_each_batch(pace: float) -> None:
    pulls = np.arange(0.0, 20_000.0, PULL_BATCH / pace * 1.000_37)  # all phases of the timer
    age = mean_age(pulls, np.arange(0.0, 20_000.0, COMMIT_S))
    assert age_behind_s(np.array([pace]))[0] == pytest.approx(age, rel=0.03)


def test_without_messages_only_the_timer_commits() -> None:
    nothing = np.zeros(1)
    for age_s in (age_of_commit_s, age_behind_s):
        assert age_s(nothing)[0] == pytest.approx(COMMIT_S / 2)
    # ever more messages: each commit is of the message before
    many = np.array([1e6])
    assert (many * age_of_commit_s(many))[0] == pytest.approx(1.0, rel=1e-3)
