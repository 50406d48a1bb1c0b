"""Masters that die while their slaves live: a slave is no broker, its log is evidence on members.

Orderly queues that move while their master is gone have no owner (rocketmq.md §15).
"""

import json
import shutil
from collections import defaultdict
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.ingest.in_process import ingest_collection
from tests.recordings.recorded_events import REPLICATED, REPLICATED_GROUPS, tables_of
from tests.recordings.tables import DATA, Row, Tables, ingested_recording, ledger_of, rows
from tests.recordings.truth import (
    BEFORE_MS,
    Queue,
    check_moves,
    check_starts,
    covers,
    read_truth,
)

BROKERS = {"broker-a", "broker-b"}
CHANGES = {
    "broker_killed", "broker_restarted", "broker_stopped", "client_started", "client_shutdown",
    "suspend", "resume", "traffic_off",
}  # fmt: skip
REST_MS = 40_000
"""The recorder's host was overloaded: nothing moved later than this after a change."""
LEAVES = {
    "slave": ("10.0.0.1@2451#4778980909063", 1795332443897, "10.0.0.1@2451#4782906062050"),
    "slave-read": ("10.0.0.1@12560#5357886501038", 1795333037086, "10.0.0.1@12560#5368736988982"),
}
"""c2 of order-service, when its shutdown() began, and c2 of ledger, which follows."""
FROM_FILES, FROM_EVENTS = "the operators' files", "the recorder's events"
SOURCES = (FROM_FILES, FROM_EVENTS)
SHUTDOWN_MS = 1_000
REST_POINTS = {"slave": 7, "slave-read": 5}


@cache
def tables(name: str) -> Tables:
    return ingested_recording(name).tables


@cache
def ledger(name: str, source: str = FROM_FILES) -> Tables:
    if source == FROM_FILES:
        return ledger_of(tables(name))
    offsets = {table: tables(name)[table] for table in ("queue_offsets", "committed_offsets")}
    return ledger_of(tables_of(name, REPLICATED_GROUPS) | offsets)


def events_of(found: Tables, *kinds: str) -> list[Row]:
    return [row for row in found["cluster_events"] if row["event_type"] in kinds]


def collection_without(name: str, folder: Path, *patterns: str) -> Path:
    copied = Path(shutil.copytree(DATA / name / "collection", folder / "collection"))
    for pattern in patterns:
        for path in copied.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return copied


def leaves(found: Tables) -> list[tuple[str, str, int, str]]:
    gone = events_of(found, "CONSUMER_LEAVE", "CONSUMER_LOST")
    gone.sort(key=lambda row: row["event_ms"])
    return [(r["event_type"], r["client_id"], r["event_ms"], r["source"]) for r in gone]


@pytest.mark.parametrize("name", REPLICATED)
def test_no_table_has_a_slave_for_a_broker(name: str) -> None:
    for table, found in tables(name).items():
        named = {row.get("broker_name") or row.get("asked_broker") for row in found}
        assert named <= BROKERS | {None}, table
    assert tables(name)["rejected"] == []
    files = [r for r in tables(name)["observed_facts"] if r["kind"] == "BROKER_FILE"]
    assert all(r["source"].startswith(f"brokers/{r['broker_name']}/") for r in files)
    in_cluster = [r for r in tables(name)["observed_facts"] if r["kind"] == "BROKER_IN_CLUSTER"]
    assert {r["details"]["broker_id"] for r in in_cluster} == {"0", "1"}


@pytest.mark.parametrize("name", REPLICATED)
def test_a_master_that_dies_is_no_broker_down_while_its_slave_lives(name: str) -> None:
    found = events_of(tables(name), "BROKER_UP", "BROKER_DOWN")
    assert [(r["event_type"], r["broker_name"]) for r in found] == [
        ("BROKER_UP", "broker-b"),
        ("BROKER_UP", "broker-a"),
    ]


@pytest.mark.parametrize("name", REPLICATED)
def test_a_graceful_leave_while_the_master_is_dead_is_one(name: str) -> None:
    first, began_ms, second = LEAVES[name]
    found = leaves(tables(name))
    assert [(kind, client) for kind, client, _, _ in found] == [
        ("CONSUMER_LEAVE", first),
        ("CONSUMER_LEAVE", second),
    ]
    assert all(0 <= at_ms - began_ms <= SHUTDOWN_MS for _, _, at_ms, _ in found)


