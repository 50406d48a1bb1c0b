"""`pull_starts` after a topic was deleted."""

from typing import Any

import pytest

from rebalance_core.model.events import Event
from tests.unit.replay.first_starts import (
    JOINED_MS,
    OLD,
    short,
    starts,
)
from tests.unit.replay.histories import (
    Row,
    commit,
    event,
    join,
    leave,
    seen,
    topic,
)


def deleted(*rest: Event, gone: str | None = None, **given: Any) -> list[Row]:
    """x commits 500 and leaves, T is deleted at 200 s and made anew at 300 s."""
    observed: dict[str, Any] = {
        "commits": [commit("a0", 60_000, 500)],
        "offsets": [seen("a0", 90_000, 0, 600, True)],
    }
    return starts(
        topic(0, 1),
        join(1_000, "x"),
        leave(50_000, "x"),
        event(200_000, "TOPIC_DELETED", topic="T", broker_name=gone),
        topic(300_000, 1),
        *rest,
        join(400_000, "y"),
        **observed | given,
    )


def test_a_commit_goes_with_the_topic_from_5_0_on() -> None:
    row = deleted()[-1]
    assert short(row) == ("MAX_OFFSET", 0, 0, None, "OK")
    assert (row["stored_offset"], row["min_offset"], row["max_offset"]) == (None, 0, 0)
    assert short(deleted(gone="a")[-1]) == short(row)
    assert short(deleted(broker_version="5.0")[-1])[:3] == ("BROKER_ZERO", 0, 0)
    assert short(deleted(gone="b")[-1])[:4] == ("STORED", 500, 500, 500)  # of another broker


def test_4_9_keeps_the_commit_and_sends_the_first_pull_back() -> None:
    row = deleted(broker_version="4.9")[-1]
    assert short(row) == ("STORED", 500, 500, 500, "OK")
    assert row["corrected_offset"] == 0


@pytest.mark.parametrize(("version", "start"), [("4.9.7", 500), ("5.3.3", 0), (None, 0)])
def test_the_brokers_own_version_counts(version: str | None, start: int) -> None:
    up = event(0, "BROKER_UP", broker_name="a", version=version)
    other = event(0, "BROKER_UP", broker_name="b", version="4.9.7")
    later = event(250_000, "BROKER_UP", broker_name="a", version="4.9.7")
    rows = starts(
        up,
        other,
        topic(0, 1),
        event(200_000, "TOPIC_DELETED", topic="T"),
        later,
        topic(300_000, 1),
        join(400_000, "y"),
        commits=[commit("a0", 60_000, 500)],
    )
    assert rows[-1]["start_offset"] == start


def test_a_commit_after_the_deletion_counts() -> None:
    row = deleted(commits=[commit("a0", 60_000, 500), commit("a0", 350_000, 7)])[-1]
    assert short(row)[:3] == ("STORED", 7, 7)


def test_an_owner_that_outlived_the_queue_may_still_write_its_old_offset() -> None:
    rows = starts(
        topic(0, 1),
        join(1_000, "x"),
        event(200_000, "TOPIC_DELETED", topic="T"),
        topic(300_000, 1),
        leave(400_000, "x"),
        join(500_000, "y"),
        commits=[commit("a0", 60_000, 500, "x")],
        offsets=[],
    )
    assert short(rows[-1]) == ("STORED", 0, 0, None, "OK")


def test_what_was_seen_after_the_next_deletion_bounds_nothing() -> None:
    rows = starts(
        topic(0, 1),
        join(JOINED_MS, "x"),
        event(200_000, "TOPIC_DELETED", topic="T"),
        offsets=[OLD[0], seen("a0", 210_000, 0, 5)],
        commits=[],
    )
    assert short(rows[0]) == ("MAX_OFFSET", 50, 50, None, "OK")
    rows = starts(
        topic(0, 1),
        join(JOINED_MS, "x"),
        event(101_000, "TOPIC_DELETED", topic="T"),
        offsets=OLD[:1],
        commits=[],
    )
    assert short(rows[0]) == ("MAX_OFFSET", 50, 0, None, "OK")  # inside the window
