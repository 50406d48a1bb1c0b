"""Kinds of diffs, and clients of other consumer types."""

from tests.unit.replay.histories import (
    diffs,
    event,
    join,
    leave,
    owners,
    replay,
    topic,
)


def test_kinds_of_a_join_and_a_leave() -> None:
    tables = replay(topic(0, 4), join(1, "x"), join(9, "y"), leave(99, "x"))
    assert diffs(tables, 0) == [f"ADD a{i} x NEW" for i in range(4)]
    assert diffs(tables, 1) == [
        "ADD a2 y < x VOLUNTARY",
        "DROP a2 x > y VOLUNTARY",
        "ADD a3 y < x VOLUNTARY",
        "DROP a3 x > y VOLUNTARY",
    ]
    assert diffs(tables, 2) == [
        "ADD a0 y < x FORCED",
        "DROP a0 x > y FORCED",
        "ADD a1 y < x FORCED",
        "DROP a1 x > y FORCED",
    ]


def test_a_drop_is_forced_when_the_queue_or_the_subscription_is_gone() -> None:
    scaled = replay(topic(0, 2), join(1, "x"), topic(9, 1))
    assert diffs(scaled) == ["DROP a1 x FORCED"]
    left = replay(topic(0, 2), join(1, "x"), join(1, "y"), event(9, "UNSUBSCRIBE", "x", topic="T"))
    # y goes on counting x, whose share has no owner now.
    assert diffs(left) == ["DROP a0 x FORCED"]
    assert owners(left) == {"a0": "-", "a1": "y"}


def test_a_queue_that_comes_back_is_new_again() -> None:
    tables = replay(
        topic(0, 1),
        topic(0, 1, broker="b"),
        join(1, "x"),
        event(9, "BROKER_DOWN", broker_name="b"),
        event(99, "BROKER_UP", broker_name="b"),
    )
    assert diffs(tables, 1) == ["DROP b0 x FORCED"]
    assert diffs(tables, 2) == ["ADD b0 x NEW"]