@pytest.mark.parametrize(
    "missing",
    [
        ["brokers/broker-b"],
        ["brokers/broker-b", "brokers/broker-a"],
        ["brokers/broker-b", "mqadmin"],
        ["brokers/broker-b", "clients/c2"],
    ],
)
@pytest.mark.parametrize("name", REPLICATED)
def test_the_slaves_lines_alone_tell_of_the_leave(
    name: str, missing: list[str], tmp_path: Path
) -> None:
    first, began_ms, second = LEAVES[name]
    found = ingest_collection(collection_without(name, tmp_path, *missing)).tables
    assert [(kind, client) for kind, client, _, _ in leaves(found)] == [
        ("CONSUMER_LEAVE", first),
        ("CONSUMER_LEAVE", second),
    ]
    for _, _, at_ms, source in leaves(found):
        assert 0 <= at_ms - began_ms <= SHUTDOWN_MS
        assert "-s/broker.log" in source
    members = {row["client_id"] for row in events_of(found, "CONSUMER_JOIN")}
    assert len(members) == len(events_of(found, "CONSUMER_JOIN")) == 8
    assert {row.get("broker_name") for row in found["cluster_events"]} == BROKERS | {None}


@pytest.mark.parametrize("name", REPLICATED)
def test_without_name_servers_the_restart_of_the_master_dates_no_leave(
    name: str, tmp_path: Path
) -> None:
    found = ingest_collection(collection_without(name, tmp_path, "namesrv")).tables
    assert [one[:3] for one in leaves(found)] == [one[:3] for one in leaves(tables(name))]
    up = {r["broker_name"] for r in events_of(found, "BROKER_UP")}
    assert up == BROKERS
    assert events_of(found, "BROKER_DOWN") == []


@pytest.mark.parametrize("name", REPLICATED)
def test_expected_folders_of_slaves_are_no_brokers(name: str, tmp_path: Path) -> None:
    folder = collection_without(name, tmp_path)
    settings = folder / "collection.toml"
    names = sorted(path.name for path in (folder / "brokers").iterdir())
    text = settings.read_text().replace('["broker-a", "broker-b"]', json.dumps(names))
    assert str(names[-1]) in text
    settings.write_text(text)
    found: Any = ingest_collection(folder).tables
    for table, told in tables(name).items():
        assert plain(found[table]) == plain(told), table


def plain(found: list[Row]) -> list[str]:
    """The rows without where they came from, in any order."""
    where = ("source", "sequence")
    return sorted(
        json.dumps({key: value for key, value in row.items() if key not in where}, sort_keys=True)
        for row in found
    )


@pytest.mark.parametrize("name", REPLICATED)
def test_names_of_folders_do_not_matter(name: str, tmp_path: Path) -> None:
    """Nor do logs without the broker's start, as most logs are."""
    folder = collection_without(name, tmp_path)
    for number, broker in enumerate(sorted((folder / "brokers").iterdir())):
        log = broker / "broker.log"
        lines = log.read_text().splitlines(keepends=True)
        own = ("boot success", "brokerRole=")
        log.write_text("".join(line for line in lines if not any(word in line for word in own)))
        broker.rename(folder / "brokers" / f"host{3 - number}")
    found: Any = ingest_collection(folder).tables

    told = ("cluster_events", "committed_offsets", "queue_offsets", "consumer_groups")
    for table in (*told, "observed_ownership"):
        assert plain(found[table]) == plain(tables(name)[table]), table
    assert {f["rule_id"] for f in found["findings"]} <= {"INGEST_NOT_UNDERSTOOD"}


def rest_points(name: str) -> list[int]:
    """Moments just before a change, at which nothing had changed for `REST_MS`."""
    changes = [
        row for row in rows(DATA / name / "events.jsonl") if row["event"] in (*CHANGES, "end")
    ]
    times = sorted(row["t"] for row in changes)
    first = max(row["t"] for row in changes[:3] if row["event"] == "client_started")
    return [
        following - 2 * BEFORE_MS
        for before, following in pairwise(times)
        if before >= first and following - before >= REST_MS
    ]


