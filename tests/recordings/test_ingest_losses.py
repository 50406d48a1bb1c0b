"""Lines that brokers dropped, files that were not collected, logs that begin late."""

import gzip
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.ingest.in_process import Ingested, ingest_collection
from tests.recordings.audited import audit_folder
from tests.recordings.tables import DATA, Row, Tables, ledger_of, replayed
from tests.recordings.truth import covers, read_truth


def collection_of(name: str, folder: Path) -> Path:
    return Path(shutil.copytree(DATA / name / "collection", folder / name))


def rewrite(path: Path, keep: Callable[[str], bool]) -> None:
    packed = path.suffix == ".gz"
    data = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    text = "".join(line for line in data.decode().splitlines(keepends=True) if keep(line))
    path.write_bytes(gzip.compress(text.encode()) if packed else text.encode())


def held_at_the_end(name: str, ledger: Tables) -> set[tuple[str, ...]]:
    end_ms = read_truth(name).end_ms - 500
    return {
        (row["consumer_group"], row["topic"], row["broker_name"], str(row["queue_id"]),
         row["client_id"])
        for row in ledger["ownership"]
        if row["client_id"] and covers(row, end_ms) and not row["topic"].startswith("%")
    }  # fmt: skip


def findings(done: Ingested, rule: str) -> list[Row]:
    return [row for row in done.tables["findings"] if row["rule_id"] == rule]


def test_joins_that_brokers_did_not_log_are_made_good_by_dumps(tmp_path: Path) -> None:
    folder = collection_of("join-leave", tmp_path)
    lost = "10.0.0.2@20078#2063471432709"
    for log in folder.glob("brokers/*/broker.log*"):
        rewrite(log, lambda line: not ("new consumer connected" in line and lost in line))
    shutil.rmtree(folder / "clients")
    done = ingest_collection(folder)
    (join,) = [
        row
        for row in done.tables["cluster_events"]
        if row["event_type"] == "CONSUMER_JOIN" and row["client_id"] == lost
    ]
    (told,) = findings(done, "INGEST_JOIN_NOT_LOGGED")
    assert told["client_id"] == lost
    assert "mqadmin/" in join["source"]
    assert 0 <= 1795231735207 - join["event_ms"] < 2_000  # consumerStatus prints when it started
    ledger = ledger_of(done.tables)
    assert held_at_the_end("join-leave", ledger) == held_at_the_end(
        "join-leave", replayed("join-leave")
    )


def test_leaves_that_brokers_did_not_log_are_made_good_by_dumps(tmp_path: Path) -> None:
    folder = collection_of("join-leave", tmp_path)
    gone = "10.0.0.1@19750#2053455938872"
    for log in folder.glob("brokers/*/broker.log*"):
        rewrite(log, lambda line: not ("unregister a consumer" in line and gone in line))
    done = ingest_collection(folder)
    (told,) = findings(done, "INGEST_LEAVE_NOT_LOGGED")
    assert told["client_id"] == gone
    assert held_at_the_end("join-leave", ledger_of(done.tables)) == held_at_the_end(
        "join-leave", replayed("join-leave")
    )


def test_the_end_of_a_whole_group_that_no_log_has_is_seen_in_its_dumps(tmp_path: Path) -> None:
    """Its logs were copied before its last member left, its dumps were taken after."""
    folder = collection_of("nightly", tmp_path)
    gone = "10.0.2.90@31384#3172634501712"
    for log in folder.glob("brokers/*/broker.log*"):
        rewrite(log, lambda line: not ("unregister a consumer" in line and gone in line))
    done = ingest_collection(folder)
    (told,) = findings(done, "INGEST_LEAVE_NOT_LOGGED")
    assert (told["consumer_group"], told["client_id"]) == ("batch-loader", gone)
    (lost,) = [row for row in done.tables["cluster_events"] if row.get("client_id") == gone
               and row["event_type"] == "CONSUMER_LOST"]  # fmt: skip
    shown_ms = min(
        int(path.name.partition("-")[0])
        for path in folder.glob("mqadmin/*-consumerProgress-s-batch-loader.txt")
    )
    assert lost["event_ms"] == shown_ms
    (verdict,) = [row for row in audit_folder(folder)["group_verdicts"]
                  if row["consumer_group"] == "batch-loader"]  # fmt: skip
    assert verdict["verdict"] == "OFFLINE"


def test_a_log_that_ended_is_not_silent(tmp_path: Path) -> None:
    """A dump half an hour after the logs were copied says nothing of who subscribes what."""
    folder = collection_of("pathologies", tmp_path)
    recorded = ingest_collection(folder).tables["cluster_events"]
    last = max(folder.glob("mqadmin/*-clusterList.txt"))
    late_ms = int(last.name.partition("-")[0]) + 30 * 60_000
    shutil.copy(last, last.with_name(f"{late_ms}-clusterList.txt"))
    assert ingest_collection(folder).tables["cluster_events"] == recorded


@pytest.mark.parametrize("name", ["join-leave", "pathologies", "scale-out-4.9", "nightly"])
@pytest.mark.parametrize("missing", ["clients", "mqadmin", "namesrv"])
def test_a_healthy_cluster_is_told_without_some_of_the_files(
    name: str, missing: str, tmp_path: Path
) -> None:
    folder = collection_of(name, tmp_path)
    shutil.rmtree(folder / missing)
    done = ingest_collection(folder)
    found = held_at_the_end(name, ledger_of(done.tables))
    assert found == held_at_the_end(name, replayed(name))


@pytest.mark.parametrize("name", ["join-leave", "scale-out-4.9", "silent-loss", "timing"])
def test_a_log_that_begins_late_starts_with_what_it_observes(name: str, tmp_path: Path) -> None:
    changes = sorted(row["change_ms"] for row in replayed(name)["diffs"])
    begins_ms = changes[len(changes) // 2]
    folder = collection_of(name, tmp_path)
    for log in (*folder.glob("brokers/*/*.log*"), *folder.glob("namesrv/*.log*")):
        rewrite(log, lambda line: line[:1].isdigit() and server_ms(line) >= begins_ms)
    done = ingest_collection(folder)
    observed = [row for row in done.tables["cluster_events"] if row.get("detail") == "OBSERVED"]
    assert observed
    found = held_at_the_end(name, ledger_of(done.tables))
    assert found == held_at_the_end(name, replayed(name))


def server_ms(line: str) -> int:
    from rebalance_core.ingest.parse.text.clock import Clock

    return Clock().second_ms(line[:19]) or 0


@pytest.mark.parametrize("name", ["pathologies", "silent-loss", "timing"])
@pytest.mark.parametrize("share", [0.05, 0.5])
def test_whatever_lines_are_missing_the_tables_hold_together(
    name: str, share: float, tmp_path: Path, seed: int
) -> None:
    chance = random.Random(f"{seed} {name} {share}")
    folder = collection_of(name, tmp_path)
    for log in sorted(folder.rglob("*.log*")):
        rewrite(log, lambda line: chance.random() >= share)
    done = ingest_collection(folder)
    assert done.tables["cluster_events"]
    assert ledger_of(done.tables).get("rejected", []) == []
    for table in ("cluster_events", "queue_offsets", "committed_offsets", "consumer_groups"):
        key = INPUT_TABLES[table].key
        keys = [tuple(row.get(name) for name in key) for row in done.tables[table]]
        assert len(keys) == len(set(keys)), table
