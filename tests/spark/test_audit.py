"""The distributed audit gives what the plain one gives, and what only matters at scale."""

import json
from collections.abc import Iterator
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.redact import DIGITS, PREFIX, pseudonym
from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.contracts import ALL_TABLES, INGESTED_TABLES, INPUT_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.process.write_ledger import simulate_and_write
from rebalance_core.spark.audit.audit import AuditResult, audit_tables
from rebalance_core.spark.audit.queries import capped, changed_since, findings_frame
from rebalance_core.spark.audit.redacted_frames import redacted
from rebalance_core.spark.tables.observed import read_observed
from tests.recordings.audited import audited
from tests.recordings.tables import DATA, Row

FLEET = ("nightly", "silent-loss", "pop")
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def tables(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> dict[str, DataFrame]:
    """Three recordings as one fleet of three clusters, as a process wrote them; rows reversed."""
    folder = tmp_path_factory.mktemp("written")
    for table in INGESTED_TABLES:
        rows = [row for name in FLEET for row in ingested(name, table)]
        batch = batch_of_rows(ALL_TABLES[table], rows[::-1])
        (folder / table).mkdir()
        pq.write_table(pa.Table.from_batches([batch]), folder / table / "part-0.parquet")
    inputs = {name: pq.read_table(folder / name) for name in INPUT_TABLES}
    simulate_and_write(input_tables_of(inputs), folder / "ledger")
    written = [*folder.glob("*/"), *(folder / "ledger").iterdir()]
    return {
        path.name: spark.read.schema(ALL_TABLES[path.name].plain_ddl).parquet(str(path))
        for path in written
        if path.name in ALL_TABLES
    }


def ingested(recording: str, table: str) -> Iterator[Row]:
    for row in ingest_collection(DATA / recording / "collection").tables[table]:
        yield row | ({"cluster": recording} if "cluster" in row else {})


@pytest.fixture(scope="module")
def result(tables: dict[str, DataFrame]) -> Iterator[AuditResult]:
    known = Acceptance("IDLE_MEMBER", (("consumer_group", "audit-*"),), "a spare", date(2026, 1, 1))
    with audit_tables(tables, accepted=(known,)) as audited_tables:
        assert audited_tables.judged.is_cached
        yield audited_tables
    assert not audited_tables.judged.is_cached


@pytest.fixture(scope="module")
def findings(spark: SparkSession, result: AuditResult) -> DataFrame:
    """Its findings as written ones: nothing is left to compute."""
    return findings_frame(spark, rows(result.findings))


def test_findings_and_verdicts_are_those_of_the_plain_audit(result: AuditResult) -> None:
    found = rows(result.findings)
    expected = [row | {"cluster": name} for name in FLEET for row in audited(name)["findings"]]
    for row in expected:
        if row["rule_id"] == "IDLE_MEMBER" and row["consumer_group"] == "audit-writer":
            row["accepted"] = "a spare"
    assert by_text(found) == by_text(expected)
    verdicts = [r | {"cluster": n} for n in FLEET for r in audited(n)["group_verdicts"]]
    assert by_text(rows(result.verdicts)) == by_text(verdicts)


def test_findings_are_counted_before_they_are_cut(result: AuditResult, findings: DataFrame) -> None:
    counts = {(one.rule_id, one.severity, one.accepted): one.findings
              for one in result.counts()}  # fmt: skip
    assert counts["ORPHAN_QUEUES", "ERROR", False] == 4
    assert counts["IDLE_MEMBER", "WARNING", True] == 1
    kept = rows(capped(findings, 2))
    orphans = [row for row in kept if row["rule_id"] == "ORPHAN_QUEUES"]
    assert [row["severity"] for row in orphans] == ["ERROR", "ERROR"]


def test_what_is_new_gone_and_still_there(findings: DataFrame) -> None:
    before = findings.where("rule_id <> 'ORPHAN_QUEUES' OR consumer_group <> 'crm'")
    now = findings.where("rule_id <> 'DOUBLE_OWNER'")
    new, gone, still = changed_since(now, before)
    assert {(r["rule_id"], r["consumer_group"]) for r in rows(new)} == {("ORPHAN_QUEUES", "crm")}
    assert {row["rule_id"] for row in rows(gone)} == {"DOUBLE_OWNER"}
    assert {row["severity"] for row in rows(still)} == {"ERROR", "WARNING"}


def test_a_rule_of_which_not_all_was_kept_has_no_new_findings(findings: DataFrame) -> None:
    before = capped(findings, 1)
    assert "ORPHAN_QUEUES" in {row["rule_id"] for row in rows(changed_since(findings, before)[0])}
    new, gone, _ = changed_since(findings, before, ["ORPHAN_QUEUES"])
    assert "ORPHAN_QUEUES" not in {row["rule_id"] for row in rows(new)}
    assert rows(gone) == []


def test_redacted_findings_verdicts_and_tables_show_no_client(
    spark: SparkSession, tables: dict[str, DataFrame]
) -> None:
    clients = {row["client_id"] for row in tables["memberships"].select("client_id").collect()}
    hosts = {client.partition("@")[0] for client in clients} | {"127.0.0.1", "fe80::7"}
    one = min(clients)
    told = f"{one} of fe80::7 wrote clients/shop-pod/rocketmq_client.log"
    on_cluster = {
        "cluster": "nightly", "rule_id": "INGEST_ASSUMED", "severity": "INFO", "summary": told,
        "remedy": told, "evidence": {told: told},
    }  # fmt: skip
    found = tables["findings"]
    extra = spark.createDataFrame([tuple(on_cluster.get(n) for n in found.columns)], found.schema)
    hidden = audit_tables({**tables, "findings": found.unionByName(extra)}, redact_salt="s")
    ledger = {name: redacted(tables[name], PREFIX, DIGITS, "s") for name in SIMULATED_TABLES}
    frames = {"findings": hidden.findings, "group_verdicts": hidden.verdicts} | ledger
    shown = {name: rows(frame) for name, frame in frames.items()}
    for name, some in shown.items():
        text = json.dumps(some)
        told_of = [word for word in (*clients, *hosts, "shop-pod") if word in text]
        assert told_of == [], name
    names = {row["client_id"] for row in shown["memberships"]}
    assert names == {pseudonym(client, "s") for client in clients}
    assert names & {row["client_id"] for row in shown["findings"]}
    assert any(pseudonym(one, "s") in (row["remedy"] or "") for row in shown["findings"])


def test_the_place_of_a_rejected_row_names_no_client(spark: SparkSession) -> None:
    places = {
        "mqadmin/5-consumerStatus-g/10.0.0.1@7.txt:8": "mqadmin/5-consumerStatus-g/(redacted):8",
        "clients/shop-pod/rocketmq_client.log:3": "clients/(redacted)/rocketmq_client.log:3",
        "brokers/broker-a/broker.log.gz:419": "brokers/broker-a/broker.log.gz:419",
    }
    frame = spark.createDataFrame(
        [(place, "text") for place in places], "source STRING, raw STRING"
    )
    shown = rows(redacted(frame, PREFIX, DIGITS, "s"))
    assert [row["source"] for row in shown] == list(places.values())
    assert {row["raw"] for row in shown} == {"(redacted)"}


def test_observed_rows_that_are_none_are_rejected_with_their_place(
    spark: SparkSession, tmp_path: Path
) -> None:
    good = {"cluster": "c", "consumer_group": "g", "topic": "T", "broker_name": "b", "queue_id": 0,
            "client_id": "a", "observed_ms": NOW_MS, "source": "s"}  # fmt: skip
    bad = good | {"queue_id": "x"}
    path = tmp_path / "observed_ownership.jsonl"
    path.write_text("\n".join(map(json.dumps, (good, bad))) + "\n")
    facts = {"cluster": "c", "kind": "DUMP", "first_ms": NOW_MS, "last_ms": NOW_MS, "times": 1,
             "details": {"command": "clusterList"}, "source": "s"}  # fmt: skip
    (tmp_path / "observed_facts.jsonl").write_text(json.dumps(facts) + "\n")
    observed = read_observed(spark, str(tmp_path))
    assert rows(observed.tables["observed_ownership"]) == [good]
    (fact,) = rows(observed.tables["observed_facts"])
    assert fact["details"] == {"command": "clusterList"}
    (rejected,) = rows(observed.rejected)
    assert rejected["source"].endswith("observed_ownership.jsonl:2")
    assert rejected["issues"][0]["code"] == "BAD_TYPE"


def rows(frame: DataFrame) -> list[dict[str, Any]]:
    return [row.asDict(recursive=True) for row in frame.collect()]


def by_text(found: list[dict[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in found)
