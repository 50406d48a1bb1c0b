"""Retry topics that members no longer read."""

import pytest

from tests.unit.replay.histories import (
    RETRY,
    diffs,
    event,
    join,
    owners,
    replay,
    topic,
)


def test_who_comes_back_as_broadcasting_was_forced_to_drop_its_retry_queue() -> None:
    tables = replay(
        topic(0, 2),
        join(1, "x"),
        join(2, "y"),
        join(99_000, "x", message_model="BROADCASTING"),
        retry=True,
    )
    assert owners(tables, 1)[f"{RETRY}/a0"] == "x"
    assert [line for line in diffs(tables) if RETRY in line] == [f"DROP {RETRY}/a0 x FORCED"]


@pytest.mark.parametrize("retry", [True, False])
def test_another_groups_retry_topic_is_dropped_by_force_once_it_is_not_subscribed(
    retry: bool,
) -> None:
    other = "%RETRY%other"
    tables = replay(
        topic(0, 2, other),
        join(1, "x", other),
        join(2, "y", other),
        event(99_000, "UNSUBSCRIBE", "x", topic=other),
        retry=retry,
    )
    assert diffs(tables) == [f"DROP {other}/a0 x FORCED"]


def test_a_retry_queue_that_passes_on_was_given_up_freely() -> None:
    tables = replay(topic(0, 1), join(2, "y"), join(99_000, "x"), retry=True)
    assert diffs(tables) == [
        f"ADD {RETRY}/a0 x < y VOLUNTARY",
        f"DROP {RETRY}/a0 y > x VOLUNTARY",
        "ADD a0 x < y VOLUNTARY",
        "DROP a0 y > x VOLUNTARY",
    ]
