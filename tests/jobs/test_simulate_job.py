"""The main job end to end: ledger, record, gate for bad rows.

What a run leaves and says is looked at on Spark where it is made once; messages are those of a
process, where a test compares both.
"""

import json
from contextlib import redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.run.run_record import read_run
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark import Ledger
from tests.recordings.tables import DATA, replayed

Words = list[str]

HERE = ["--run-on", "process"]
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


@dataclass(frozen=True)
class Overwritten:
    """A ledger of the demo's recording, and the tables of the earlier one that it replaced."""

    folder: Path
    replaced: object


@pytest.fixture(scope="module")
def overwritten(run_on: Words, tmp_path_factory: pytest.TempPathFactory) -> Overwritten:
    """A ledger by a process, then one at the same folder where the test runs."""
    target = tmp_path_factory.mktemp("job") / "ledger"
    words = ["--input", str(TABLES), "--output", str(target)]
    assert main("simulate", [*words, *HERE]) == 0
    before = record(target)["outputs"]
    assert main("simulate", [*words, *run_on]) == 5
    assert main("simulate", [*words, *run_on, "--overwrite"]) == 0
    return Overwritten(target, before)


@pytest.fixture
def output(overwritten: Overwritten) -> Path:
    """The ledger of the demo's recording."""
    return overwritten.folder


