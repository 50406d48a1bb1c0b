"""Backlogs that several members take before the first has committed, out of logs made by hand."""

from typing import Any

import pytest

from rebalance_core.model import events
from rebalance_core.model.group_settings import GroupSettings
from tests.unit.timing.hand_made import Group, written

SEEDS = 400


def mean(values: list[int]) -> float:
    return sum(values) / len(values)


def takes_in_turn(group: Group, *times_ms: int, ends_ms: int) -> list[dict[str, Any]]:
    """Hand-overs of queue 0: each member takes it at its time, all but the last drop it at once."""
    members = [f"c{number}" for number in range(len(times_ms))]
    rows = [(seed, "c", 0, 0, -1) for seed in range(SEEDS)]
    for seed in range(SEEDS):
        rows += [(seed, client, 0, at, 1) for client, at in zip(members, times_ms, strict=True)]
        rows += [(seed, client, 0, ends_ms, -1) for client in members[:-1]]
    found: list[dict[str, Any]] = group.measured(*rows, seeds=SEEDS).handovers.to_pylist()
    return found


def starting_together(per_second: float, count: int) -> Group:
    """c0, c1 … join once c has left, whose queue 0 then waits."""
    group = Group()
    group.there("c")
    group.topic(-100_000, 1, observed=True)
    group.queue_offsets = (written(0, -50_000, 0), written(0, 350_000, round(400 * per_second)))
    group.settings = GroupSettings(subscriptions=("T",), client_version="5.3")
    group.consumer(0, events.CONSUMER_LEAVE, "c")
    for number in range(count):
        group.consumer(1, events.CONSUMER_JOIN, f"c{number}")
    return group


def copies_of_last(group: Group, *times_ms: int, ends_ms: int) -> float:
    found = takes_in_turn(group, *times_ms, ends_ms=ends_ms)
    last = f"c{len(times_ms) - 1}"
    return mean([row["read_again"] for row in found if row["to_client_id"] == last])


def test_a_backlog_is_read_again_by_all_that_take_it_before_it_is_committed() -> None:
    group = starting_together(10, 3)
    # c0 pulls 0.5 s after its take and commits with the next message, up to 0.1 s later
    waits = 4_000
    one = copies_of_last(group, waits, waits + 300, ends_ms=waits + 900)
    assert one == pytest.approx(4.9 * 10, abs=1)
    # c1 asked before c0 had read, so c2, which asks before c1 has, is as far behind
    two = copies_of_last(group, waits, waits + 300, waits + 600, ends_ms=waits + 1_200)
    assert two == pytest.approx(5.2 * 10, abs=1)


def test_what_is_read_and_committed_is_not_read_again() -> None:
    group = starting_together(10, 2)
    assert copies_of_last(group, 4_000, 5_000, ends_ms=5_200) <= 2 + 1


def test_a_backlog_is_committed_with_the_pull_after_the_next_message() -> None:
    group = starting_together(1, 2)
    # half of the time no message has come between the first pull at 4.5 s and 5.0 s
    copies = copies_of_last(group, 4_000, 5_000, ends_ms=5_001)
    assert copies == pytest.approx(0.5 * 5, abs=0.6 + 0.5)


def test_a_killed_member_leaves_the_backlog_that_it_has_not_committed() -> None:
    group = starting_together(10, 2)
    group.consumer(4_550, events.CONSUMER_LOST, "c0")
    rows = [
        (seed, "c0", 0, at, delta)
        for seed in range(SEEDS)
        for at, delta in ((4_000, 1), (4_550, -1))
    ]
    rows += [(seed, "c", 0, 0, -1) for seed in range(SEEDS)]
    rows += [(seed, "c1", 0, 4_700, 1) for seed in range(SEEDS)]
    found = group.measured(*rows, seeds=SEEDS).handovers.to_pylist()
    copies = [row["read_again"] for row in found if row["to_client_id"] == "c1"]
    # by then half have committed but the last message, the others none of 4.55 s
    assert mean(copies) == pytest.approx((45.5 + 1) / 2, abs=3)
