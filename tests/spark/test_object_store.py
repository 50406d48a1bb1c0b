"""Jobs on Spark into an object store, which this Spark has no connector for: tasks write there."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.cli.main import main
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.run_names import RUN_NAME
from rebalance_core.contracts.table import SOURCE
from rebalance_core.engine.table_writer import read_written as read_in_process
from rebalance_core.ingest.collection import open_collection
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.spark.catalogs import publish
from rebalance_core.spark.read_tables import InputTables
from rebalance_core.spark.sources import read_written
from rebalance_core.storage.access import S3Access
from rebalance_core.storage.place import Place, place_of
from tests.object_store import closed_port, denying_store, upload
from tests.recordings.tables import DATA
from tests.unit.process.propagation_inputs import unknown_member, write_tables
from tests.unit.producers.recorded import write_input

pytestmark = pytest.mark.usefixtures("session_of_the_run")

TABLES = DATA / "join-leave" / "tables"
COLLECTION = DATA / "join-leave" / "collection"


def made(location: object, run_on: str, *words: object) -> dict[str, Any]:
    """The record of a run that ended well or with findings."""
    code = main(None, [*map(str, words), "--output", str(location), "--run-on", run_on])
    assert code in (0, 3)
    record: dict[str, Any] = json.loads((place_of(str(location)) / RUN_NAME).read_text() or "{}")
    return record


def same(local: Path, bucket: str, *words: object) -> None:
    """Spark leaves in the bucket what a process leaves in a folder."""
    expected = made(local, "process", *words)
    store = f"{bucket}/{words[0]}"
    found = made(store, "spark", *words)
    folder = place_of(store)
    assert found["outputs"] == expected["outputs"]
    assert found["rejected"] == expected["rejected"]
    assert found["exit_code"] == expected["exit_code"]
    assert folder.names() == place_of(local).names()
    for name in set(folder.names()) & set(ALL_TABLES):
        place = folder / name
        files = ds.dataset(place.path, filesystem=place.file_system, format="parquet")
        assert files.count_rows() == expected["outputs"][name]["rows"]


def test_simulate_and_again(bucket: str, tmp_path: Path) -> None:
    same(tmp_path / "1", bucket, "simulate", "--input", TABLES)
    same(tmp_path / "2", bucket, "simulate", "--input", TABLES, "--overwrite", "--to", "1")


@pytest.mark.slow
def test_the_reference_engine_writes_through_tasks_too(bucket: str, tmp_path: Path) -> None:
    same(tmp_path / "1", bucket, "simulate", "--input", TABLES, "--engine", "reference")


def test_generate(bucket: str, tmp_path: Path) -> None:
    same(tmp_path / "1", bucket, "generate", "--groups", 3, "--seed", 3)


@pytest.mark.slow
def test_an_audit_with_its_previous(bucket: str, tmp_path: Path) -> None:
    """Ingested tables, ledger and earlier findings are read back from the bucket."""
    words = ("audit", "--collection", COLLECTION, "--redact-clients")
    same(tmp_path / "1", bucket, *words)
    earlier = made(f"{bucket}/next", "spark", *words, "--previous", f"{bucket}/audit")
    assert earlier["audit"]["findings"]
    assert "previous" in ((place_of(bucket) / "next" / "report.html").read_text() or "")


@pytest.mark.slow
def test_plan(bucket: str, tmp_path: Path) -> None:
    same(tmp_path / "1", bucket, "plan", "--input", TABLES, "--strategy", "AVG_BY_CIRCLE")


def test_ingested_tables_read_back_as_in_a_process(bucket: str, spark: SparkSession) -> None:
    """An audit judges what it ingested: rows, and the file and line each came from."""
    folder = place_of(bucket) / "ingested"
    ingest_and_write(open_collection(COLLECTION), folder)
    here, there = read_input_tables(folder), InputTables.read_stored(spark, folder)
    assert there.paths == here.paths
    for name, source in there.sources().items():
        found = source.conformed.orderBy(SOURCE).toArrow().to_pylist()
        assert found == here.tables[name].sort_by(SOURCE).to_pylist()
        assert found[0][SOURCE].startswith("part-00000.zstd.parquet:")
    findings = read_written(spark, str(folder), "findings")
    assert findings.toArrow().to_pylist() == read_in_process(folder, "findings").to_pylist()


def test_producers(bucket: str, tmp_path: Path) -> None:
    same(tmp_path / "1", bucket, "producers", "--input", write_input(tmp_path / "in"))


@pytest.mark.slow
def test_propagate(bucket: str, tmp_path: Path) -> None:
    words = ("propagate", "--seeds", 3, "--handover-seeds", 1, "--input")
    same(tmp_path / "1", bucket, *words, write_tables(tmp_path / "in", unknown_member()))


def test_a_run_in_a_bucket_is_published(bucket: str, spark: SparkSession) -> None:
    record = made(f"{bucket}/run", "process", "simulate", "--input", TABLES)
    published = publish(spark, f"{bucket}/run", "of_a_bucket")
    try:
        assert published.run_id == record["run_id"]
        for name, rows in published.tables.items():
            assert spark.table(name).count() == rows
        assert published.tables["of_a_bucket.diffs"] == record["outputs"]["diffs"]["rows"] > 0
    finally:
        spark.sql("DROP DATABASE of_a_bucket CASCADE")


def test_a_collection_is_read_where_it_lies(
    bucket: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tasks read parts of logs and whole files in the bucket."""
    monkeypatch.setattr("rebalance_core.spark.collection_files._RANGE_BYTES", 20_000)
    upload(COLLECTION, place_of(f"{bucket}/c"))
    here = made(tmp_path / "here", "process", "audit", "--collection", COLLECTION)
    there = made(tmp_path / "there", "spark", "audit", "--collection", f"{bucket}/c")
    for field in ("outputs", "rejected", "files", "run_id", "audit", "exit_code"):
        assert here[field] == there[field], field


def test_a_store_that_fails_a_task(
    bucket: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The driver listed the files; the store then denies them to the tasks."""
    monkeypatch.setattr("rebalance_core.storage.access.ATTEMPTS", 2)
    upload(COLLECTION, place_of(f"{bucket}/c"))
    opened = open_collection(f"{bucket}/c")
    assert isinstance(opened.root, Place)
    assert isinstance(opened.root.access, S3Access)
    with denying_store() as endpoint:
        access = replace(opened.root.access, endpoint=endpoint)
        denied = replace(opened, root=replace(opened.root, access=access))
        monkeypatch.setattr(
            "rebalance_core.cli.run.in_process.Backend.collection", lambda *_: denied
        )
        words = ["--collection", f"{bucket}/c", "--output", str(tmp_path / "out")]
        assert main("audit", [*words, "--run-on", "spark"]) == 6
    told = capsys.readouterr().err
    assert "ACCESS_DENIED" in told
    assert place_of(tmp_path / "out").names() == [RUN_NAME]


def test_no_broker_answers(
    bucket: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    with closed_port() as endpoint:
        monkeypatch.setenv("AWS_ENDPOINT_URL", endpoint)
        words = ["--input", str(TABLES), "--output", f"{bucket}/run", "--run-on", "spark"]
        assert main("simulate", words) == 6
        assert f"{endpoint} does not answer" in capsys.readouterr().err
