"""pull_starts: which rule decides where a new owner starts, and between which bounds."""

from typing import Any

import pytest

from rebalance_core.model.events import Event
from rebalance_core.replay.history import CommittedOffset
from tests.unit.replay.histories import (
    RETRY,
    Row,
    commit,
    event,
    history,
    join,
    leave,
    ledger,
    seen,
    topic,
)  # fmt: skip

JOINED_MS = 100_000
FIRST, TIMESTAMP = "CONSUME_FROM_FIRST_OFFSET", "CONSUME_FROM_TIMESTAMP"
# A young queue (min 0, head in memory) is BROKER_ZERO whatever the mode, so tests of the client's
# own rule speak of a queue whose first messages are gone.
OLD = [seen("a0", 90_000, 10, 50), seen("a0", 200_000, 20, 90)]


def starts(*events: Event, retry: bool = False, **settings: Any) -> list[Row]:
    return ledger(history(*events, **settings), retry=retry)["pull_starts"]


def first_start(**settings: Any) -> tuple[Any, ...]:
    """x takes the only queue of a group that never committed: rule, start, low, high, status."""
    settings = {"offsets": OLD, "commits": []} | settings
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), **settings)
    return short(row)


def short(row: Row) -> tuple[Any, ...]:
    return (
        row["rule"], row["start_offset"], row["start_offset_low"], row["start_offset_high"],
        row["status"],
    )  # fmt: skip


# --- nobody committed ----------------------------------------------------------------------------


def test_last_offset_starts_at_the_end_which_moves_until_the_window_closes() -> None:
    assert first_start() == ("MAX_OFFSET", 50, 50, 90, "OK")
    assert first_start(offsets=OLD[:1]) == ("MAX_OFFSET", 50, 50, None, "OK")
    at_once = [*OLD, seen("a0", JOINED_MS + 3_000, 10, 60)]
    assert first_start(offsets=at_once) == ("MAX_OFFSET", 50, 50, 60, "OK")


def test_first_offset_starts_at_zero_seen_or_not() -> None:
    assert first_start(consume_from_where=FIRST) == ("FIRST_ZERO", 0, 0, 0, "OK")
    assert first_start(consume_from_where=FIRST, offsets=None) == ("FIRST_ZERO", 0, 0, 0, "OK")


def test_a_members_own_mode_counts() -> None:
    (row,) = starts(
        topic(0, 1), join(JOINED_MS, "x", consume_from_where=FIRST), offsets=OLD, commits=[]
    )
    assert row["rule"] == "FIRST_ZERO"


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"),
    [
        (50_000, ("TIMESTAMP_SEARCH", 10, 10, 50, "OK")),  # before all: from min on
        (95_000, ("TIMESTAMP_SEARCH", 50, 50, 90, "OK")),
        (90_000, ("TIMESTAMP_SEARCH", 10, 10, 50, "OK")),  # seen at the timestamp bounds above
        (None, (None, None, None, None, "UNKNOWN")),
    ],
)
def test_timestamp_search(timestamp_ms: int | None, expected: tuple[Any, ...]) -> None:
    assert first_start(consume_from_where=TIMESTAMP, consume_timestamp_ms=timestamp_ms) == expected


@pytest.mark.parametrize(
    ("version", "offsets", "rule"),
    [
        ("5.3", (0, 50, None), "BROKER_ZERO"),
        ("5.3", (0, 50, True), "BROKER_ZERO"),
        ("5.3", (0, 50, False), "MAX_OFFSET"),
        ("5.3", (1, 50, True), "MAX_OFFSET"),
        ("5.3", (0, 0, None), "MAX_OFFSET"),  # nothing is in the page cache, so nothing is known
        ("5.0", (0, 0, None), "BROKER_ZERO"),  # before 5.1.0 nothing on disk is enough
        ("4.9", (0, 0, False), "BROKER_ZERO"),  # head_cached counts only when max > 0
    ],
)
def test_broker_zero_by_version(
    version: str, offsets: tuple[int, int, bool | None], rule: str
) -> None:
    rows = [seen("a0", at, *offsets) for at in (90_000, 200_000)]
    assert first_start(offsets=rows, broker_version=version)[0] == rule


def test_an_observation_inside_the_window_widens_a_broker_zero() -> None:
    # Young before, its first message gone inside the window: the client may also see the end.
    rows = [
        seen("a0", 90_000, 0, 50), seen("a0", JOINED_MS + 1_000, 1, 60), seen("a0", 200_000, 1, 70),
    ]  # fmt: skip
    assert first_start(offsets=rows) == ("BROKER_ZERO", 0, 0, 70, "OK")
    # The other way round: entry 0 is read again inside the window, so 0 is possible too.
    rows = [
        seen("a0", 90_000, 0, 50, False), seen("a0", JOINED_MS + 1_000, 0, 60, True),
        seen("a0", 200_000, 0, 70, True),
    ]  # fmt: skip
    assert first_start(offsets=rows) == ("MAX_OFFSET", 50, 0, 70, "OK")


