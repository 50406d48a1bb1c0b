"""`pull_starts` of BROADCASTING groups, whose clients keep the offsets."""

from typing import Any

from tests.unit.replay.first_starts import (
    JOINED_MS,
    OLD,
    first_start,
    short,
    starts,
)
from tests.unit.replay.histories import (
    Row,
    commit,
    join,
    leave,
    seen,
    topic,
)


def broadcast(**given: Any) -> Row:
    """x holds a0, leaves, and comes back at 100 s."""
    return starts(
        topic(0, 1),
        join(1_000, "x"),
        leave(50_000, "x"),
        join(JOINED_MS, "x"),
        message_model="BROADCASTING",
        **{"offsets": OLD, "commits": []} | given,
    )[-1]


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
