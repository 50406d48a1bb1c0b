"""Four brokers that keep their configurations in four ways: the files tell which, and when from."""

import re
import shutil
from functools import cache
from itertools import pairwise
from pathlib import Path

import pytest

from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA, Row, Tables, ingested_recording, ledger_of, rows
from tests.recordings.truth import (
    Queue,
    Truth,
    check_moves,
    check_starts,
    covers,
    read_truth,
)

NAME = "rocksdb"
FORMS = {"broker-a": "ROCKSDB", "broker-b": "SINGLE_ROCKSDB", "broker-c": "ROCKSDB_V2"}
EXPORTED_MS = {"broker-a": 1795332883191, "broker-b": 1795332885289}
"""When the files of the last export were first copied, 2 s after the command."""
FINAL_MS = 1795332926488
"""The last copies of all."""
STORES = ("topics.json", "subscriptionGroup.json", "consumerOffset.json")
REST_MS = 40_000
"""The recorder's host was overloaded: nothing moved later than this after a change."""
CHANGES = ("client_started", "client_killed", "broker_stopped", "broker_exited",
           "broker_restarted", "topic_updated")  # fmt: skip
BEFORE_MS = 1_500
"""start() returned up to so long after the brokers had the member."""
REST_FACTS, MOVES, STARTS = 76, 106, 118

LATE = ("brokers/*/config-17953324*", "brokers/*/config-179533288*")
"""All copies but the last, which is 43 s older than it looks."""
COMMANDS = "mqadmin/*rocksDB*"
TAKEN_AWAY = {
    "nothing": (),
    "earlier copies": LATE,
    "earlier copies, all commands": (*LATE, COMMANDS),
    "clients' logs": ("clients",),
    "clients' logs, earlier copies, all commands": ("clients", *LATE, COMMANDS),
    "every commit but the last copies'": (
        "clients", *LATE, COMMANDS, "mqadmin/*consumerProgress*", "mqadmin/*exported*",
    ),
}  # fmt: skip


@cache
def ingested() -> Ingested:
    return ingested_recording(NAME)


@cache
def truth() -> Truth:
    return read_truth(NAME)


def collection(folder: Path, *without: str) -> Path:
    copied = Path(shutil.copytree(DATA / NAME / "collection", folder / "collection"))
    for pattern in without:
        for path in copied.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    return copied


def stores(tables: Tables) -> dict[str, Row]:
    return {r["broker_name"]: r for r in tables["observed_facts"] if r["kind"] == "BROKER_STORE"}


def test_every_line_but_a_broken_one_is_understood() -> None:
    done = ingested()
    assert done.tables["rejected"] == []
    # broker-a's log begins inside a line
    wrong = {
        one.name: one.lines - one.understood for one in done.stats if one.understood != one.lines
    }
    assert wrong == {"brokers/broker-a/broker.log.gz": 1}


def test_the_form_of_each_broker_and_the_date_of_what_it_exported() -> None:
    found = stores(ingested().tables)
    assert {broker: row["details"]["form"] for broker, row in found.items()} == FORMS
    for broker, exported_ms in EXPORTED_MS.items():
        assert {found[broker]["details"][name] for name in STORES} == {str(exported_ms)}
    assert {found["broker-c"]["details"][name] for name in STORES} == {""}


def test_no_copy_beside_a_rocksdb_is_silently_current() -> None:
    progress = (DATA / NAME / "collection" / "mqadmin").glob("*consumerProgress*")
    asked = {int(path.name.partition("-")[0]) for path in progress}
    newest: dict[str, int] = {}
    for row in ingested().tables["committed_offsets"]:
        if not row.get("client_id") and row["observed_ms"] not in asked:
            before = newest.get(row["broker_name"], 0)
            newest[row["broker_name"]] = max(before, row["observed_ms"])
    assert newest == EXPORTED_MS | {"broker-d": FINAL_MS}
    old = [f for f in ingested().tables["findings"] if f["rule_id"] == "INGEST_EXPORT_OLD"]
    assert {f["broker_name"] for f in old} == EXPORTED_MS.keys()


@pytest.mark.parametrize("taken", TAKEN_AWAY)
def test_moves_and_first_offsets_are_the_real_ones(taken: str, tmp_path: Path) -> None:
    ledger = ledger_of(ingest_collection(collection(tmp_path, *TAKEN_AWAY[taken])).tables)
    moves, starts = check_moves(truth(), ledger), check_starts(truth(), ledger)
    assert (moves.mismatches, starts.mismatches) == ([], [])
    assert (moves.facts, starts.facts) == (MOVES, STARTS)