def owned(name: str, group: str, at_ms: int) -> dict[str, set[Queue]]:
    """What each client really held."""
    held: dict[str, set[Queue]] = {}
    for path in sorted((DATA / name / "truth").glob("*.jsonl")):
        of_group = [r for r in rows(path) if r["group"] == group and r["t"] <= at_ms]
        newest = {r["topic"]: r for r in of_group if r["kind"] == "owned"}
        for client_id in (r["client_id"] for r in of_group if r["kind"] == "started"):
            held[client_id] = {(t, b, q) for t, r in newest.items() for b, q in r["queues"]}
    return {client_id: queues for client_id, queues in held.items() if queues}


def held(found: Tables, group: str, at_ms: int) -> dict[str, set[Queue]]:
    """What the ledger says that each client holds."""
    told: dict[str, set[Queue]] = defaultdict(set)
    for row in found["ownership"]:
        if row["consumer_group"] == group and row["client_id"] and covers(row, at_ms):
            told[row["client_id"]].add((row["topic"], row["broker_name"], row["queue_id"]))
    return dict(told)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("group", ["order-service", "ledger"])
@pytest.mark.parametrize("name", REPLICATED)
def test_owned_sets_at_rest_are_the_real_ones(name: str, group: str, source: str) -> None:
    points = rest_points(name)
    assert len(points) == REST_POINTS[name]
    for at_ms in points:
        assert held(ledger(name, source), group, at_ms) == owned(name, group, at_ms), at_ms


@pytest.mark.parametrize("name", REPLICATED)
def test_orderly_queues_that_move_without_a_master_have_no_owner(name: str) -> None:
    back_ms = min(row["event_ms"] for row in events_of(tables(name), "MASTER_UP"))
    epochs = [r for r in ledger(name)["epochs"] if r["consumer_group"] == "ledger"]
    until = next(row for row in epochs if row["to_ms"] == back_ms)
    assert (until["orphaned"], until["masterless_queues"]) == (2, 5)  # the retry queue among them
    after = next(row for row in epochs if row["from_ms"] == back_ms)
    assert (after["causes"], after["added"], after["orphaned"]) == (["MASTER_UP"], 2, 0)


@pytest.mark.parametrize("name", REPLICATED)
def test_a_master_alone_begins_no_epoch_where_no_member_needs_locks(name: str) -> None:
    epochs = [r for r in ledger(name)["epochs"] if r["consumer_group"] == "order-service"]
    assert not any(cause.startswith("MASTER") for row in epochs for cause in row["causes"])
    assert sum(row["masterless_queues"] > 0 for row in epochs) >= 3


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "facts"), [("slave", 15), ("slave-read", 15)])
def test_net_moves_happen_inside_their_windows(name: str, facts: int, source: str) -> None:
    """From the first rest on: at the start some clients needed 10 s for a pass."""
    begun_ms = max(
        row["t"] for row in rows(DATA / name / "events.jsonl") if row["event"] == "traffic_on"
    )
    found = ledger(name, source)
    settled = found | {"epochs": [row for row in found["epochs"] if row["from_ms"] > begun_ms]}
    result = check_moves(read_truth(name), settled)
    assert (result.mismatches, result.facts) == ([], facts)


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize(("name", "facts"), [("slave", 45), ("slave-read", 31)])
def test_first_real_starts_lie_in_the_bounds(name: str, facts: int, source: str) -> None:
    commits = tables(name)["committed_offsets"]
    result = check_starts(read_truth(name), ledger(name, source), commits)
    assert (result.mismatches, result.facts) == ([], facts)


def test_a_new_owner_gets_what_the_slave_has_and_may_start_at_what_the_master_had() -> None:
    """NOTES.md of `slave-read`: 42 from the slave; 16 from the master that is back."""
    killed_ms = next(row["event_ms"] for row in events_of(tables("slave-read"), "MASTER_DOWN"))
    starts = [
        row
        for row in ledger("slave-read")["pull_starts"]
        if row["consumer_group"] == "order-service"
        and row["broker_name"] == "broker-a"
        and row["earliest_ms"] > killed_ms
    ]
    assert [row["start_offset"] for row in starts] == [42] * 3
    assert all(row["start_offset_low"] <= 16 for row in starts)


def test_what_the_slaves_do_follows_from_their_settings_or_from_what_clients_log() -> None:
    modes = {
        name: [row.get("detail") for row in events_of(tables(name), "MASTER_DOWN")]
        for name in REPLICATED
    }
    assert modes == {"slave": ["REFUSED", "REFUSED"], "slave-read": ["SLAVE_READ"]}


