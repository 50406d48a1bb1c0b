"""The distributed ingest against the one in one process, which the recordings judge."""

import gzip
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import INGESTED_TABLES
from rebalance_core.contracts.fact_declaration import GROUP
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import open_collection
from rebalance_core.ingest.evidence.evidence_table import (
    EVIDENCE_DDL,
    evidence_batches,
    pieces_of,
)
from rebalance_core.ingest.group_tables import group_tables
from rebalance_core.ingest.in_process import (
    context_of,
    ingest_collection,
    read_file,
    reader_of,
)
from rebalance_core.spark.ingest.ingest import ingest, thinned
from tests.recordings.tables import DATA
from tests.unit.ingest import made_up_fact

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEPT_IN_ANY_ORDER = ("observed_ownership", "observed_members", "rejected", "findings")


SUBSCRIPTION = (
    "SubscriptionData [classFilterMode=false, topic=T, subString={}, tagsSet=[], codeSet=[], "
    "subVersion=5, expressionType=TAG]"
)
TROUBLE_AT_BROKER = [
    f"2026-11-21 11:39:{second:02} WARN t - {message}\n"
    for second in (1, 1, 1, 2, 59)
    for message in (
        "the consumer's subscription not exist, group: never, topic:T",
        "subscription changed, group: never OLD: "
        f"{SUBSCRIPTION.format('a')} NEW: {SUBSCRIPTION.format('b')}",
        "[NOTIFYME]update consumer offset less than store. clientHost=1.1.1.1:1, key=T@never, "
        f"queueId=0, requestOffset={second}, storeOffset=90",
    )
]
"""Repeated within a second: the job keeps one of each."""
TROUBLE_OF_CLIENT = [
    f"2026-11-21 11:{minute}:01.{millis} WARN  [7] [t] [o.a.r#?:?] - {message}\n"
    for minute in (39, 40, 49)
    for millis in (100, 200, 900)
    for message in (
        "send heart beat to broker[broker-a 0 1.1.1.1:1] failed",
        "doRebalance, never T, get consumer id list failed",
        "execute the pull request exception, group=never, messageQueue=MessageQueue [topic=T, "
        "brokerName=broker-a, queueId=0]\norg.apache.rocketmq.client.exception.MQBrokerException: "
        "CODE: 16  DESC: the consumer group[never] can not consume by broadcast way",
    )
]


def collection_of(folder: Path, *recordings: str) -> Path:
    for name in recordings:
        shutil.copytree(DATA / name / "collection", folder, dirs_exist_ok=True)
    return folder


def plain(value: Any) -> Any:
    if isinstance(value, dict):
        return tuple(sorted((k, plain(v)) for k, v in value.items() if v is not None))
    return tuple(map(plain, value)) if isinstance(value, list) else value


