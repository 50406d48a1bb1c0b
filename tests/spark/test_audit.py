"""An audit on Spark finds and writes what one in a process does, wherever Spark has to write."""

import json
from collections.abc import Iterable, Mapping
from datetime import date
from pathlib import Path
from typing import Any

import pyarrow.compute as pc
import pyarrow.parquet as pq
import pytest
from pyspark.sql import SparkSession

from rebalance_core.audit.accepted_findings import Acceptance
from rebalance_core.audit.counted_findings import capped
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import AUDITED_TABLES, INPUT_TABLES
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.engine.fan_out import GROUP
from rebalance_core.engine.options import LedgerConfig, SimulationOptions
from rebalance_core.engine.table_writer import TableWriters, read_written
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.process import audit as in_process
from rebalance_core.process.audit import audit_and_write as audit_here
from rebalance_core.process.audit import audit_unwritten
from rebalance_core.process.audited import AuditWritten
from rebalance_core.process.observed_tables import READ_TABLES
from rebalance_core.process.simulate import simulate
from rebalance_core.spark import sources, task_tables
from rebalance_core.spark.audit import AuditFrames, audit_and_write, read_inputs
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.sources import reader_of
from tests.recordings.fleets import ingested_fleet, table_of

KNOWN = Acceptance("IDLE_MEMBER", (("consumer_group", "audit-*"),), "a spare", date(2026, 1, 1))
PER_RULE = 2
NOW_MS = 1_700_000_000_000


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three recordings as one fleet of three clusters, in Parquet files."""
    folder = tmp_path_factory.mktemp("ingested")
    for name, rows in ingested_fleet().items():
        (folder / name).mkdir()
        pq.write_table(rows, folder / name / "part-0.parquet")
    return folder


@pytest.fixture(scope="module")
def propagation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """What `propagate` might say of every change, and of a group that no other table names."""
    numbers = {column.name: 7 for column in PROPAGATION.columns if column.type != "STRING"}
    history = {name: ingested_fleet()[name] for name in INPUT_TABLES}
    epochs = simulate(history).epochs.to_pylist()
    changes = [
        {name: row[name] for name in GROUP} | {"change_ms": row["from_ms"]} for row in epochs
    ]
    changes.append({"cluster": "pop", "consumer_group": "late", "change_ms": NOW_MS})
    rows = [numbers | {"cause": "CONSUMER_JOIN"} | row for row in changes]
    folder = tmp_path_factory.mktemp("propagation")
    with TableWriters(folder, (PROPAGATION.name,)) as writers:
        for batch in table_of(PROPAGATION.name, rows).to_batches():
            writers.write(PROPAGATION.name, batch)
    return folder


@pytest.fixture(scope="module")
def here(folder: Path, propagation: Path) -> in_process.AuditInputs:
    """The same for a process."""
    return in_process.read_inputs(str(folder)).with_propagation(propagation)


@pytest.fixture(scope="module")
def expected(
    here: in_process.AuditInputs, tmp_path_factory: pytest.TempPathFactory
) -> AuditWritten:
    """What a process finds and writes."""
    folder = tmp_path_factory.mktemp("process")
    return audit_here(here, folder, findings_per_rule=PER_RULE, accepted=(KNOWN,))


@pytest.fixture(scope="module")
def inputs(spark: SparkSession, folder: Path, propagation: Path) -> AuditFrames:
    return read_inputs(spark, f"file://{folder}").with_propagation(f"file://{propagation}")


def audited(spark: SparkSession, inputs: AuditFrames, output: Path, **options: Any) -> AuditWritten:
    return audit_and_write(
        spark, inputs, f"file://{output}", findings_per_rule=PER_RULE, accepted=(KNOWN,), **options
    )


def test_the_audit_of_a_process_and_nothing_stays(
    spark: SparkSession,
    inputs: AuditFrames,
    expected: AuditWritten,
    tmp_path: Path,
) -> None:
    before = kept(spark)
    found = audited(spark, inputs, tmp_path / "out", options=SimulationOptions(partitions=5))
    assert kept(spark) == before
    ours, theirs = found.result, expected.result
    assert by_text(ours.findings) == by_text(theirs.findings)
    assert by_text(ours.verdicts) == by_text(theirs.verdicts)
    assert ours.runs == theirs.runs
    assert found.ledger == expected.ledger
    assert list(found.ledger.tables) == list(AUDITED_TABLES)
    rows: dict[str, list[dict[str, Any]]] = {
        name: rows_of_arrow(read_written(tmp_path / "out", name)) for name in AUDITED_TABLES
    }
    assert {name: len(some) for name, some in rows.items()} == {
        name: table.rows for name, table in found.ledger.tables.items()
    }
    assert by_text(rows["findings"]) == by_text(capped(theirs.findings, PER_RULE))
    assert len(rows["findings"]) < len(theirs.findings)
    with pytest.raises(OutputExists, match="exists already"):
        audited(spark, inputs, tmp_path / "out")
    assert kept(spark) == before


def test_redacted_tables_where_spark_must_write(
    spark: SparkSession,
    inputs: AuditFrames,
    here: in_process.AuditInputs,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As a process redacts them; the driver reads through Spark."""
    for module in (task_tables, sources):
        monkeypatch.setattr(module, "is_direct", lambda folder: False)
    output = tmp_path / "out"
    found = audited(spark, inputs, output, redact_salt="s")
    read = reader_of(spark, f"file://{output}")
    rows: dict[str, list[dict[str, Any]]] = {
        name: rows_of_arrow(read(name, None)) for name in AUDITED_TABLES
    }
    clients = set(ingested_clients())
    hosts = {client.partition("@")[0] for client in clients} | {"127.0.0.1"}
    for name, some in rows.items():
        text = json.dumps(some)
        assert [word for word in (*clients, *hosts) if word in text] == [], name
    assert len(clients) > 10
    group = next((r["cluster"], r["consumer_group"]) for r in rows["epochs"])
    assert by_text(rows_of_arrow(read("epochs", group))) == by_text(
        row for row in rows["epochs"] if (row["cluster"], row["consumer_group"]) == group
    )
    monkeypatch.undo()
    expected = audit_here(
        here, tmp_path / "here", findings_per_rule=PER_RULE, accepted=(KNOWN,), redact_salt="s"
    )
    assert found.ledger.tables == expected.ledger.tables