def test_without_an_observation_nothing_is_said() -> None:
    unknown = (None, None, None, None, "UNKNOWN")
    assert first_start(offsets=None) == unknown
    assert first_start(offsets=[]) == unknown
    assert first_start(offsets=OLD[1:]) == unknown  # seen only after the change
    assert first_start(commits=None) == unknown


def test_a_pull_consumer_always_starts_at_zero() -> None:
    assert first_start(consumer_type="PULL") == ("PULL_ALWAYS_ZERO", 0, 0, 0, "OK")
    assert first_start(consumer_type="PULL", commits=None, offsets=None)[0] == "PULL_ALWAYS_ZERO"


def test_lite_pull_refuses_a_deprecated_mode() -> None:
    mode = "CONSUME_FROM_MIN_OFFSET"
    assert first_start(consume_from_where=mode)[:2] == ("MAX_OFFSET", 50)
    failed = first_start(consume_from_where=mode, consumer_type="LITE_PULL")
    assert failed == ("QUERY_FAILED", None, None, None, "FAILED")


# --- retry topics --------------------------------------------------------------------------------


def retry_start(mode: str | None, **offsets: Any) -> tuple[Any, ...]:
    rows = starts(
        topic(0, 1), join(JOINED_MS, "x", consume_from_where=mode), commits=[], retry=True,
        **offsets,
    )  # fmt: skip
    return short(next(row for row in rows if row["topic"] == RETRY))


def test_a_retry_queue_starts_at_zero_or_under_timestamp_at_its_end() -> None:
    # Two observations, min above 0: the broker does not answer 0 by itself.
    old = [seen(f"{RETRY}/a0", 90_000, 3, 7), seen(f"{RETRY}/a0", 200_000, 3, 9)]
    assert retry_start(None, offsets=old) == ("RETRY_ZERO", 0, 0, 0, "OK")
    assert retry_start(FIRST, offsets=old) == ("RETRY_ZERO", 0, 0, 0, "OK")
    assert retry_start(TIMESTAMP, offsets=old) == ("RETRY_MAX", 7, 7, 9, "OK")


def test_a_retry_queue_nobody_observed_is_empty() -> None:
    assert retry_start(None, offsets=[])[:2] == ("RETRY_ZERO", 0)
    assert retry_start(TIMESTAMP, offsets=[])[:2] == ("RETRY_MAX", 0)


# --- somebody committed --------------------------------------------------------------------------


def handover(commits: list[CommittedOffset]) -> Row:
    """y joins at 100 s and takes a1 from x: the row of y."""
    rows = starts(
        topic(0, 2), join(1_000, "x"), join(JOINED_MS, "y"), commits=commits,
        offsets=[seen("a1", 500, 5, 10), seen("a1", 103_000, 5, 80)],
    )  # fmt: skip
    return next(row for row in rows if row["client_id"] == "y")


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


def test_a_commit_from_before_the_group_is_stored_though_nobody_held_it() -> None:
    row = first_start(commits=[commit("a0", 90_000, 33, "old")])
    assert row == ("STORED", 33, 33, 90, "OK")


def test_the_owner_that_was_lost_persists_nothing_after_its_loss() -> None:
    rows = starts(
        topic(0, 1), join(1_000, "x"), join(1_000, "y"), event(JOINED_MS, "CONSUMER_LOST", "x"),
        offsets=[seen("a0", 500, 5, 10), seen("a0", JOINED_MS, 5, 60), seen("a0", 103_000, 5, 80)],
        commits=[commit("a0", 90_000, 40, "x")],
    )  # fmt: skip
    assert short(rows[-1]) == ("STORED", 40, 40, 60, "OK")  # max_offset at its loss


def test_a_queue_nobody_held_for_long_starts_at_its_commit_exactly() -> None:
    rows = starts(
        topic(0, 1), join(1_000, "x"), leave(50_000, "x"), join(JOINED_MS, "y"),
        offsets=OLD, commits=[commit("a0", 60_000, 44, "x")],
    )  # fmt: skip
    assert short(rows[-1]) == ("STORED", 44, 44, 44, "OK")


