"""Windows of diffs and transient epochs."""

import pytest

from rebalance_core.model.events import Event
from tests.unit.replay.histories import (
    RETRY,
    column,
    event,
    join,
    leave,
    replay,
    topic,
    windows,
)


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ([join(100_000, "a")], dict.fromkeys(["ADD a0", "DROP a0", "ADD a1", "DROP a1"], 3_000)),
        ([leave(100_000, "y")], {"ADD a1": 3_000, "DROP a1": 0}),
        ([event(100_000, "CONSUMER_LOST", "y")], {"ADD a1": 3_000, "DROP a1": 0}),
        (
            [event(100_000, "CONSUMER_LOST", "y", detail="EXPIRED")],
            {"ADD a1": 33_000, "DROP a1": 0},
        ),
        ([event(100_000, "UNSUBSCRIBE", "x", topic="T")], {"DROP a0": 23_000}),
        ([topic(100_000, 3)], {"ADD a1": 53_000, "DROP a1": 53_000, "ADD a2": 53_000}),
        ([event(100_000, "CONSUMER_SUSPEND", "x")], {}),
    ],
)
def test_the_window_of_each_event(last: list[Event], expected: dict[str, int]) -> None:
    tables = replay(topic(0, 2), join(1, "x"), join(1, "y"), *last)
    assert windows(tables) == expected


def test_a_window_that_is_still_open_extends_the_next_ones() -> None:
    tables = replay(
        topic(0, 1),
        join(1, "x"),
        topic(100_000, 2),
        join(110_000, "y"),
        join(160_000, "z"),
        leave(190_000, "x"),
    )
    assert windows(tables, 1) == {"ADD a1": 53_000}
    assert windows(tables, 2) == {"ADD a1": 43_000, "DROP a1": 43_000}
    assert column(tables, "transient") == [False, True, False, False, False]
    assert windows(tables, 4)["ADD a0"] == 3_000


def test_orderly_adds_wait_for_the_lock() -> None:
    tables = replay(topic(0, 2), join(1, "x"), join(100_000, "y"), ordered=True)
    assert windows(tables) == {"ADD a1": 64_000, "DROP a1": 3_000}


def test_the_retry_topics_first_appearance_has_a_window_of_its_own() -> None:
    tables = replay(topic(0, 1), join(1_000, "x"), join(9_000, "y"), leave(90_000, "x"), retry=True)
    assert windows(tables, 0) == {f"ADD {RETRY}/a0": 53_000, "ADD a0": 3_000}
    # Not transient after 8 s, though the retry topic may come after 53 s.
    assert column(tables, "transient") == [False, False, False]
    assert windows(tables, 2)[f"ADD {RETRY}/a0"] == 3_000


def test_an_epoch_that_ends_at_its_latest_moment_is_settled() -> None:
    tables = replay(topic(0, 2), join(1_000, "x"), join(4_000, "y"), join(6_999, "z"))
    assert column(tables, "transient") == [False, True, False]
