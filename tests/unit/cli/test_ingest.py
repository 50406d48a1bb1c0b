"""`ingest` as an operator runs it, and `simulate` of what it wrote."""

import json
import shutil
from pathlib import Path

import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import INGESTED_TABLES
from tests.recordings.tables import DATA, ledger_of
from tests.recordings.test_ingest_truth import ingested

COLLECTION = DATA / "join-leave" / "collection"


def run(capsys: pytest.CaptureFixture[str], *words: object) -> tuple[int, str, str]:
    code = main(None, [str(word) for word in words])
    out, err = capsys.readouterr()
    return code, out, err


def test_ingest_then_simulate(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tables, ledger = tmp_path / "tables", tmp_path / "ledger"
    code, out, err = run(capsys, "ingest", "--collection", COLLECTION, "--output", tables, "--json")
    assert code == 0, err
    facts = json.loads(out)
    assert facts["share_understood"] == 1.0
    assert facts["rejected_rows"] == 0
    record = json.loads((tables / "_run.json").read_text())
    assert (record["run_on"], facts["run_on"]) == ("process", "process")
    assert set(record["outputs"]) == set(INGESTED_TABLES) == set(facts["rows"])
    shares = {one["name"]: one["share_understood"] for one in record["files"]}
    assert shares["namesrv/namesrv.log.gz"] == 1.0
    code, out, err = run(capsys, "simulate", "--input", tables, "--output", ledger, "--json")
    assert code == 0, err
    expected = ledger_of(ingested("join-leave").tables)
    assert json.loads(out)["rows"] == {
        name: len(expected.get(name, [])) for name in json.loads(out)["rows"]
    }


def test_a_dry_run_lists_what_would_be_read_and_writes_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "collection"
    shutil.copytree(COLLECTION, folder)
    (folder / "brokers" / "notes.txt").write_text("hello")
    code, out, _ = run(
        capsys, "ingest", "--collection", folder, "--output", tmp_path / "out", "--dry-run"
    )
    assert code == 0
    assert "broker_log" in out
    assert "'brokers/notes.txt' is not part of the layout" in out
    assert not (tmp_path / "out").exists()


@pytest.mark.parametrize(
    ("words", "code", "said"),
    [
        (["--output", "o"], 2, "--collection DIR is missing"),
        (
            ["--collection", "gs://n/c", "--output", "o", "--run-on", "process"],
            2,
            "gs://n/c: without Spark only local folders, s3://",
        ),
        (["--collection", "nowhere", "--output", "o"], 4, "no such folder"),
        (["--colection", "x", "--output", "o"], 2, "did you mean --collection?"),
        (
            ["--collection", str(COLLECTION), "--output", "o", "--set", "assume.strategy=AVGG"],
            2,
            "assume.strategy",
        ),
    ],
)
def test_mistakes_are_reported_before_anything_is_read(
    words: list[str], code: int, said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _, err = run(capsys, "ingest", *words)
    assert found == code
    assert said in err
    assert "Traceback" not in err