# --- commits that are late, lost or unseen -------------------------------------------------------


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
        topic(0, 2), join(1_000, "x"), join(JOINED_MS, "y"),
        offsets=[seen("a1", 500, 0, 10, True), seen("a1", 103_000, 0, 80, True)],
        commits=[commit("a1", JOINED_MS - 135, 40, "x")],
    )  # fmt: skip
    assert short(rows[-1]) == ("STORED", 40, 0, 80, "OK")


def owners_of_a2(*commits: CommittedOffset) -> Row:
    """A queue goes from x to y, and 7 s later to z: the row of z."""
    rows = starts(
        topic(0, 3), join(1_000, "x"), join(JOINED_MS, "y"), join(107_000, "z"),
        offsets=[seen("a2", 500, 5, 10), seen("a2", 120_000, 5, 80)],
        commits=[commit("a2", 90_000, 40, "x"), commit("a2", 101_000, 55, "x"), *commits],
    )  # fmt: skip
    return next(row for row in rows if row["client_id"] == "z" and row["queue_id"] == 2)


def test_an_owner_that_read_before_the_last_one_persisted_may_commit_less() -> None:
    row = owners_of_a2()
    assert (row["start_offset"], row["start_offset_low"]) == (55, 40)
    # a commit of the owner itself tells where it is, and so does the store once it must be its own
    assert owners_of_a2(commit("a2", 105_000, 60, "y"))["start_offset_low"] == 60
    assert owners_of_a2(commit("a2", 106_500, 60))["start_offset_low"] == 40


def test_a_reader_before_the_only_commit_seen_gets_the_older_one_nobody_saw() -> None:
    row = handover([commit("a1", 101_000, 55, "x")])
    assert short(row) == ("STORED", 55, 10, 80, "OK")  # x itself began at 10


def test_a_commit_right_before_the_broker_went_down_may_be_lost() -> None:
    for down_ms, low in ((91_000, 20), (96_001, 40)):
        rows = starts(
            topic(0, 2), join(1_000, "x"),
            event(down_ms, "BROKER_DOWN", broker_name="a"),
            event(down_ms + 60_000, "BROKER_UP", broker_name="a"), join(400_000, "y"),
            commits=[commit("a1", 80_000, 20, "x"), commit("a1", 90_000, 40, "x")],
        )  # fmt: skip
        row = next(row for row in rows if row["client_id"] == "y")
        assert (row["start_offset"], row["start_offset_low"]) == (40, low)


# --- what nobody looked at -----------------------------------------------------------------------


@pytest.mark.parametrize("version", ["4.9", "5.1.0", "5.3"])
def test_residency_that_is_not_known_leaves_both_answers(version: str) -> None:
    def start(cached: bool | None, last: bool | None) -> tuple[Any, ...]:
        rows = [seen("a0", 90_000, 0, 50, cached), seen("a0", 200_000, 0, 90, last)]
        return first_start(offsets=rows, broker_version=version)

    assert start(None, None) == ("BROKER_ZERO", 0, 0, 90, "OK")
    assert start(True, True) == ("BROKER_ZERO", 0, 0, 0, "OK")
    assert start(True, False) == ("BROKER_ZERO", 0, 0, 90, "OK")
    assert start(False, True) == ("MAX_OFFSET", 50, 0, 90, "OK")
    assert start(False, False) == ("MAX_OFFSET", 50, 50, 90, "OK")


def test_another_minimum_after_the_window_leaves_both_answers() -> None:
    rows = [seen("a0", 90_000, 0, 50, True), seen("a0", 200_000, 3, 90, True)]
    assert first_start(offsets=rows) == ("BROKER_ZERO", 0, 0, 90, "OK")
    assert first_start(offsets=rows[:1]) == ("BROKER_ZERO", 0, 0, None, "OK")  # nobody looked


# --- deleted topics ------------------------------------------------------------------------------


def deleted(*rest: Event, gone: str | None = None, **given: Any) -> list[Row]:
    """x commits 500 and leaves, T is deleted at 200 s and made anew at 300 s."""
    observed: dict[str, Any] = {
        "commits": [commit("a0", 60_000, 500)],
        "offsets": [seen("a0", 90_000, 0, 600, True)],
    }
    return starts(
        topic(0, 1), join(1_000, "x"), leave(50_000, "x"),
        event(200_000, "TOPIC_DELETED", topic="T", broker_name=gone), topic(300_000, 1), *rest,
        join(400_000, "y"),
        **observed | given,
    )  # fmt: skip


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
        up, other, topic(0, 1), event(200_000, "TOPIC_DELETED", topic="T"), later,
        topic(300_000, 1), join(400_000, "y"), commits=[commit("a0", 60_000, 500)],
    )  # fmt: skip
    assert rows[-1]["start_offset"] == start