def test_request_modes_are_those_that_a_single_process_finds(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = collection_of(tmp_path / "pop", "pop")
    expected = ingest_collection(folder).tables
    done = ingest(spark, open_collection(folder)).tables
    for name in ("cluster_events", "consumer_groups", "findings", "rejected"):
        rows = [plain(row.asDict(recursive=True)) for row in done[name].collect()]
        wanted = [plain(row) for row in expected.get(name, [])]
        assert sorted(rows, key=repr) == sorted(wanted, key=repr), name


def test_copies_beside_a_rocksdb_have_the_dates_that_a_single_process_finds(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = collection_of(tmp_path / "rocksdb", "rocksdb")
    expected = ingest_collection(folder).tables
    done = ingest(spark, open_collection(folder)).tables
    for name in ("committed_offsets", "observed_facts", "findings", "rejected"):
        rows = [plain(row.asDict(recursive=True)) for row in done[name].collect()]
        wanted = [plain(row) for row in expected.get(name, [])]
        assert sorted(rows, key=repr) == sorted(wanted, key=repr), name


def test_every_table_is_the_one_that_a_single_process_makes(
    spark: "SparkSession", tmp_path: Path
) -> None:
    folder = collection_of(tmp_path / "a", "pathologies")
    with (folder / "brokers/broker-a/broker.log").open("a") as log:
        log.write("2026-11-21 11:39:00 INFO t - new consumer connected, group: g\n")
        log.writelines(TROUBLE_AT_BROKER)
    (folder / "clients/app").mkdir()
    (folder / "clients/app/rocketmq_client.log").write_text("".join(TROUBLE_OF_CLIENT))
    expected = ingest_collection(folder)
    done = ingest(spark, open_collection(folder))
    for name in INGESTED_TABLES:
        rows = [plain(row.asDict(recursive=True)) for row in done.tables[name].collect()]
        wanted = [plain(row) for row in expected.tables.get(name, [])]
        assert sorted(rows, key=repr) == sorted(wanted, key=repr), name
    assert sorted(map(repr, done.stats)) == sorted(map(repr, expected.stats))
    times = {
        (row["kind"], row["first_ms"]): row["times"]
        for row in expected.tables["observed_facts"]
        if row["consumer_group"] == "never" or row["kind"] == "HEARTBEAT_FAILED"
    }
    begin_ms, later_ms = 1795232341000, 1795232341100
    assert times == {
        ("NO_SUBSCRIPTION", begin_ms): 3,
        ("TAGS_CHANGED", begin_ms): 3,
        ("OFFSET_WENT_BACK", begin_ms): 3,
        ("NO_MEMBER_LIST", later_ms): 2,
        ("NO_MEMBER_LIST", later_ms + 600_000): 1,
        ("BROADCAST_REFUSED", later_ms): 2,
        ("BROADCAST_REFUSED", later_ms + 600_000): 1,
        ("HEARTBEAT_FAILED", later_ms): 2,
        ("HEARTBEAT_FAILED", later_ms + 600_000): 1,
    }
    assert "never" not in {row["consumer_group"] for row in expected.tables["consumer_groups"]}


def test_a_fact_that_is_declared_is_thinned_and_makes_rows(
    spark: "SparkSession", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made_up_fact.declare(monkeypatch)
    collection = open_collection(made_up_fact.write_collection(tmp_path / "made-up"))
    (log,) = collection.files
    reader = reader_of(collection, log, Assumptions())
    pieces = read_file(reader, collection.path_of(log))
    evidence = spark.createDataFrame(
        pa.Table.from_batches(evidence_batches(pieces)).to_pylist(), EVIDENCE_DDL
    )
    kept = [*pieces_of(thinned(evidence, GROUP).toArrow().to_batches())]
    assert len(kept) == len(made_up_fact.LINES) - 1
    context = context_of(collection, [], [reader.stats], {}, Assumptions())
    assert {
        (row["details"]["reason"], row["first_ms"], row["last_ms"], row["times"])
        for row in group_tables("g", kept, context)["observed_facts"]
    } == made_up_fact.ROWS


def test_a_log_in_splits_and_a_rotated_one_say_what_the_whole_says(
    spark: "SparkSession", tmp_path: Path
) -> None:
    whole = collection_of(tmp_path / "whole", "join-leave")
    parts = collection_of(tmp_path / "parts", "join-leave")
    log = parts / "brokers/broker-a/broker.log"
    lines = log.read_bytes().splitlines(keepends=True)
    (log.parent / "otherdays").mkdir()
    packed = gzip.compress(b"".join(lines[:350]))
    (log.parent / "otherdays" / "broker.1.log.gz").write_bytes(packed)
    log.write_bytes(b"".join(lines[350:]))
    before = spark.conf.get("spark.sql.files.maxPartitionBytes")
    spark.conf.set("spark.sql.files.maxPartitionBytes", "16384")
    try:
        done = ingest(spark, open_collection(parts))
        events = done.tables["cluster_events"].drop("source", "sequence").collect()
        sources = done.tables["cluster_events"].select("source").distinct().collect()
    finally:
        spark.conf.set("spark.sql.files.maxPartitionBytes", str(before))
    expected = ingest_collection(whole).tables["cluster_events"]
    found = sorted(repr(plain(row.asDict())) for row in events)
    assert found == sorted(
        repr(plain({k: v for k, v in row.items() if k not in ("source", "sequence")}))
        for row in expected
    )
    assert any("@" in row["source"] for row in sources)
    assert any("broker.1.log.gz:" in row["source"] for row in sources)


def test_keys_are_unique(spark: "SparkSession", tmp_path: Path) -> None:
    folder = collection_of(tmp_path, "scale-out-4.9")
    tables = ingest(spark, open_collection(folder)).tables
    for name in ("cluster_events", "queue_offsets", "committed_offsets"):
        keys = tables[name].select(*INGESTED_TABLES[name].key).collect()
        assert len(keys) == len(set(keys)) > 0, name


def test_broken_files_end_as_rows(spark: "SparkSession", tmp_path: Path) -> None:
    folder = collection_of(tmp_path / "a [1] {x}", "join-leave")
    logs = folder / "brokers" / "broker-a"
    (logs / "broker.2.log.gz").write_bytes(gzip.compress(b" " * (80 * 1024**2)))
    (logs / "broker.3.log").write_text(
        "x" * 10_000_000 + "\n\x1b[1mnew consumer connected, group: g"
    )
    (folder / "brokers" / "link").symlink_to("/")
    done = ingest(spark, open_collection(folder))
    rejected = {
        row["source"]: row["issues"][0]["code"] for row in done.tables["rejected"].collect()
    }
    assert rejected == {
        "brokers/broker-a/broker.2.log.gz": "GZIP_BOMB",
        "brokers/broker-a/broker.3.log:2": "BROKEN_TEXT",
        "brokers/link": "LEAVES_COLLECTION",
    }
    expected = ingest_collection(folder).tables["cluster_events"]
    assert done.tables["cluster_events"].count() == len(expected)
