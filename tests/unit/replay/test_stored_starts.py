"""`pull_starts` at a stored commit."""

from tests.unit.replay.first_starts import JOINED_MS, OLD, first_start, handover, short, starts
from tests.unit.replay.histories import (
    commit,
    event,
    join,
    leave,
    seen,
    topic,
)


def test_the_last_owners_commit_inside_the_window_is_the_best_estimate() -> None:
    row = handover([commit("a1", 90_000, 40, "x"), commit("a1", 101_000, 55, "x")])
    assert short(row) == ("STORED", 55, 40, 80, "OK")
    assert row["stored_offset"] == 40


def test_a_strangers_commit_inside_the_window_does_not_count() -> None:
    row = handover([commit("a1", 90_000, 40), commit("a1", 101_000, 70, "y")])
    assert short(row) == ("STORED", 40, 40, 80, "OK")


def test_held_before_and_no_commit_seen_starts_where_the_holder_did() -> None:
    row = handover([])
    assert short(row) == ("STORED", 10, 10, 80, "OK")  # x: MAX_OFFSET 10
    assert row["stored_offset"] is None


def test_a_commit_from_before_the_group_is_stored_though_it_had_no_owner() -> None:
    row = first_start(commits=[commit("a0", 90_000, 33, "old")])
    assert row == ("STORED", 33, 33, 90, "OK")


def test_the_owner_that_was_lost_persists_nothing_after_its_loss() -> None:
    rows = starts(
        topic(0, 1),
        join(1_000, "x"),
        join(1_000, "y"),
        event(JOINED_MS, "CONSUMER_LOST", "x"),
        offsets=[seen("a0", 500, 5, 10), seen("a0", JOINED_MS, 5, 60), seen("a0", 103_000, 5, 80)],
        commits=[commit("a0", 90_000, 40, "x")],
    )
    assert short(rows[-1]) == ("STORED", 40, 40, 60, "OK")  # max_offset at its loss


def test_a_queue_long_without_an_owner_starts_at_its_commit_exactly() -> None:
    rows = starts(
        topic(0, 1),
        join(1_000, "x"),
        leave(50_000, "x"),
        join(JOINED_MS, "y"),
        offsets=OLD,
        commits=[commit("a0", 60_000, 44, "x")],
    )
    assert short(rows[-1]) == ("STORED", 44, 44, 44, "OK")
