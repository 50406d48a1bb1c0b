"""First offsets around the loss of a master lie in their bounds, whatever was kept of commits."""

import random
from typing import Any

import pytest

from rebalance_core.replay.invariants import check_ledger
from rebalance_core.replay.stored_start import StoredStarts
from tests.unit.replay.commit_truth import outside
from tests.unit.replay.histories import (
    Row,
    commit,
    event,
    history,
    join,
    leave,
    ledger,
    seen,
    topic,
)
from tests.unit.replay.role_switch_truth import ReplicatedCluster

HISTORIES = 100
DOWN_MS, UP_MS, LEFT_MS = 400_000, 500_000, 600_000
OLD = [seen("a0", 100, 10, 90), seen("a0", 1_000_000, 10, 95)]


def wrong_starts(seed: int, *, sound: bool = True) -> tuple[int, list[str]]:
    compared, wrong = 0, []
    for number in range(HISTORIES):
        truth = ReplicatedCluster(random.Random(f"{seed}/{number}")).run()
        tables = ledger(truth.history)
        assert not sound or check_ledger(tables) == [], f"history {seed}/{number}"
        for row, offset, is_wrong in outside(truth, tables["pull_starts"]):
            compared += 1
            if is_wrong:
                wrong.append(f"history {seed}/{number}: real {offset}, {row}")
    return compared, wrong


def test_every_real_start_lies_in_its_bounds(seed: int) -> None:
    compared, wrong = wrong_starts(seed)
    assert wrong == []
    assert compared > 2 * HISTORIES


def test_bounds_that_know_nothing_of_masters_are_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(StoredStarts, "follow_masters", lambda *_: None)
    _, wrong = wrong_starts(0, sound=False)
    assert wrong != []


def starts(*more: Any, commits: Any = (), left_ms: int = LEFT_MS, **settings: Any) -> Row:
    """y takes a0 from x, which had it since 1 s, when x leaves."""
    given = history(
        topic(0, 1),
        join(1_000, "x"),
        *more,
        join(left_ms - 90_000, "y"),
        leave(left_ms, "x"),
        commits=commits,
        offsets=OLD,
        **settings,
    )
    return ledger(given)["pull_starts"][-1]


def master_down(at_ms: int = DOWN_MS, detail: str | None = "SLAVE_READ") -> Any:
    return event(at_ms, "MASTER_DOWN", broker_name="a", detail=detail)


UP = event(UP_MS, "MASTER_UP", broker_name="a")
COMMITS = [
    commit("a0", 300_000, 16, "x"), commit("a0", DOWN_MS - 1_000, 20, "x"),
    commit("a0", DOWN_MS + 60_000, 42, "x"),
]  # fmt: skip


def bounds(row: Row) -> tuple[Any, ...]:
    return row["start_offset"], row["start_offset_low"], row["start_offset_high"]


def test_the_slave_answers_with_what_it_was_given_or_had_copied() -> None:
    at_ms = DOWN_MS + 95_000
    assert bounds(starts(master_down(), commits=COMMITS, left_ms=at_ms)) == (42, 16, 95)
    assert bounds(starts(commits=COMMITS, left_ms=at_ms)) == (42, 42, 95)


def test_the_master_that_is_back_knows_no_commit_of_the_outage() -> None:
    row = starts(master_down(), UP, commits=COMMITS)
    assert (bounds(row), row["stored_offset"]) == ((20, 16, 95), 20)


def test_what_the_owner_commits_once_the_lists_are_whole_counts_again() -> None:
    early, late = commit("a0", UP_MS + 20_000, 50, "x"), commit("a0", UP_MS + 95_000, 60, "x")
    assert bounds(starts(master_down(), UP, commits=[*COMMITS, early])) == (50, 16, 95)
    assert bounds(starts(master_down(), UP, commits=[*COMMITS, early, late])) == (60, 60, 95)


@pytest.mark.parametrize(("detail", "status"), [("REFUSED", "FAILED"), ("SLAVE_READ", "FAILED"),
                                                ("ACTING", "OK"), (None, "OK")])  # fmt: skip
def test_only_a_master_knows_where_a_queue_ends(detail: str | None, status: str) -> None:
    given = history(
        topic(0, 1),
        master_down(1_000, detail),
        join(100_000, "x"),
        commits=[],
        offsets=OLD,
    )
    (row,) = ledger(given)["pull_starts"]
    assert (row["status"], row["rule"]) == (
        status,
        "QUERY_FAILED" if status == "FAILED" else "MAX_OFFSET",
    )


def test_queues_of_other_brokers_go_astray_with_the_lists_of_a_master_that_is_back() -> None:
    """For some seconds somebody else may read them, and commit less than their owner."""
    given = history(
        topic(0, 1),
        topic(0, 1, broker="b"),
        join(1_000, "x"),
        master_down(),
        UP,
        join(UP_MS + 50_000, "y"),
        commits=[commit("b0", 300_000, 5, "x"), commit("b0", UP_MS + 30_000, 30, "x")],
        offsets=[seen("b0", 100, 0, 90), seen("b0", 1_000_000, 0, 95)],
    )
    row = ledger(given)["pull_starts"][-1]
    assert (row["broker_name"], row["client_id"]) == ("b", "y")
    assert bounds(row) == (30, 5, 95)
