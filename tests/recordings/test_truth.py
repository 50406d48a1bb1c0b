"""The replay of every recording against what its clients really did."""

from collections.abc import Iterator
from functools import cache
from statistics import median

import pytest

from tests.recordings.tables import RECORDINGS, Row, Tables, replayed
from tests.recordings.truth import (
    RETRY,
    Comparison,
    Starts,
    Truth,
    check_moves,
    check_owned,
    check_starts,
    read_truth,
)

OWNED_FACTS, MOVE_FACTS, START_FACTS = 1_364, 1_322, 1_291
MINIMUM_EXACT = 0.85
MOVED_FIRST_PULLS = {"start-offsets": 7}
MOVED_WITHIN_MS = 10_000
# Its thawed broker lists each member many times (rocketmq.md §13 no. 5): the retry topic of that
# group has no settled state to compare with.
EXCEPTION = ("silent-loss", RETRY)


@cache
def ledger(name: str) -> Tables:
    return replayed(name)


@cache
def truth(name: str) -> Truth:
    return read_truth(name)


def unexplained(result: Comparison) -> list[str]:
    name, topic = EXCEPTION
    return [m for m in result.mismatches if not (m.startswith(name + " ") and topic in m)]


@pytest.mark.parametrize("name", RECORDINGS)
def test_every_live_client_owns_what_the_ledger_has_whenever_the_group_is_at_rest(
    name: str,
) -> None:
    assert unexplained(check_owned(truth(name), ledger(name))) == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_net_moves_between_settled_epochs_happen_inside_their_windows(name: str) -> None:
    assert check_moves(truth(name), ledger(name)).mismatches == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_first_real_start_lies_in_the_bounds(name: str) -> None:
    assert check_starts(truth(name), ledger(name)).mismatches == []


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_first_pull_that_is_moved_was_moved_there(name: str) -> None:
    """OFFSET_ILLEGAL: the client gives the queue up and starts it again where it was sent."""
    moved = [row for row in ledger(name)["pull_starts"] if row["corrected_offset"] is not None]
    assert [row for row in moved if row["corrected_offset"] not in again(truth(name), row)] == []
    assert len(moved) == MOVED_FIRST_PULLS.get(name, 0)


def again(real: Truth, row: Row) -> list[int]:
    """Where the new owner started the queue after it had taken it."""
    queue = row["topic"], row["broker_name"], row["queue_id"]
    starts = [
        line["next_offset"]
        for who in real.client_of[row["client_id"]]
        for line in real.lines[who]
        if line["kind"] == "start"
        and line["group"] == row["consumer_group"]
        and (line["topic"], line["broker"], line["queue_id"]) == queue
        and row["change_ms"] <= line["t"] <= row["latest_ms"] + MOVED_WITHIN_MS
    ]
    return starts[1:]


def test_no_fact_gets_lost() -> None:
    """The counts keep the comparisons above from passing because they compare nothing."""
    owned = sum(check_owned(truth(name), ledger(name)).facts for name in RECORDINGS)
    moves = sum(check_moves(truth(name), ledger(name)).facts for name in RECORDINGS)
    starts = sum(check_starts(truth(name), ledger(name)).facts for name in RECORDINGS)
    assert (owned, moves, starts) == (OWNED_FACTS, MOVE_FACTS, START_FACTS)


def test_estimates_are_exact_where_the_last_owner_s_commits_were_collected() -> None:
    """Of `timing` half the client logs are missing: nobody can know those commits."""
    results: list[Starts] = list(all_starts())
    seen = sum(result.owner_seen for result in results)
    exact = sum(result.exact_where_seen for result in results)
    widths = [width for result in results for width in result.widths]
    print(f"exact {exact} of {seen}, median width of the bounds {median(widths)}")
    assert seen > 300
    assert exact / seen >= MINIMUM_EXACT


def test_estimates_of_all_recordings_but_timing_are_exact_for_all_rows_with_a_commit() -> None:
    results = list(all_starts("timing"))
    assert sum(r.exact for r in results) / sum(r.with_commit for r in results) >= MINIMUM_EXACT


@pytest.mark.parametrize(("table", "check"), [("ownership", check_owned), ("diffs", check_moves)])
def test_a_wrong_ledger_is_reported(table: str, check: object) -> None:
    wrong = dict(ledger("join-leave"))
    wrong[table] = [row | {"queue_id": row["queue_id"] ^ 1} for row in wrong[table]]
    assert callable(check)
    assert check(truth("join-leave"), wrong).mismatches


def all_starts(*without: str) -> Iterator[Starts]:
    for name in RECORDINGS:
        if name not in without:
            yield check_starts(truth(name), ledger(name))
