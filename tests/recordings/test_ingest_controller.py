"""Controller mode: two processes of one broker are its master by turns (recording `controller`).

A slave deletes and creates all its topics and groups at each copy; that is no change of the broker.
"""

import shutil
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.tables import DATA, Row, Tables, ingested_recording, ledger_of, rows
from tests.recordings.test_ingest_slaves import events_of, held, owned, rest_points
from tests.recordings.truth import check_moves, check_starts, read_truth

NAME = "controller"
GROUPS = ("orders-app", "ledger")
MIDDLE_MS = 500


@cache
def ingested() -> Ingested:
    return ingested_recording(NAME)


@cache
def ledger() -> Tables:
    return ledger_of(ingested().tables)


def recorded(*kinds: str) -> list[Row]:
    return [row for row in rows(DATA / NAME / "events.jsonl") if row["event"] in kinds]


def turns(found: Tables) -> list[tuple[str, int]]:
    rows_ = events_of(found, "MASTER_DOWN", "MASTER_UP")
    assert {row["broker_name"] for row in rows_} == {"broker-a"}
    return [(row["event_type"], row["event_ms"]) for row in rows_]


def test_everything_is_understood() -> None:
    assert ingested().tables["rejected"] == []
    assert [one.name for one in ingested().stats if one.understood != one.lines] == []


def test_a_switch_is_the_end_of_one_master_and_the_begin_of_the_next() -> None:
    found = turns(ingested().tables)
    assert [kind for kind, _ in found] == ["MASTER_DOWN", "MASTER_UP"] * 2
    ends = [row["t"] for row in recorded("broker_killed", "broker_stopped")]
    exits = [row["t"] for row in recorded("broker_exited")]
    times = [at_ms for _, at_ms in found]
    assert all(abs(times[n] - at_ms) < 1_000 for n, at_ms in zip((0, 2), ends, strict=True))
    assert 0 < times[1] - times[0] <= 2_000, "elected within a second of the kill"
    assert abs(times[3] - exits[0]) < 1_000, "elected when the process exits"


def test_what_a_slave_logs_of_topics_and_groups_is_no_change() -> None:
    found = ingested().tables
    assert events_of(found, "TOPIC_DELETED", "BROKER_DOWN") == []
    created = [r for r in events_of(found, "TOPIC_CONFIG") if r["topic"] == "Orders"]
    assert len(created) == 1
    kinds = {row["kind"] for row in found["observed_facts"]}
    assert "GROUP_DELETED" not in kinds


@pytest.mark.parametrize("group", GROUPS)
def test_owned_sets_at_rest_are_the_real_ones(group: str) -> None:
    points = rest_points(NAME)
    assert len(points) == 5
    # in each state: two processes, one master dead, back as slave, the second stopped
    between = [row["t"] - MIDDLE_MS for row in recorded("snapshot")[:4]]
    for at_ms in (*points, *between):
        assert held(ledger(), group, at_ms) == owned(NAME, group, at_ms), at_ms


def test_moves_and_starts_are_the_real_ones() -> None:
    moves = check_moves(read_truth(NAME), ledger())
    assert (moves.mismatches, moves.facts) == ([], 20)
    commits: Any = ingested().tables["committed_offsets"]
    starts = check_starts(read_truth(NAME), ledger(), commits)
    assert (starts.mismatches, starts.facts) == ([], 16)


@pytest.mark.parametrize(
    ("missing", "switches"),
    # the end of a master without files is in none
    [("namesrv", 2), ("mqadmin", 2), ("brokers/broker-a-2", 1), ("brokers/broker-a-1", 2)],
)
def test_with_files_missing_nothing_is_deleted_either(
    missing: str, switches: int, tmp_path: Path
) -> None:
    folder = Path(shutil.copytree(DATA / NAME / "collection", tmp_path / "c"))
    shutil.rmtree(folder / missing)
    found = ingest_collection(folder).tables
    assert events_of(found, "TOPIC_DELETED") == []
    assert [kind for kind, _ in turns(found)] == ["MASTER_DOWN", "MASTER_UP"] * switches
    replayed = ledger_of(found)
    for group in GROUPS:
        at_ms = recorded("snapshot")[0]["t"] - MIDDLE_MS
        assert held(replayed, group, at_ms) == owned(NAME, group, at_ms)


def test_each_answer_is_that_of_the_master_of_its_time() -> None:
    listed = [r for r in ingested().tables["observed_members"] if r["asked_broker"] is not None]
    assert {row["asked_broker"] for row in listed} == {"broker-a"}
    asked = {row["source"].partition(":")[0].rpartition("-broker-")[2] for row in listed}
    assert asked == {"a-1.txt", "a-2.txt"}
    dead = recorded("broker_killed")[0]["t"]
    back = recorded("broker_stopped")[0]["t"]
    between = [row["source"] for row in listed if dead < row["observed_ms"] < back]
    assert between
    assert all("broker-a-2" in source for source in between)
