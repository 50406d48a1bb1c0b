"""Repeated client ids, and members that count without reading."""

from tests.unit.replay.histories import (
    column,
    diffs,
    event,
    join,
    leave,
    owners,
    replay,
    topic,
    windows,
)


def test_two_processes_of_one_id_hold_the_same_queues_and_leave_the_rest_unowned() -> None:
    tables = replay(topic(0, 4), join(1, "x"), join(9, "x", channel_id="2"), leave(99, "x"))
    assert owners(tables, 1) == {"a0": "x x2", "a1": "x x2", "a2": "-", "a3": "-"}
    assert column(tables, "members") == [1, 2, 1]
    assert column(tables, "distinct_members") == [1, 1, 1]
    assert column(tables, "shared") == [0, 2, 0]
    assert column(tables, "orphaned") == [0, 2, 0]
    assert diffs(tables, 1) == [
        "ADD a0 x VOLUNTARY",
        "ADD a1 x VOLUNTARY",
        "DROP a2 x VOLUNTARY",
        "DROP a3 x VOLUNTARY",
    ]
    # The process that leaves is a departed member: its drops are over at once.
    assert diffs(tables, 2) == [
        "DROP a0 x FORCED",
        "DROP a1 x FORCED",
        "ADD a2 x NEW",
        "ADD a3 x NEW",
    ]
    assert windows(tables, 2) == {"DROP a0": 0, "DROP a1": 0, "ADD a2": 3_000, "ADD a3": 3_000}


def test_a_suspended_member_keeps_what_it_held_and_goes_on_counting() -> None:
    tables = replay(
        topic(0, 4),
        join(1, "x"),
        event(9, "CONSUMER_SUSPEND", "x"),
        join(99, "y"),
        event(200, "CONSUMER_RESUME", "x"),
    )
    assert diffs(tables, 1) == []
    assert owners(tables, 2) == {"a0": "x", "a1": "x", "a2": "x, y", "a3": "x, y"}
    assert column(tables, "shared") == [0, 0, 2, 0]
    assert diffs(tables, 2) == ["ADD a2 y VOLUNTARY", "ADD a3 y VOLUNTARY"]
    assert diffs(tables, 3) == ["DROP a2 x VOLUNTARY", "DROP a3 x VOLUNTARY"]
    assert [r["suspended"] for r in tables["memberships"] if r["client_id"] == "x"] == [
        False,
        True,
        False,
    ]


def test_a_suspended_member_keeps_a_queue_that_is_gone() -> None:
    tables = replay(topic(0, 2), join(1, "x"), event(9, "CONSUMER_SUSPEND", "x"), topic(99, 1))
    assert owners(tables) == {"a0": "x", "a1": "x"}
    assert column(tables, "queues") == [2, 2, 1]


def test_what_a_suspended_member_still_held_goes_with_it() -> None:
    tables = replay(
        topic(0, 2), join(1, "x"), event(9, "CONSUMER_SUSPEND", "x"), topic(99, 1), leave(200, "x")
    )
    assert diffs(tables) == ["DROP a0 x FORCED", "DROP a1 x FORCED"]
    assert owners(tables) == {"a0": "-"}


def test_the_share_of_a_member_that_does_not_subscribe_a_topic_has_no_owner() -> None:
    tables = replay(topic(0, 2), topic(0, 2, "U"), join(1, "x", "T"), join(1, "y", "U"))
    assert owners(tables) == {"U/a0": "-", "U/a1": "y", "a0": "x", "a1": "-"}
    assert column(tables, "orphaned") == [2]


def test_a_topic_of_departed_members_is_no_longer_the_groups() -> None:
    tables = replay(
        topic(0, 1), topic(0, 1, "U"), join(1, "x", "T"), join(1, "y", "U"), leave(9, "y")
    )
    assert owners(tables) == {"a0": "x"}
    assert column(tables, "queues") == [2, 1]