@pytest.mark.parametrize("name", REPLICATED)
def test_a_slave_s_store_is_used_while_it_answers(name: str) -> None:
    turns = events_of(tables(name), "MASTER_DOWN", "MASTER_UP")
    down_ms, up_ms = (row["event_ms"] for row in turns[:2])
    snapshots = {
        int(path.parent.name.partition("-")[2]): path.parent.parent.name
        for path in (DATA / name / "collection" / "brokers").glob("broker-a*/config-*/*Offset.json")
    }
    inside = [ms for ms in snapshots if down_ms < ms < up_ms]
    assert inside
    stored = {
        row["committed_offset"]
        for row in tables(name)["committed_offsets"]
        if row["observed_ms"] in inside
        and row["broker_name"] == "broker-a"
        and row["consumer_group"] == "order-service"
        and row["topic"] == "OrderTopic"
        and row["client_id"] is None
    }
    assert max(stored) == (42 if name == "slave-read" else 34)


@pytest.mark.parametrize("name", REPLICATED)
def test_the_recorder_and_the_files_tell_of_the_same_turns(name: str) -> None:
    kinds = ("BROKER_UP", "BROKER_DOWN", "MASTER_DOWN", "MASTER_UP")
    recorded = tables_of(name, REPLICATED_GROUPS)
    told = [events_of(found, *kinds) for found in (tables(name), recorded)]
    files, recorder = (
        sorted((r["broker_name"], r["event_ms"], r["event_type"], r.get("detail")) for r in found)
        for found in told
    )
    assert [(b, kind, detail) for b, _, kind, detail in files] == [
        (b, kind, detail) for b, _, kind, detail in recorder
    ]
    assert sum(kind.startswith("MASTER") for _, _, kind, _ in recorder) == len(recorder) - 2
    suspended = events_of(tables_of(name, REPLICATED_GROUPS), "CONSUMER_SUSPEND", "CONSUMER_RESUME")
    assert len(suspended) == (6 if name == "slave-read" else 0)


@pytest.mark.parametrize("name", REPLICATED)
def test_without_the_masters_turns_the_ledger_would_be_wrong(name: str) -> None:
    given = tables_of(name, REPLICATED_GROUPS)
    given["cluster_events"] = [
        row for row in given["cluster_events"] if not row["event_type"].startswith("MASTER")
    ]
    wrong = ledger_of(given)
    points = rest_points(name)
    assert any(held(wrong, "ledger", at) != owned(name, "ledger", at) for at in points)


def test_what_a_slave_lacks_and_what_a_listener_keeps_are_facts_of_the_queues(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "collection"
    shutil.copytree(DATA / "slave-read" / "collection", folder)
    moved = "PULL_OFFSET_MOVED:none correction. topic=OrderTopic, groupId=order-service, "
    with (folder / "brokers" / "broker-b-s" / "broker.log").open("a") as log:
        for second, asked in (("21", 77), ("22", 79)):
            head = f"2026-11-22 15:39:{second} WARN PullMessageThread_1 - {moved}"
            log.write(f"{head}requestOffset={asked}, suggestBrokerId=0\n")
    expired = "send expire msg back. topic=OrderTopic, msgId=7F, storeHost=/127.0.0.1:1, queueId=1"
    with (folder / "clients" / "c1" / "rocketmq_client.log").open("a") as log:
        for thread in ("CleanExpireMsgScheduledThread_order-service_1", "Timer_1"):
            for offset in (70, 85):
                head = f"2026-11-22 15:39:29.982 INFO  [12558] [{thread}] [a.B#c:1]"
                log.write(f"{head} - {expired}, queueOffset={offset}\n")
    facts = {row["kind"]: row for row in ingest_collection(folder).tables["observed_facts"]}
    lacking, known = facts["OFFSET_NOT_CORRECTED"], facts["MESSAGES_EXPIRED"]
    unknown = facts["MESSAGES_OF_ANY_EXPIRED"]
    replica = {"sent_to": "0", "lowest_asked": "77", "highest_asked": "79"}
    assert dict(lacking["details"]) == replica
    assert (lacking["consumer_group"], lacking["broker_name"]) == ("order-service", "broker-b")
    offsets = {"address": "127.0.0.1:1", "lowest": "70", "highest": "85", "log": "c1"}
    assert dict(known["details"]) == dict(unknown["details"]) == offsets
    assert known["client_id"] == "10.0.0.10@12558#5355719421511"
    assert (known["consumer_group"], unknown["consumer_group"]) == ("order-service", None)
