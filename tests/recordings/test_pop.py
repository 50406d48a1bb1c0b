"""Groups that pop on a real 5.5.0 cluster: shared topics have no owner, the others are right."""

import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import Ingested, ingest_collection
from rebalance_core.replay.invariants import check_ledger
from tests.recordings.tables import DATA, Row, Tables, histories, ingested_recording, ledger_of
from tests.recordings.truth import BEFORE_MS, Truth, covers, read_truth
from tests.unit.kernels.fleets import assert_equal, kernel_tables, replay_rows

NAME = "pop"
POPPED = {"PopA": {"pop-m1", "pop-0", "pop-1", "pop-2", "pop-circ", "pop-mixed"},
          "PopS": {"pops-0", "pops-1", "pops-2"}}  # fmt: skip
EXCLUSIVE = ("g-pull", "g-srvpull", "pop-orderly", "pop-switch")
"""Divided on the client, by the broker in PULL mode, orderly under POP, and popped for a while."""
SWITCHED = "pop-switch"
SET_TO_POP_MS, SET_TO_PULL_MS = 1_795_331_531_194, 1_795_331_698_196
"""When setConsumeMode had returned (events.jsonl of the recording)."""
RESHARED = "pop-2"
RESHARED_MS = (1_795_331_531_194, 1_795_331_830_773)
"""When its share number changed; only copies of the stores show it, the next one much later."""
LATE_MS = 20_000
"""A client finds a change of mode on its own pass."""


@cache
def ingested() -> Ingested:
    return ingested_recording(NAME)


@cache
def ledger() -> Tables:
    return ledger_of(ingested().tables)


@cache
def truth() -> Truth:
    return read_truth(NAME)


def file_of(client_id: str, group: str) -> str | None:
    """The truth file of a client; every group of a process has an id of its own."""
    found = [file for file, of_group in truth().client_of[client_id] if of_group == group]
    return found[0] if found else None


def modes() -> dict[tuple[str, str], list[tuple[int, str]]]:
    found: dict[tuple[str, str], list[tuple[int, str]]] = {}
    events: Any = ingested().tables["cluster_events"]
    for row in events:
        if row["event_type"] == "REQUEST_MODE":
            at = found.setdefault((row["consumer_group"], row["topic"]), [])
            at.append((row["event_ms"], row["detail"]))
    return found


def test_every_line_is_understood() -> None:
    assert ingested().tables["rejected"] == []


def test_modes_and_when_they_changed() -> None:
    found = modes()
    assert {key[0] for key in found} == {*POPPED["PopA"], *POPPED["PopS"], SWITCHED, "pop-orderly"}
    start = found["pop-0", "PopA"][0][0]
    shares = {group: found[group, topic][0] for topic in POPPED for group in POPPED[topic]}
    numbers = {"pop-m1": -1, "pop-0": 0, "pop-1": 1, "pop-2": 2, "pop-circ": 2, "pop-mixed": 1,
               "pops-0": 0, "pops-1": 1, "pops-2": 2}  # fmt: skip
    expected = {g: (start, f"POP(share_queue_num={n})") for g, n in numbers.items()}
    assert shares == expected
    assert [mode for _, mode in found["pop-2", "PopA"]] == [
        f"POP(share_queue_num={n})" for n in (2, 5, 1)
    ]
    (popped, pop), (pulled, pull) = found[SWITCHED, "PopA"]
    assert (pop, pull) == ("POP(share_queue_num=1)", "PULL")
    assert SET_TO_POP_MS - LATE_MS <= popped <= SET_TO_POP_MS
    assert SET_TO_PULL_MS <= pulled <= SET_TO_PULL_MS + LATE_MS


def test_who_asks_the_broker() -> None:
    groups = {row["consumer_group"]: row for row in ingested().tables["consumer_groups"]}
    assert groups["g-pull"]["rebalance_mode"] == "CLIENT"
    assert groups["g-srvpull"]["rebalance_mode"] == "BROKER"
    assert groups["pop-orderly"]["ordered"]
    own = {
        file_of(str(row["client_id"]), "pop-mixed"): row.get("rebalance_mode")
        for row in ingested().tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN" and row["consumer_group"] == "pop-mixed"
    }
    assert own["c2"] == "CLIENT"  # clientRebalance=true, the default
    assert own["c3"] == "BROKER"


@pytest.mark.parametrize("table", ["ownership", "diffs", "pull_starts"])
def test_a_topic_that_is_popped_has_no_row(table: str) -> None:
    always = {(group, topic) for topic, groups in POPPED.items() for group in groups}
    rows = [r for r in ledger()[table] if (r["consumer_group"], r["topic"]) in always]
    assert rows == []


def test_no_client_popped_what_a_member_owned() -> None:
    """Every run of assignments by POP that a client got, from its first answer to its last."""
    assigned = [
        line for lines in truth().lines.values() for line in lines if line["kind"] == "assignment"
    ]
    assert len(assigned) > 150
    for line in assigned:
        owners = [
            row
            for row in ledger()["ownership"]
            if (row["consumer_group"], row["topic"]) == (line["group"], line["topic"])
            and row["client_id"] is not None
            and row["from_ms"] < line["to_t"]
            and (row["to_ms"] is None or line["t"] < row["to_ms"])
        ]
        assert owners == [], line


@pytest.mark.parametrize("group", EXCLUSIVE)
def test_other_topics_are_owned_as_the_clients_own_them(group: str) -> None:
    compared = 0
    for at_ms in quiet_moments(group):
        for member in ledger()["memberships"]:
            if member["consumer_group"] != group or not covers(member, at_ms):
                continue
            file = file_of(member["client_id"], group)
            assert file is not None
            real = truth().owned(file, group, at_ms).get("PopA", set())
            assert owned_by(member["client_id"], group, at_ms) == real, (at_ms, file)
            compared += 1
    assert compared >= 8