def test_owned_sets_at_rest_are_the_real_ones() -> None:
    ledger, facts = ledger_of(ingested().tables), 0
    times = sorted(
        r["t"] for r in rows(DATA / NAME / "events.jsonl") if r["event"] in (*CHANGES, "end")
    )
    for at_ms in (b - BEFORE_MS for a, b in pairwise(times) if b - a >= REST_MS):
        for member in ledger["memberships"]:
            if covers(member, at_ms):
                group, client_id = member["consumer_group"], member["client_id"]
                (file,) = {f for f, g in truth().client_of[client_id] if g == group}
                owned = truth().owned(file, group, at_ms)
                real = {queue for queues in owned.values() for queue in queues}
                assert real == held(ledger, group, client_id, at_ms), (group, client_id, at_ms)
                facts += len(owned)
    assert facts == REST_FACTS


def held(ledger: Tables, group: str, client_id: str, at_ms: int) -> set[Queue]:
    return {
        (row["topic"], row["broker_name"], row["queue_id"])
        for row in ledger["ownership"]
        if (row["consumer_group"], row["client_id"]) == (group, client_id) and covers(row, at_ms)
    }


def incomplete(folder: Path) -> dict[str, tuple[str, str]]:
    return {
        row["broker_name"]: (row["summary"], row["remedy"])
        for row in audit_folder(folder)["findings"]
        if row["rule_id"] == "COLLECTION_INCOMPLETE"
    }


def test_the_whole_collection_is_complete(tmp_path: Path) -> None:
    assert incomplete(collection(tmp_path)) == {}


def test_what_is_missing_is_named_with_the_command_that_mends_it(tmp_path: Path) -> None:
    found = incomplete(
        collection(tmp_path, *LATE, COMMANDS, "mqadmin/*consumerProgress*", "mqadmin/*exported*")
    )
    assert found.keys() == FORMS.keys()
    for broker, port in (("broker-a", 28020), ("broker-b", 28030)):
        what, remedy = found[broker]
        assert "consumerOffset.json not exported, or at an unknown time" in what
        assert remedy.startswith(f"mqadmin rocksDBConfigToJson -b 127.0.0.1:{port}")
    what, remedy = found["broker-c"]
    assert "config/rdb" in what
    assert "consumerProgress" in remedy


def test_local_mode_gives_what_no_export_gives(tmp_path: Path) -> None:
    exports = ("mqadmin/*rocksDBConfigToJson-[bcr]*", "mqadmin/*exported*")
    without = collection(tmp_path, "brokers/*/config*/*.json", *exports)
    assert incomplete(without).keys() == {"broker-b"}
    tables = ingest_collection(without).tables
    details = stores(tables)["broker-a"]["details"]
    assert all(details[name] for name in STORES)
    configs = [r["broker_name"] for r in tables["observed_facts"] if r["kind"] == "GROUP_CONFIG"]
    assert configs.count("broker-a") == 10


def test_a_copied_rocksdb_shows_the_form_without_a_listing(tmp_path: Path) -> None:
    folder = collection(tmp_path, "brokers/*/store-files*")
    for broker, name in (("broker-a", "topics"), ("broker-b", "metadata"), ("broker-c", "rdb")):
        copied = folder / "brokers" / broker / "config" / name
        copied.mkdir()
        (copied / "CURRENT").write_text("MANIFEST-000019\n")
        (copied / "000019.log").write_bytes(b"\x00\x01")
        (copied / "MANIFEST-000019").write_bytes(b"\x00\x01")
    done = ingest_collection(folder)
    assert {b: r["details"]["form"] for b, r in stores(done.tables).items()} == FORMS
    assert done.tables["rejected"] == []


@pytest.mark.parametrize(("broker", "configs"), [("broker-c", 1), ("broker-d", 0)])
def test_what_export_metadata_states_counts_where_the_store_cannot_be_copied(
    broker: str, configs: int, tmp_path: Path
) -> None:
    folder = collection(tmp_path)
    (whole,) = (folder / "mqadmin").glob("*-exportMetadata.json")
    text = whole.read_text().replace('"ledger":', '"made-up":').replace('"ledger"', '"made-up"')
    text = re.sub(r'"exportTime":\d+,', "", text)
    (folder / "mqadmin" / f"1795332912131-exportMetadata-{broker}.json").write_text(text)
    tables = ingest_collection(folder).tables
    named = [
        row["broker_name"]
        for row in tables["observed_facts"]
        if row["kind"] == "GROUP_CONFIG" and row["consumer_group"] == "made-up"
    ]
    assert named == [broker] * configs
    read = [row for row in tables["observed_facts"] if row["kind"] == "GROUP_CONFIGS"]
    known = {row["broker_name"] for row in read}
    assert ("broker-c" in known) is bool(configs)
