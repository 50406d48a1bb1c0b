"""The main job end to end: ledger, record, gate for bad rows, and the zip through spark-submit."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pyspark
import pytest
from pyspark.sql import SparkSession

from rebalance_core.cli.main import main
from rebalance_core.cli.run.output_folder import LocalFolder
from rebalance_core.cli.run.run_record import read_run
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark import Ledger
from tests.recordings.tables import DATA, replayed

Words = list[str]

TREE = Path(__file__).resolve().parents[2]
TABLES = DATA / "join-leave" / "tables"
REJECTED_LINES = {
    1: ("UNPARSABLE", "{not json"),
    2: ("UNKNOWN_EVENT_TYPE", {"event_type": "CONSUMER_JOINED"}),
    3: ("MISSING_VALUE", {"event_type": "CONSUMER_JOIN", "consumer_group": "order-service"}),
    4: ("BAD_QUEUE_NUMS", {"read_queue_nums": -1}),
    5: ("BAD_QUEUE_NUMS", {"read_queue_nums": 2_000_000_000}),
    6: ("BAD_TYPE", {"event_ms": "yesterday"}),
    7: ("DUPLICATE_KEY", {"sequence": 9_999, "read_queue_nums": 4}),
    8: ("DUPLICATE_KEY", {"sequence": 9_999, "read_queue_nums": 8}),
    9: (
        "UNKNOWN_MEMBER",
        {"event_type": "CONSUMER_LEAVE", "consumer_group": "order-service", "client_id": "ghost"},
    ),
}


@pytest.fixture(
    scope="module",
    params=[
        pytest.param("process", marks=pytest.mark.unit),
        pytest.param("spark", marks=pytest.mark.jobs),
    ],
)
def run_on(request: pytest.FixtureRequest) -> Words:
    """Where a job runs: in this process, and in the session of the test run."""
    if request.param == "spark":
        request.getfixturevalue("session_of_the_run")
    return ["--run-on", request.param]


@pytest.fixture(scope="module")
def output(run_on: Words, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The ledger of the demo's recording, made once."""
    target = tmp_path_factory.mktemp("job") / "ledger"
    assert main("simulate", ["--input", str(TABLES), "--output", str(target), *run_on]) == 0
    return target


@pytest.fixture
def dirty(tmp_path: Path) -> Path:
    """The demo's input with every kind of bad event in front."""
    folder = tmp_path / "dirty"
    folder.mkdir()
    for path in TABLES.iterdir():
        (folder / path.name).write_text(path.read_text())
    good = (TABLES / "cluster_events.jsonl").read_text()
    config = json.loads(good.splitlines()[2])
    lines = [
        bad if isinstance(bad, str) else json.dumps(config | {"sequence": 100 + number} | bad)
        for number, (_, bad) in REJECTED_LINES.items()
    ]
    (folder / "cluster_events.jsonl").write_text("\n".join(lines) + "\n" + good)
    return folder


def ledger_of(folder: Path) -> dict[str, pa.Table]:
    """The tables as written, with the contract's columns."""
    return {
        name: ds.dataset(folder / name).to_table(columns=list(table.column_names))
        for name, table in LEDGER_TABLES.items()
    }


def record(folder: Path) -> dict[str, Any]:
    loaded = json.loads((folder / "_run.json").read_text())
    assert isinstance(loaded, dict)
    return loaded


def test_the_ledger_reads_back_and_its_record_tells_the_rows(run_on: Words, output: Path) -> None:
    ledger, expected = ledger_of(output), replayed("join-leave")
    outputs = record(output)["outputs"]
    assert isinstance(outputs, dict)
    for name, table in LEDGER_TABLES.items():
        assert ledger[name].schema.equals(table.arrow_schema())
        assert ledger[name].num_rows == len(expected[name]) == outputs[name]["rows"]
    assert record(output)["status"] == "OK"
    assert record(output)["run_on"] == run_on[-1]


def test_both_give_the_same_digests(
    session_of_the_run: SparkSession, dirty: Path, tmp_path: Path
) -> None:
    outputs = {}
    for place in ("process", "spark"):
        words = ["--input", str(dirty), "--output", str(tmp_path / place), "--run-on", place]
        assert main("simulate", words) == 0
        outputs[place] = {k: record(tmp_path / place)[k] for k in ("outputs", "rejected", "inputs")}
    assert outputs["process"] == outputs["spark"]
    for place, made in outputs.items():
        frames = Ledger.read(session_of_the_run, str(tmp_path / place)).frames()
        rows = {name: table["rows"] for name, table in made["outputs"].items()}
        assert {name: frame.count() for name, frame in frames.items()} == rows


def test_a_second_run_needs_overwrite_and_gives_the_same_digests(
    run_on: Words, output: Path
) -> None:
    words = ["--input", str(TABLES), "--output", str(output), *run_on]
    before = record(output)["outputs"]
    assert main("simulate", words) == 5
    assert main("simulate", [*words, "--overwrite"]) == 0
    assert record(output)["outputs"] == before


