"""The job `generate` end to end: tables, record, refusals, and that `simulate` takes its output."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import INPUT_TABLES
from tests.tree import TREE

FLEET = ["--groups", "12", "--days", "1", "--seed", "16"]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A small fleet, made once."""
    target = tmp_path_factory.mktemp("job") / "fleet"
    assert main("generate", [*FLEET, "--output", str(target)]) == 0
    return target


def record(folder: Path) -> dict[str, Any]:
    loaded = json.loads((folder / "_run.json").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_the_record_shows_the_seed_and_the_rows(output: Path) -> None:
    told = record(output)
    assert (told["status"], told["job"], told["seed"]) == ("OK", "generate", 16)
    assert told["run_on"] == "process"
    assert set(told["outputs"]) == set(INPUT_TABLES)
    for name, table in told["outputs"].items():
        assert pq.read_table(output / name).num_rows == table["rows"] > 0


def test_the_same_seed_gives_the_same_digests_and_another_one_others(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = record(output)["outputs"]
    assert main("generate", [*FLEET, "--output", str(output)]) == 5
    assert "--overwrite" in capsys.readouterr().err
    assert main("generate", [*FLEET, "--output", str(output), "--overwrite", "--json"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"] == {name: table["rows"] for name, table in before.items()}
    assert sum(facts["events_by_type"].values()) == facts["rows"]["cluster_events"]
    assert record(output)["outputs"] == before
    other = [*FLEET[:-1], "17", "--output", str(tmp_path / "other")]
    assert main("generate", other) == 0
    after = record(tmp_path / "other")["outputs"]
    assert all(after[name]["digest"] != before[name]["digest"] for name in INPUT_TABLES)


def test_simulate_reads_it_as_it_is_and_rejects_no_row(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(output), "--output", str(tmp_path / "ledger"), "--json"]
    assert main("simulate", [*words, "--on-bad-rows", "fail"]) == 0
    facts = json.loads(capsys.readouterr().out)
    assert (facts["groups"], facts["rejected_rows"]) == (12, 0)


def test_settings_change_the_plan(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    words = ["--groups", "100", "--output", str(tmp_path / "x"), "--dry-run", "--json"]
    settings = ["generate.groups_per_cluster=30", "generate.offset_hours=12"]
    settings.append("generate.start_ms=946684800000")  # the first time that simulate takes
    assert main("generate", [*words, *(w for s in settings for w in ("--set", s))]) == 0
    plan = json.loads(capsys.readouterr().out)["plan"]
    assert (plan["clusters"], plan["offset_looks"], plan["start_ms"]) == (
        4,
        3,
        946684800000,
    )
    assert main("generate", [*words, "--set", "generate.offset_hours=0"]) == 2


def test_a_dry_run_shows_the_plan_and_writes_nothing(
    output: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    assert main("generate", ["--groups", "10000", "--output", str(target), "--dry-run"]) == 0
    lines = [line.split() for line in capsys.readouterr().out.splitlines()]
    assert ["clusters", "20"] in lines
    assert ["offset_looks", "4"] in lines
    assert not target.exists()
    assert main("generate", [*FLEET, "--output", str(output), "--dry-run"]) == 5


def test_the_entry_script_runs_the_job(tmp_path: Path) -> None:
    command = [sys.executable, TREE / "jobs/generate.py", "--groups", "5", "--dry-run"]
    done = subprocess.run(
        [*map(str, command), "--output", str(tmp_path / "out")],
        env=os.environ | {"PYTHONPATH": str(TREE)},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Dry run" in done.stdout


def test_every_wrong_option_is_named_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    assert main("generate", ["--groups", "-4", "--days", "0", "--seed", "x"]) == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    for option in ("--groups -4", "--days 0", "--seed x", "--output DIR"):
        assert option in printed.err
    assert main("generate", ["--output", "x"]) == 2
    assert "--groups is missing" in capsys.readouterr().err


def test_a_folder_of_another_owner_is_never_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("keep")
    assert main("generate", [*FLEET, "--output", str(tmp_path), "--overwrite"]) == 5
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
