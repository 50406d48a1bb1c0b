"""Each job leaves the same in one process and on Spark: rows, digests, page, metrics, words."""

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rebalance_core.cli.main import main
from rebalance_core.contracts import (
    AUDITED_TABLES,
    HISTORY_TABLES,
    INGESTED_TABLES,
    INPUT_TABLES,
    LEDGER_TABLES,
    PLAN_OUTPUT_TABLES,
    REJECTED,
    Table,
)
from rebalance_core.process import propagate
from tests.recordings.tables import DATA, ingested_recording
from tests.tree import TREE
from tests.unit.process.propagation_inputs import unknown_member, write_tables
from tests.unit.producers.recorded import write_input

PLACES = ("process", "spark")
TABLES: dict[object, Mapping[str, Table]] = {
    "generate": INPUT_TABLES,
    "ingest": INGESTED_TABLES,
    "audit": AUDITED_TABLES,
    "simulate": LEDGER_TABLES,
    "plan": {**PLAN_OUTPUT_TABLES, REJECTED.name: REJECTED},
}
"""What a job writes."""
PLANNED = (
    "--scenario",
    TREE / "rebalance_core/bundled/scenarios/add-consumers.toml",
    "--strategy",
    "league",
)
OF_THE_RUN = ("arguments", "run_on", "seconds", "stages", "started_at", "versions")
"""What of a record may differ."""
TIMES = re.compile(
    r"Made by .* at <time.*?</time>|finished_seconds.*|\d+(\.\d+)? s (in pro|on Sp).*"
)

pytestmark = pytest.mark.usefixtures("session_of_the_run")


def made(folder: Path, *words: object) -> dict[str, Any]:
    """What a job that ends well, or with findings, leaves behind and says."""
    code = main(None, [*map(str, words), "--output", str(folder)])
    assert code in (0, 3)
    record = json.loads((folder / "_run.json").read_text())
    texts = {
        path.name: TIMES.sub("", path.read_text())
        for path in (folder / name for name in ("report.html", "history.html", "metrics.prom"))
        if path.exists()
    }
    return {k: v for k, v in record.items() if k not in OF_THE_RUN} | texts


@pytest.mark.parametrize(
    "words",
    [
        ("generate", "--groups", "8", "--seed", "3"),
        ("ingest", "--collection", DATA / "pathologies" / "collection"),
        pytest.param(
            ("audit", "--collection", DATA / "nightly" / "collection"), marks=pytest.mark.slow
        ),
        pytest.param(
            ("simulate", "--input", TREE / "rebalance_core/bundled/demo/join-leave/tables"),
            marks=pytest.mark.slow,
        ),
        pytest.param(
            ("plan", "--input", TREE / "rebalance_core/bundled/demo/steady/tables", *PLANNED),
            marks=pytest.mark.slow,
        ),
    ],
    ids=["generate", "ingest", "audit", "simulate", "plan"],
)
def test_a_job_leaves_the_same_and_keeps_nothing(
    session_of_the_run: SparkSession, words: tuple[object, ...], tmp_path: Path
) -> None:
    before = kept(session_of_the_run)
    process, spark = (made(tmp_path / place, *words, "--run-on", place) for place in PLACES)
    assert process == spark
    assert kept(session_of_the_run) == before
    assert process["outputs"].keys() == TABLES[words[0]].keys()


def kept(session: SparkSession) -> set[int]:
    """Ids of the RDDs that the session keeps."""
    jsc = session.sparkContext._jsc
    assert jsc is not None
    return set(jsc.getPersistentRDDs())


def test_producers_leave_the_same(tmp_path: Path) -> None:
    """A model, and recorded results some of which are bad."""
    model = TREE / "rebalance_core/bundled/producers/brown-out.toml"
    few = tmp_path / "few.toml"
    few.write_text(model.read_text().replace("clients = 200", "clients = 5"))
    recorded = write_input(tmp_path / "recorded")
    for number, words in enumerate((("--model", few), ("--input", recorded))):
        process, spark = (
            made(tmp_path / f"{place}{number}", "producers", *words, "--run-on", place)
            for place in PLACES
        )
        assert process == spark
        assert process["outputs"]["publish_choices"]["rows"]


def test_propagate_leaves_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Groups in several pieces on Spark, a row that names an unknown process."""
    monkeypatch.setattr(propagate, "PIECE_CELLS", 200)
    words: tuple[object, ...] = ("propagate", "--seeds", 40, "--handover-seeds", 3, "--input")
    words += (write_tables(tmp_path / "in", unknown_member()),)
    process, spark = (made(tmp_path / place, *words, "--run-on", place) for place in PLACES)
    assert process == spark
    assert process["outputs"]["handovers"]["rows"]
    assert process["rejected"] == {"UNKNOWN_MEMBER": 1}


def test_history_leaves_the_same(tables: Path, tmp_path: Path) -> None:
    """Two clusters' audits, and a folder that is none."""
    runs = tmp_path / "runs"
    made(runs / "one", "audit", "--input", tables)
    made(runs / "two", "audit", "--collection", DATA / "join-leave" / "collection")
    (runs / "half" / "findings").mkdir(parents=True)
    words = ("history", "--runs", runs)
    process, spark = (made(tmp_path / place, *words, "--run-on", place) for place in PLACES)
    assert process == spark
    assert process["outputs"].keys() == HISTORY_TABLES.keys()
    assert process["outputs"]["open_findings"]["rows"]


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    """Tables of an ingest as JSON lines, some of which are none."""
    folder = tmp_path / "tables"
    folder.mkdir()
    ingested: Any = ingested_recording("pathologies").tables
    for name in INGESTED_TABLES:
        lines = [json.dumps(row) for row in ingested.get(name, [])]
        (folder / f"{name}.jsonl").write_text("".join(f"{line}\n" for line in lines))
    held = ingested["observed_ownership"][0] | {"queue_id": "of 10.0.0.1@7"}
    for name, line in (("cluster_events", "{not json"), ("observed_ownership", json.dumps(held))):
        with (folder / f"{name}.jsonl").open("a") as file:
            file.write(f"{line}\n")
    return folder


def test_a_second_run_without_client_ids(tables: Path, tmp_path: Path) -> None:
    """Acceptances, an earlier run, bad rows; each place reads what the other wrote."""
    first, known = tmp_path / "first", tmp_path / "known.toml"
    words: tuple[object, ...] = ("audit", "--input", tables)
    words += ("--set", "audit.findings_per_rule=2")
    made(first, *words, "--write-accepted", known)
    head, *entries = known.read_text().split("[[accepted]]")
    assert len(entries) > 2
    known.write_text("[[accepted]]".join([head, *entries[::2]]))
    words = (*words, "--accepted", known, "--redact-clients")
    second = {
        place: made(tmp_path / place, *words, "--previous", first, "--run-on", place)
        for place in PLACES
    }
    assert second["process"] == second["spark"]
    assert second["process"]["rejected"] == {"BAD_TYPE": 1, "UNPARSABLE": 1}
    third = [
        made(tmp_path / f"after-{place}", *words, "--previous", tmp_path / place)
        for place in PLACES
    ]
    assert third[0] == third[1]