def test_a_commit_after_the_deletion_counts() -> None:
    row = deleted(commits=[commit("a0", 60_000, 500), commit("a0", 350_000, 7)])[-1]
    assert short(row)[:3] == ("STORED", 7, 7)


def test_an_owner_that_outlived_the_queue_may_still_write_its_old_offset() -> None:
    rows = starts(
        topic(0, 1), join(1_000, "x"), event(200_000, "TOPIC_DELETED", topic="T"),
        topic(300_000, 1), leave(400_000, "x"), join(500_000, "y"),
        commits=[commit("a0", 60_000, 500, "x")], offsets=[],
    )  # fmt: skip
    assert short(rows[-1]) == ("STORED", 0, 0, None, "OK")


def test_what_was_seen_after_the_next_deletion_bounds_nothing() -> None:
    rows = starts(
        topic(0, 1), join(JOINED_MS, "x"), event(200_000, "TOPIC_DELETED", topic="T"),
        offsets=[OLD[0], seen("a0", 210_000, 0, 5)], commits=[],
    )  # fmt: skip
    assert short(rows[0]) == ("MAX_OFFSET", 50, 50, None, "OK")
    rows = starts(
        topic(0, 1), join(JOINED_MS, "x"), event(101_000, "TOPIC_DELETED", topic="T"),
        offsets=OLD[:1], commits=[],
    )  # fmt: skip
    assert short(rows[0]) == ("MAX_OFFSET", 50, 0, None, "OK")  # inside the window


# --- BROADCASTING --------------------------------------------------------------------------------


def broadcast(**given: Any) -> Row:
    """x holds a0, leaves, and comes back at 100 s."""
    return starts(
        topic(0, 1), join(1_000, "x"), leave(50_000, "x"), join(JOINED_MS, "x"),
        message_model="BROADCASTING", **{"offsets": OLD, "commits": []} | given,
    )[-1]  # fmt: skip


def test_broadcasting_reads_the_clients_own_store() -> None:
    row = broadcast(commits=[commit("a0", 40_000, 35, "x"), commit("a0", 45_000, 99, "other")])
    assert short(row) == ("LOCAL_STORE", 35, 35, 35, "OK")
    assert row["stored_offset"] == 35


def test_broadcasting_that_persists_inside_the_window_starts_between_its_rows() -> None:
    rows = [commit("a0", 40_000, 35, "x"), commit("a0", JOINED_MS + 1_000, 60, "x")]
    assert short(broadcast(commits=rows)) == ("LOCAL_STORE", 60, 35, 60, "OK")


def test_broadcasting_without_its_row_is_anywhere_up_to_the_end() -> None:
    assert short(broadcast()) == ("LOCAL_STORE", None, 0, 90, "UNKNOWN")


def test_broadcasting_never_asks_the_broker_at_first() -> None:
    young = [seen("a0", 90_000, 0, 50), seen("a0", 200_000, 0, 90)]
    given = first_start(message_model="BROADCASTING", offsets=young)
    assert given == ("MAX_OFFSET", 50, 50, 90, "OK")


# --- the first pull ------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("stored", "corrected", "skipped"),
    [
        (None, None, 40),  # MAX_OFFSET 50 jumps over 10..49
        (4, 10, 0),  # below min -> min
        (60, 50, 0),  # above max -> max
        (30, None, 0),
    ],
)
def test_corrected_and_skipped(stored: int | None, corrected: int | None, skipped: int) -> None:
    commits = [] if stored is None else [commit("a0", 90_000, stored)]
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), offsets=OLD, commits=commits)
    assert (row["min_offset"], row["max_offset"]) == (10, 50)
    assert (row["corrected_offset"], row["skipped"]) == (corrected, skipped)


@pytest.mark.parametrize(
    ("seen_before", "corrected"),
    [
        (False, None),  # the queue has grown to what its reader committed
        (True, 50),  # it ended at 50 when 60 was committed already
    ],
)
def test_an_end_that_is_older_than_the_commit_moves_nothing(
    seen_before: bool, corrected: int | None
) -> None:
    commits = [commit("a0", 95_000, 60)] + [commit("a0", 80_000, 70)] * seen_before
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), offsets=OLD, commits=commits)
    assert (row["start_offset"], row["max_offset"], row["corrected_offset"]) == (60, 50, corrected)


def test_without_an_observation_nothing_is_corrected() -> None:
    (row,) = starts(topic(0, 1), join(JOINED_MS, "x"), commits=[], consume_from_where=FIRST)
    assert (row["start_offset"], row["corrected_offset"], row["skipped"]) == (0, None, None)
