"""`pull_starts` where commits are late, lost or unseen."""

import pytest

from rebalance_core.replay.history import CommittedOffset
from tests.unit.replay.first_starts import JOINED_MS, handover, short, starts
from tests.unit.replay.histories import (
    Row,
    commit,
    event,
    join,
    seen,
    topic,
)


@pytest.mark.parametrize(("before_ms", "low"), [(1, 20), (999, 20), (1_000, 40)])
def test_a_commit_logged_less_than_a_second_before_may_not_have_arrived(
    before_ms: int, low: int
) -> None:
    row = handover([commit("a1", 80_000, 20, "x"), commit("a1", JOINED_MS - before_ms, 40, "x")])
    assert (row["start_offset"], row["start_offset_low"]) == (40, low)


def test_what_was_seen_on_the_broker_has_arrived() -> None:
    row = handover([commit("a1", 80_000, 20), commit("a1", JOINED_MS - 1, 40)])
    assert (row["start_offset"], row["start_offset_low"]) == (40, 40)


def test_without_an_older_commit_the_new_owner_may_start_as_if_there_were_none() -> None:
    """Real owners began at 0, 135 and 260 ms after the first commit had been logged."""
    rows = starts(
        topic(0, 2),
        join(1_000, "x"),
        join(JOINED_MS, "y"),
        offsets=[seen("a1", 500, 0, 10, True), seen("a1", 103_000, 0, 80, True)],
        commits=[commit("a1", JOINED_MS - 135, 40, "x")],
    )
    assert short(rows[-1]) == ("STORED", 40, 0, 80, "OK")


def owners_of_a2(*commits: CommittedOffset) -> Row:
    """A queue goes from x to y, and 7 s later to z: the row of z."""
    rows = starts(
        topic(0, 3),
        join(1_000, "x"),
        join(JOINED_MS, "y"),
        join(107_000, "z"),
        offsets=[seen("a2", 500, 5, 10), seen("a2", 120_000, 5, 80)],
        commits=[commit("a2", 90_000, 40, "x"), commit("a2", 101_000, 55, "x"), *commits],
    )
    return next(row for row in rows if row["client_id"] == "z" and row["queue_id"] == 2)


def test_an_owner_that_read_before_the_last_one_persisted_may_commit_less() -> None:
    row = owners_of_a2()
    assert (row["start_offset"], row["start_offset_low"]) == (55, 40)
    # a commit of the owner itself shows where it is, and so does the store once it must be its own
    assert owners_of_a2(commit("a2", 105_000, 60, "y"))["start_offset_low"] == 60
    assert owners_of_a2(commit("a2", 106_500, 60))["start_offset_low"] == 40


def test_a_reader_before_the_only_commit_seen_gets_the_older_one_that_no_file_shows() -> None:
    row = handover([commit("a1", 101_000, 55, "x")])
    assert short(row) == ("STORED", 55, 10, 80, "OK")  # x itself began at 10


def test_a_commit_right_before_the_broker_went_down_may_be_lost() -> None:
    for down_ms, low in ((91_000, 20), (96_001, 40)):
        rows = starts(
            topic(0, 2),
            join(1_000, "x"),
            event(down_ms, "BROKER_DOWN", broker_name="a"),
            event(down_ms + 60_000, "BROKER_UP", broker_name="a"),
            join(400_000, "y"),
            commits=[commit("a1", 80_000, 20, "x"), commit("a1", 90_000, 40, "x")],
        )
        row = next(row for row in rows if row["client_id"] == "y")
        assert (row["start_offset"], row["start_offset_low"]) == (40, low)
