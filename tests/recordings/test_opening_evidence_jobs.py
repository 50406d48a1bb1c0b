"""Jobs that begin at the evidence of the night before."""

import json
import shutil
from collections import Counter
from pathlib import Path

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.run_names import STATE
from rebalance_core.ingest.collection import ADMIN, open_collection
from rebalance_core.ingest.collection_settings import SETTINGS_NAME
from tests.recordings.continued_nights import OF_THE_FIRST, Rows, collection_of
from tests.recordings.nights import put, two_nights


def audit(*words: object) -> int:
    return main("audit", ["--run-on", "process", "--overwrite", *map(str, words)])


def tables_in(folder: Path) -> dict[str, Rows]:
    return {
        name: Counter(map(repr, pq.read_table(folder / name).to_pylist()))
        for name in AUDITED_TABLES
        if name != OF_THE_FIRST
    }


@pytest.mark.parametrize(("recording", "seed"), [("nightly", 1), ("pathologies", 3), ("pop", 1)])
def test_an_audit_is_that_of_both_nights(
    recording: str, seed: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    nights = two_nights(collection_of(recording), tmp_path / "nights", seed, rotates=False)
    first, second, both = (tmp_path / name for name in ("first", "second", "both"))
    assert audit("--collection", nights.first, "--output", first) in (0, 3)
    since = "--since", "2020-01-01T00:00:00Z"
    audit("--collection", nights.second, "--state", first, "--output", second, *since)
    audit("--collection", nights.both, "--output", both, *since)
    assert tables_in(second) == tables_in(both)
    audit("--collection", nights.second, "--state", first, "--output", second)
    audited = [json.loads((f / "_run.json").read_text())["audit"] for f in (first, second)]
    assert audited[1]["night_ms"] == audited[0]["end_ms"] < audited[1]["end_ms"]
    capsys.readouterr()


def test_what_the_night_before_showed_stands_though_much_of_it_was_damaged(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Without it, the dumps of the second night do not show the strategies of six groups."""
    source = collection_of("nightly")
    files = open_collection(source).files
    half_ms = sorted(file.written_ms or 0 for file in files if file.kind == ADMIN)[50]
    first, second = tmp_path / "first", tmp_path / "second"
    for file in files:
        content = (source / file.name).read_bytes()
        early = file.written_ms is not None and file.written_ms <= half_ms
        for folder in (first, second) if file.is_log else (first if early else second,):
            put(folder / file.name, content)
    for folder in (first, second):
        shutil.copy(source / SETTINGS_NAME, folder)
    shutil.rmtree(first / "brokers/broker-a")
    for dump in (first / "mqadmin").rglob("*consumerConnection*"):
        dump.write_bytes(dump.read_bytes()[:200])
    assert audit("--collection", first, "--output", tmp_path / "a") == 3
    assert audit("--collection", second, "--output", tmp_path / "b") == 3
    audit("--collection", second, "--state", tmp_path / "a", "--output", tmp_path / "c")
    capsys.readouterr()
    rules = {
        name: Counter(pq.read_table(tmp_path / name / "findings")["rule_id"].to_pylist())
        for name in "abc"
    }
    for name in "ab":
        assert rules[name]["COLLECTION_INCOMPLETE"]
        assert rules[name]["OWNERSHIP_UNKNOWN"]
    assert rules["c"]["COLLECTION_INCOMPLETE"] == rules["c"]["OWNERSHIP_UNKNOWN"] == 0


@pytest.mark.parametrize("words", [("--redact-clients",), ("--input",)])
def test_a_run_that_kept_no_evidence_is_refused(
    words: tuple[str, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder, out = collection_of("join-leave"), tmp_path / "out"
    if words == ("--input",):
        main("ingest", ["--collection", str(folder), "--output", str(tmp_path / "tables")])
        audit("--input", tmp_path / "tables", "--output", out)
    else:
        audit("--collection", folder, "--output", out, *words)
    assert not (out / STATE).exists()
    target = tmp_path / "again"
    capsys.readouterr()
    assert audit("--collection", folder, "--state", out, "--output", target) == 4
    assert "the audit run has no evidence; name a run of ingest" in capsys.readouterr().err
    assert not target.exists()


def test_a_damaged_state_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder, out = collection_of("join-leave"), tmp_path / "out"
    main("ingest", ["--collection", str(folder), "--output", str(out)])
    shutil.rmtree(out / STATE / "evidence_files")
    again = ["--collection", str(folder), "--state", str(out), "--output", str(tmp_path / "new")]
    capsys.readouterr()
    assert main("ingest", again) == 4
    assert "evidence_files is missing" in capsys.readouterr().err


def test_a_state_goes_with_a_collection(capsys: pytest.CaptureFixture[str]) -> None:
    assert audit("--input", "x", "--state", "y", "--output", "z") == 2
    assert "--state requires --collection" in capsys.readouterr().err