@pytest.fixture(scope="module")
def dirty(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The demo's input with every kind of bad event in front."""
    folder = tmp_path_factory.mktemp("dirty")
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


@dataclass(frozen=True)
class Ran:
    """What a run of the dirty input left and said."""

    folder: Path
    facts: dict[str, Any]


def ran(dirty: Path, target: Path, run_on: Words) -> Ran:
    said = StringIO()
    with redirect_stdout(said):
        words = ["--input", str(dirty), "--output", str(target), "--json", *run_on]
        assert main("simulate", words) == 0
    return Ran(target, json.loads(said.getvalue()))


@pytest.fixture(scope="module")
def used(run_on: Words, dirty: Path, tmp_path_factory: pytest.TempPathFactory) -> Ran:
    """A run of the dirty input, made once."""
    return ran(dirty, tmp_path_factory.mktemp("used") / "ledger", run_on)


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


def test_the_ledger_reads_back_and_its_record_shows_the_rows(run_on: Words, output: Path) -> None:
    ledger, expected = ledger_of(output), replayed("join-leave")
    outputs = record(output)["outputs"]
    assert isinstance(outputs, dict)
    for name, table in LEDGER_TABLES.items():
        assert ledger[name].schema.equals(table.arrow_schema())
        assert ledger[name].num_rows == len(expected[name]) == outputs[name]["rows"]
    assert record(output)["status"] == "OK"
    assert record(output)["run_on"] == run_on[-1]
    stages = record(output)["stages"]
    assert [stage["stage"].split()[0] for stage in stages] == (
        ["check", "make", "simulate"] if run_on[-1] == "spark" else []
    )
    for stage in stages[-1:]:
        rows = sum(table["rows"] for table in record(output)["outputs"].values())
        assert stage["rows_out"] == rows
        assert 0 < stage["rows_in"] < stages[0]["rows_in"] + stages[-1]["rows_out"]


def test_a_second_run_needs_overwrite_and_gives_the_same_digests(overwritten: Overwritten) -> None:
    assert record(overwritten.folder)["outputs"] == overwritten.replaced


def test_every_bad_row_is_named_with_its_line_and_the_rest_is_used(used: Ran) -> None:
    ledger = ledger_of(used.folder)
    found = {
        int(row["source"].rsplit(":", 1)[1]): row["issues"][0]["code"]
        for row in ledger["rejected"].to_pylist()
    }
    assert found == {line: code for line, (code, _) in REJECTED_LINES.items()}
    assert used.facts["rejected_rows"] == len(REJECTED_LINES)
    assert ledger["epochs"].num_rows == len(replayed("join-leave")["epochs"])


def test_both_give_the_same_digests(
    used: Ran, run_on: Words, request: pytest.FixtureRequest, dirty: Path, tmp_path: Path
) -> None:
    """On Spark: beside a run in a process, and read back there."""
    here = ran(dirty, tmp_path / "here", HERE).folder
    for name in ("outputs", "rejected", "inputs"):
        assert record(used.folder)[name] == record(here)[name], name
    if run_on[-1] == "spark":
        session = request.getfixturevalue("session_of_the_run")
        for folder in (used.folder, here):
            frames = Ledger.read(session, str(folder)).frames()
            rows = {name: table["rows"] for name, table in record(folder)["outputs"].items()}
            assert {name: frame.count() for name, frame in frames.items()} == rows


def test_a_gate_refuses_bad_rows_and_leaves_the_earlier_result(
    run_on: Words, dirty: Path, output: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(dirty), "--output", str(output), "--overwrite", *run_on]
    before = record(output)
    assert main("simulate", [*words, "--max-bad-share", "0.1"]) == 4
    assert "rows are bad" in capsys.readouterr().err
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
    assert record(target)["run_on"] == run_on[-1]
    assert [path.name for path in target.iterdir()] == ["_run.json"]
    with pytest.raises(InputRefused, match="failed"):
        read_run(typed_place(str(target)))


def dry_run(dirty: Path, run_on: Words, capsys: pytest.CaptureFixture[str]) -> dict[str, Any]:
    """8 of 20 rows pass the first gate, the ninth is found by the replay."""
    target = dirty.parent / "never"
    words = ["simulate", "--input", str(dirty), "--output", str(target), *run_on]
    assert main(None, [*words, "--max-bad-share", "0.4", "--dry-run", "--json"]) == 4
    assert not target.exists()
    facts: dict[str, Any] = json.loads(capsys.readouterr().out)
    return facts


def test_a_dry_run_counts_what_a_run_refuses(
    run_on: Words, dirty: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    facts = dry_run(dirty, run_on, capsys)
    assert facts["exit_code"] == 4
    assert "9 of 20 rows are bad" in facts["refused"]
    assert facts["rows"]["cluster_events"] == {"rows": 20, "bad": 9}  # UNKNOWN_MEMBER too
    codes = {one["code"]: one["times"] for one in facts["complaints"]}
    assert codes == {
        "BAD_QUEUE_NUMS": 2,
        "DUPLICATE_KEY": 2,
        "BAD_TYPE": 1,
        "MISSING_VALUE": 1,
        "UNKNOWN_EVENT_TYPE": 1,
        "UNKNOWN_MEMBER": 1,
        "UNPARSABLE": 1,
    }
    here = dry_run(dirty, ["--run-on", "process"], capsys)
    differ = {name for name in facts if facts[name] != here.get(name)}
    assert facts.keys() == here.keys()
    assert differ <= {"run_on"}


@pytest.mark.unit
def test_a_dry_run_that_refuses_nothing(
    dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    words = ["--input", str(dirty), "--output", str(target), "--dry-run", "--json", *HERE]
    assert main("simulate", words) == 0
    counted = json.loads(capsys.readouterr().out)["rows"]["cluster_events"]
    assert counted == {"rows": 20, "bad": 9}
    assert not target.exists()


@pytest.mark.unit
def test_a_dry_run_ends_as_the_run_would(
    dirty: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "out"
    words = ["simulate", "--input", str(dirty), "--output", str(target), *HERE]
    for more in (["--on-bad-rows", "fail"], ["--max-bad-share", "0.4"]):
        assert main(None, [*words, *more, "--dry-run"]) == 4
        told = capsys.readouterr().out
        assert "DUPLICATE_KEY 2, first cluster_events.jsonl:7: 2 rows with different" in told
        assert main(None, [*words, *more]) == 4
        first, *reasons = capsys.readouterr().err.splitlines()[1:]
        assert f"A run would end with exit code 4: {first.removeprefix('rebalance: ')}" in told
        assert "rebalance:   BAD_QUEUE_NUMS 2, first cluster_events.jsonl:4: read_q" in reasons[0]


def test_a_dry_run_of_an_empty_input_is_refused(
    run_on: Words, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tables = tmp_path / "tables"
    tables.mkdir()
    (tables / "cluster_events.jsonl").write_text("")
    words = ["simulate", "--input", str(tables), "--output", str(tmp_path / "out"), *run_on]
    assert main(None, [*words, "--dry-run"]) == main(None, words) == 4
    assert "cluster_events has no row" in capsys.readouterr().out