def ingested_clients() -> Iterable[str]:
    for row in ingested_fleet()["observed_ownership"].to_pylist():
        yield row["client_id"]


def test_a_dry_run_finds_the_same_and_writes_nothing(
    spark: SparkSession, inputs: AuditFrames, expected: AuditWritten
) -> None:
    before = kept(spark)
    forecast, result = audit_unwritten(
        inputs, SimulationOptions(), BadRowLimits(), runtime=SparkRuntime(spark), accepted=(KNOWN,)
    )
    assert (forecast.refusal, list(forecast.complaints)) == (None, [])
    assert forecast.counts.keys() == set(INPUT_TABLES)
    assert result is not None
    assert result.counts() == expected.result.counts()
    assert kept(spark) == before


def test_rows_that_are_only_compared_with_are_rejected_and_never_refused(
    spark: SparkSession, tmp_path: Path
) -> None:
    """A row of the history that is bad is refused before anything is written."""
    for name in (*INPUT_TABLES, *READ_TABLES):
        rows = ingested_fleet()[name]
        lines = map(json.dumps, rows_of_arrow(rows.filter(pc.equal(rows["cluster"], "pop"))))
        (tmp_path / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    held = tmp_path / "observed_ownership.jsonl"
    row = json.loads(held.read_text().splitlines()[0])
    held.write_text("".join(json.dumps(row | {"queue_id": "x", "new": 1}) + "\n" for _ in "ab"))
    inputs = read_inputs(spark, f"file://{tmp_path}")
    told: list[str] = []
    config = LedgerConfig(bad_rows=BadRowLimits("fail"))
    found = audited(spark, inputs, tmp_path / "out", config=config, warn=told.append)
    assert (found.ledger.rejected, told) == ({"BAD_TYPE": 2}, [])
    places = {row["source"] for row in read_written(tmp_path / "out", "rejected").to_pylist()}
    assert {place.rpartition("/")[2] for place in places} == {
        f"observed_ownership.jsonl:{line}" for line in (1, 2)
    }
    forecast, _ = audit_unwritten(
        inputs, SimulationOptions(), config.bad_rows, runtime=SparkRuntime(spark)
    )
    assert (list(forecast.complaints), forecast.refusal) == ([], None)

    with (tmp_path / "cluster_events.jsonl").open("a") as file:
        file.write("{not json\n")
    bad, before = read_inputs(spark, f"file://{tmp_path}"), kept(spark)
    with pytest.raises(InputRefused, match=r"1 of .* rows are bad(.|\n)*UNPARSABLE 1"):
        audited(
            spark, bad, tmp_path / "no", config=config, before_writing=lambda: pytest.fail("no")
        )
    assert not (tmp_path / "no").exists()
    forecast, result = audit_unwritten(
        bad, SimulationOptions(), config.bad_rows, runtime=SparkRuntime(spark)
    )
    assert "1 of" in str(forecast.refusal)
    assert [one.code for one in forecast.complaints] == ["UNPARSABLE"]
    assert result is None
    assert kept(spark) == before


def kept(spark: SparkSession) -> set[int]:
    """Ids of the RDDs that the session keeps."""
    jsc = spark.sparkContext._jsc
    assert jsc is not None
    return set(jsc.getPersistentRDDs())


def by_text(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)