@pytest.mark.parametrize("group", sorted(POPPED["PopA"] | POPPED["PopS"]))
def test_clients_pop_and_pull_what_the_ledger_lets_them_reach(group: str) -> None:
    topic = "PopA" if group in POPPED["PopA"] else "PopS"
    unseen = list(zip(RESHARED_MS, (at for at, _ in modes()[RESHARED, "PopA"][1:]), strict=True))
    compared = 0
    for at_ms in quiet_moments(group):
        if group == RESHARED and any(since < at_ms < seen for since, seen in unseen):
            continue
        for member in ledger()["memberships"]:
            if member["consumer_group"] != group or not covers(member, at_ms):
                continue
            file = file_of(member["client_id"], group)
            assert file is not None
            taken = truth().owned(file, group, at_ms, "popping") | truth().owned(file, group, at_ms)
            reach = reached_by(member["client_id"], group, topic, at_ms)
            assert reach == taken.get(topic, set()), (at_ms, file)
            compared += 1
    assert compared >= 4


def reached_by(client_id: str, group: str, topic: str, at_ms: int) -> set[tuple[str, str, int]]:
    return {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in ledger()["pop_reach"]
        if (row["consumer_group"], row["client_id"], row["topic"]) == (group, client_id, topic)
        and covers(row, at_ms)
    }


def quiet_moments(group: str) -> list[int]:
    """Just before an event, when nothing had happened for long: the host was overloaded."""
    rest_ms = 90_000 if group == "pop-orderly" else 60_000  # an order lock lives 60 s
    times = sorted(
        row["event_ms"]
        for row in ingested().tables["cluster_events"]
        if row.get("consumer_group", group) == group
    )
    times.append(truth().end_ms)
    return [after - BEFORE_MS for before, after in pairwise(times) if after - before > rest_ms]


def owned_by(client_id: str, group: str, at_ms: int) -> set[tuple[str, str, int]]:
    return {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in ledger()["ownership"]
        if (row["consumer_group"], row["client_id"], row["topic"]) == (group, client_id, "PopA")
        and covers(row, at_ms)
    }


def test_a_switch_drops_every_queue_and_back_adds_every_one() -> None:
    by_cause: dict[str, list[tuple[int, Row]]] = {}
    for row in ledger()["diffs"]:
        if row["consumer_group"] == SWITCHED and row["cause"] == "REQUEST_MODE":
            by_cause.setdefault(row["action"], []).append((row["change_ms"], row))
    drops, adds = by_cause["DROP"], by_cause["ADD"]
    assert len({row["queue_id"] for _, row in drops}) == 4  # of 8 queues; it had 12 when it ended
    assert {(at, row["kind"]) for at, row in drops} == {(modes()[SWITCHED, "PopA"][0][0], "FORCED")}
    assert {(at, row["kind"]) for at, row in adds} == {(modes()[SWITCHED, "PopA"][1][0], "NEW")}
    assert (len(drops), len(adds)) == (8, 12)


def test_starts_after_the_switch_back_lie_in_their_bounds() -> None:
    compared = 0
    for row in ledger()["pull_starts"]:
        if row["consumer_group"] != SWITCHED or row["change_ms"] != modes()[SWITCHED, "PopA"][1][0]:
            continue
        times = truth().times(row["client_id"], SWITCHED, "start")
        queue = (row["topic"], row["broker_name"], row["queue_id"])
        starts = [line for at, line in times.get(queue, []) if at >= SET_TO_PULL_MS]
        if starts:
            low, high = row["start_offset_low"], row["start_offset_high"]
            assert low <= starts[0]["next_offset"] <= high, row
            assert row["rule"] == "STORED"
            compared += 1
    assert compared >= 8


def test_both_engines_are_equal() -> None:
    groups = list(histories(ingested().tables))
    kernels, reasons = kernel_tables(groups)
    assert set(reasons.values()) == {"REGULAR"}
    assert {name for _, name in reasons} > {name for name, _ in modes()}
    assert_equal(kernels, replay_rows(groups))
    assert check_ledger(kernels) == []


def test_without_stores_the_clients_lines_suffice(tmp_path: Path) -> None:
    folder = Path(shutil.copytree(DATA / NAME / "collection", tmp_path / "c"))
    for store in folder.rglob("messageRequestMode.json"):
        store.unlink()
    found = ledger_of(ingest_collection(folder).tables)
    always = {(group, topic) for topic, groups in POPPED.items() for group in groups}
    assert [r for r in found["ownership"] if (r["consumer_group"], r["topic"]) in always] == []


def test_without_the_clients_logs_the_stores_suffice(tmp_path: Path) -> None:
    """Nobody says that the members ask; that they do not would be the more daring guess."""
    folder = Path(shutil.copytree(DATA / NAME / "collection", tmp_path / "c"))
    shutil.rmtree(folder / "clients")
    shutil.rmtree(folder / "mqadmin")
    tables = ingest_collection(folder).tables
    found = ledger_of(tables)
    always = {(group, topic) for topic, groups in POPPED.items() for group in groups}
    assert [r for r in found["ownership"] if (r["consumer_group"], r["topic"]) in always] == []
    assumed = {
        row["consumer_group"]
        for row in tables["findings"]
        if row["rule_id"] == "INGEST_ASSUMED" and "rebalance_mode" in row["evidence"]
    }
    assert "pop-m1" in assumed