def test_every_bad_row_is_named_with_its_line_and_the_rest_is_used(
    run_on: Words, dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    words = ["--input", str(dirty), "--output", str(target), "--json", *run_on]
    assert main("simulate", words) == 0
    facts = json.loads(capsys.readouterr().out)
    ledger = ledger_of(target)
    found = {
        int(row["source"].rsplit(":", 1)[1]): row["issues"][0]["code"]
        for row in ledger["rejected"].to_pylist()
    }
    assert found == {line: code for line, (code, _) in REJECTED_LINES.items()}
    assert facts["rejected_rows"] == len(REJECTED_LINES)
    assert ledger["epochs"].num_rows == len(replayed("join-leave")["epochs"])


def test_a_gate_refuses_bad_rows_and_leaves_the_earlier_result(
    run_on: Words, dirty: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(dirty), "--output", str(output), "--overwrite", *run_on]
    before = record(output)
    assert main("simulate", [*words, "--on-bad-rows", "fail"]) == 4
    assert "rows are bad" in capsys.readouterr().err
    assert main("simulate", [*words, "--max-bad-share", "0.1"]) == 4
    assert record(output) == before


def test_a_row_only_the_replay_rejects_fails_a_strict_run_and_leaves_no_result(
    run_on: Words, tmp_path: Path
) -> None:
    lines = (TABLES / "cluster_events.jsonl").read_text().splitlines()
    ghost = json.loads(lines[-1]) | {"sequence": 10**6, "client_id": "ghost"}
    ghost |= {"event_type": "CONSUMER_LEAVE"}
    events = tmp_path / "events.jsonl"
    events.write_text("\n".join([*lines, json.dumps(ghost)]) + "\n")
    target = tmp_path / "out"
    words = ["--events", str(events), "--output", str(target), "--on-bad-rows", "fail"]
    assert main("simulate", [*words, *run_on]) == 4
    assert record(target)["status"] == "FAILED"
    assert [path.name for path in target.iterdir()] == ["_run.json"]
    with pytest.raises(InputRefused, match="failed"):
        read_run(LocalFolder(str(target)))


def test_a_dry_run_counts_and_writes_nothing(
    run_on: Words, dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    words = ["--input", str(dirty), "--output", str(target), "--dry-run", "--json", *run_on]
    assert main("simulate", words) == 0
    counted = json.loads(capsys.readouterr().out)["rows"]["cluster_events"]
    assert counted == {"rows": 20, "bad": 9}  # UNKNOWN_MEMBER too
    assert not target.exists()


def test_a_dry_run_ends_as_the_run_would(
    run_on: Words, dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    words = ["simulate", "--input", str(dirty), "--output", str(target), *run_on]
    for more in (["--on-bad-rows", "fail"], ["--max-bad-share", "0.4"]):
        assert main(None, [*words, *more, "--dry-run"]) == 4
        told = capsys.readouterr().out
        assert "DUPLICATE_KEY 2, first cluster_events.jsonl:7: 2 rows with different" in told
        assert main(None, [*words, *more]) == 4
        first, *reasons = capsys.readouterr().err.splitlines()[1:]
        assert f"A run would end with exit code 4: {first.removeprefix('rebalance: ')}" in told
        assert "rebalance:   BAD_QUEUE_NUMS 2, first cluster_events.jsonl:4: read_q" in reasons[0]
    # 8 of 20 rows pass the first gate, the ninth is found by the replay
    assert main(None, [*words, "--max-bad-share", "0.4", "--dry-run", "--json"]) == 4
    facts = json.loads(capsys.readouterr().out)
    assert facts["exit_code"] == 4
    assert "9 of 20 rows are bad" in facts["refused"]
    codes = {one["code"]: one["times"] for one in facts["complaints"]}
    assert codes == {"BAD_QUEUE_NUMS": 2, "DUPLICATE_KEY": 2, "BAD_TYPE": 1, "MISSING_VALUE": 1,
                     "UNKNOWN_EVENT_TYPE": 1, "UNKNOWN_MEMBER": 1, "UNPARSABLE": 1}  # fmt: skip


def test_a_dry_run_of_an_empty_input_is_refused(
    run_on: Words, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "cluster_events.jsonl").write_text("")
    words = ["simulate", "--input", str(tmp_path), "--output", str(tmp_path / "out"), *run_on]
    assert main(None, [*words, "--dry-run"]) == main(None, words) == 4
    assert "cluster_events holds no row" in capsys.readouterr().out


def test_spark_submit_with_the_zip_gives_the_same_digests(tmp_path: Path) -> None:
    here = tmp_path / "here"
    assert main("simulate", ["--input", str(TABLES), "--output", str(here)]) == 0
    package = tmp_path / "rebalance_core.zip"
    subprocess.run([sys.executable, TREE / "scripts/build_zip.py", package], check=True)
    target = tmp_path / "ledger"
    submit = Path(pyspark.__file__).parent / "bin" / "spark-submit"
    command = [
        submit, "--master", "local[*]", "--py-files", package, TREE / "jobs/simulate.py",
        "--input", TABLES, "--output", target,
    ]  # fmt: skip
    environment = os.environ | {
        "PYSPARK_PYTHON": sys.executable,
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(TREE / "conf"),
        "PYTHONPATH": "",
    }
    done = subprocess.run(
        list(map(str, command)), cwd=tmp_path, env=environment, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert record(target)["outputs"] == record(here)["outputs"]
    assert (record(target)["run_on"], record(here)["run_on"]) == ("spark", "process")
