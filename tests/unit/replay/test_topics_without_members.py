"""Topics of a group that no member subscribes to."""

import pytest

from tests.unit.replay.histories import (
    event,
    join,
    leave,
    owners,
    replay,
    topic,
)


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_the_last_members_leave_all_their_topics_in_whatever_order_they_go(
    order: tuple[str, str],
) -> None:
    tables = replay(
        topic(0, 1),
        topic(0, 1, "U"),
        join(1, "x", "T"),
        join(1, "y", "U"),
        *(leave(99_000, client) for client in order),
    )
    assert owners(tables) == {"a0": "-", "U/a0": "-"}


def test_one_after_the_other_they_leave_what_the_last_one_read() -> None:
    tables = replay(
        topic(0, 1),
        topic(0, 1, "U"),
        join(1, "x", "T"),
        join(1, "y", "U"),
        leave(99_000, "x"),
        leave(99_001, "y"),
    )
    assert owners(tables) == {"U/a0": "-"}


def test_what_is_read_within_the_last_instant_only_is_not_left_behind() -> None:
    before = (topic(0, 1), topic(0, 1, "U"), join(1, "x", "T"))
    for within in (
        [join(99_000, "y", "U"), leave(99_000, "x"), leave(99_000, "y")],
        [leave(99_000, "x"), join(99_000, "y", "U"), leave(99_000, "y")],
        [event(99_000, "SUBSCRIBE", "x", topic="U"), leave(99_000, "x")],
        [event(99_000, "UNSUBSCRIBE", "x", topic="T"), leave(99_000, "x")],
        [leave(99_000, "x"), join(500_000, "y", "U"), leave(500_000, "y")],
    ):
        assert owners(replay(*before, *within)) == {"a0": "-"}
