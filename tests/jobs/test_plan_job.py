"""The job `plan` end to end: tables, record, summary, refusals."""

import json
import shutil
import subprocess
import sys
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from io import StringIO
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.dataset as ds
import pytest

from rebalance_core.cli.main import main
from rebalance_core.contracts import PLAN_OUTPUT_TABLES
from rebalance_core.contracts.planning import LOSSES
from tests.plans import rows_of
from tests.recordings.tables import DATA
from tests.tree import TREE

Words = list[str]

STRICT = ["--set", "max_bad_share=0.0001"]
GROW = str(TREE / "rebalance_core/bundled/scenarios/add-consumers.toml")


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


def plain_types(schema: pa.Schema) -> list[tuple[str, pa.DataType]]:
    """Names and types; Spark's writer and Arrow's call the elements of a list otherwise."""
    return [
        (
            field.name,
            pa.list_(field.type.value_type) if pa.types.is_list(field.type) else field.type,
        )
        for field in schema
    ]


@pytest.fixture(scope="module")
def haunted(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A recording in front of which a member leaves that is not there."""
    folder = tmp_path_factory.mktemp("haunted") / "input"
    shutil.copytree(DATA / "join-leave" / "tables", folder)
    events = folder / "cluster_events.jsonl"
    good = events.read_text()
    leave = next(line for line in good.splitlines() if "CONSUMER_LEAVE" in line)
    ghost = json.loads(leave) | {"sequence": 9_999, "client_id": "ghost"}
    events.write_text(json.dumps(ghost) + "\n" + good)
    return folder


@dataclass(frozen=True)
class Made:
    """A plan of it, what the job said, and its words."""

    folder: Path
    facts: dict[str, Any]
    words: Words
    refusal: str
    """What an earlier run at the same folder said, which refused the bad row."""

    @property
    def record(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads((self.folder / "_run.json").read_text())
        return found


@pytest.fixture(scope="module")
def made(run_on: Words, haunted: Path, tmp_path_factory: pytest.TempPathFactory) -> Made:
    """Two scenarios, two strategies and rates; a stricter run at the same folder failed before."""
    folder = tmp_path_factory.mktemp("made")
    rates = folder / "queue_rates.jsonl"
    rates.write_text(
        "\n".join(
            json.dumps(
                {
                    "cluster": "DefaultCluster",
                    "topic": "OrderTopic",
                    "broker_name": broker,
                    "queue_id": queue,
                    "from_ms": 0,
                    "messages_per_second": 10.0,
                }
            )
            for broker in ("broker-a", "broker-b")
            for queue in range(4)
        )
    )
    expecting = folder / "grow.toml"
    expecting.write_text(f"{Path(GROW).read_text()}\n[[expect]]\npeak_queues = 100\n")
    output = folder / "plan"
    words = ["--input", str(haunted), "--output", str(output), "--json"]
    words += ["--scenario", str(expecting)]
    words += ["--strategy", "AVG", "--strategy", "STICKY_BALANCED", "--group", "order-*"]
    words += ["--holder-seeds", "2"]
    words += ["--queue-rates", str(rates), *run_on]
    said, refusal = StringIO(), StringIO()
    with redirect_stderr(refusal):
        strict = [*words[:4], "--scenario", GROW, *STRICT, *run_on]
        assert main("plan", strict) == 4
    with redirect_stdout(said):
        assert main("plan", [*words, "--overwrite"]) == 0
    return Made(output, json.loads(said.getvalue()), words, refusal.getvalue())


def test_a_plan_writes_its_tables_and_shows_the_best(made: Made, run_on: Words) -> None:
    output, facts, record = made.folder, made.facts, made.record
    assert (facts["variants"], facts["run_on"]) == (4, run_on[-1])
    assert [(s["scenario"], s["best"]) for s in facts["scenarios"]] == [
        ("baseline", "AVG"),
        ("add-consumers", "AVG"),
    ]
    assert "STICKY_BALANCED, which RocketMQ lacks" in facts["scenarios"][1]["possible"]
    assert (record["status"], record["job"], record["seed"]) == ("OK", "plan", 0)
    assert (record["run_on"], "spark" in record["versions"]) == (run_on[-1], run_on[-1] == "spark")
    assert set(record["outputs"]) == {*PLAN_OUTPUT_TABLES, "rejected"}
    for name, table in PLAN_OUTPUT_TABLES.items():
        assert plain_types(ds.dataset(output / name).schema) == plain_types(table.arrow_schema())
        rows = rows_of(output, name)
        assert len(rows) == record["outputs"][name]["rows"]
        assert (len(rows) > 0) == (table is not LOSSES)  # no scenario loses each
        assert len({tuple(row[column] for column in table.key) for row in rows}) == len(rows), name
        for column in table.columns:
            assert column.nullable or all(row[column.name] is not None for row in rows), column
    peaks = {
        (row["scenario"], row["strategy"]): row["peak_messages_per_second"]
        for row in rows_of(output, "plan_summary")
    }
    assert peaks["baseline", "AVG"] == 30.0
    assert peaks["add-consumers", "STICKY_BALANCED"] == 20.0
    assert main("plan", made.words) == 5


def test_events_of_a_member_that_is_not_there_are_rejected_and_counted(made: Made) -> None:
    assert made.record["rejected"] == {"UNKNOWN_MEMBER": 1}
    [row] = rows_of(made.folder, "rejected")
    assert (row["issues"][0]["code"], "ghost" in row["raw"]) == ("UNKNOWN_MEMBER", True)
    assert row["source"].endswith("cluster_events.jsonl:1")


def test_wrong_rates_and_scenarios_are_refused(
    run_on: Words, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(DATA / "join-leave" / "tables"), "--output", str(tmp_path / "plan")]
    words += run_on
    assert main("plan", [*words, "--scenario", str(tmp_path / "none.toml")]) == 2
    rates = tmp_path / "queue_rates.jsonl"
    rates.write_text(
        '{"cluster": "c", "topic": "T", "broker_name": "a", "queue_id": 0, '
        '"from_ms": 0, "messages_per_second": -1}'
    )
    for more in ([], ["--dry-run"]):
        assert main("plan", [*words, "--queue-rates", str(rates), *more]) == 4
        assert "0 or more" in capsys.readouterr().err
    assert (
        not (tmp_path / "plan" / "_run.json").exists()
        or json.loads((tmp_path / "plan" / "_run.json").read_text())["status"] == "FAILED"
    )


def test_too_many_bad_rows_refuse_a_plan(made: Made) -> None:
    assert "UNKNOWN_MEMBER 1, first cluster_events.jsonl:1:" in made.refusal
    words = [*made.words[:3], made.words[1], *made.words[4:]]
    assert main("plan", [*words, *STRICT, "--dry-run"]) == 5  # the input's folder


def test_a_dry_run_counts_what_a_run_refuses(
    run_on: Words,
    haunted: Path,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    before = kept(request, run_on)
    words = ["--input", str(haunted), "--output", str(tmp_path / "never"), "--scenario", GROW]
    assert main("plan", [*words, *STRICT, "--dry-run", "--json", *run_on]) == 4
    facts = json.loads(capsys.readouterr().out)
    assert facts["rows"]["cluster_events"]["bad"] == 1
    assert facts["refused"].startswith("cluster_events: 1 of")
    [complaint] = facts["complaints"]
    assert (complaint["code"], complaint["times"]) == ("UNKNOWN_MEMBER", 1)
    assert complaint["source"].startswith("cluster_events.jsonl:1")
    assert not (tmp_path / "never").exists()
    assert kept(request, run_on) == before


def kept(request: pytest.FixtureRequest, run_on: Words) -> int:
    """How many frames a session keeps."""
    if run_on[-1] == "process":
        return 0
    session = request.getfixturevalue("session_of_the_run")
    size: int = session.sparkContext._jsc.getPersistentRDDs().size()
    return size


@pytest.mark.unit
def test_a_dry_run_states_how_a_run_would_end(
    haunted: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--input", str(haunted), "--output", str(tmp_path / "never"), "--scenario", GROW]
    assert main("plan", [*words, *STRICT, "--dry-run"]) == 4
    told = capsys.readouterr().out
    assert "UNKNOWN_MEMBER 1, first cluster_events.jsonl:1:" in told
    assert "A run would end with exit code 4: cluster_events: 1 of" in told
    assert main("plan", [*words, "--dry-run", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["rows"]["cluster_events"]["bad"] == 1
    assert not (tmp_path / "never").exists()


@pytest.mark.unit
def test_a_plan_needs_no_pyspark(tmp_path: Path) -> None:
    blocked = "import sys; sys.modules['pyspark'] = sys.modules['py4j'] = None"
    words = ["plan", "--input", str(DATA / "join-leave" / "tables"), "--scenario", GROW]
    words += ["--output", str(tmp_path / "plan")]
    runs = [f"main(None, {[*words, *more]})" for more in (["--dry-run"], ["--strategy", "league"])]
    code = f"{blocked}; from rebalance_core.cli.main import main; sys.exit({' or '.join(runs)})"
    done = subprocess.run(
        [sys.executable, "-c", code], cwd=TREE, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert "in process)" in done.stdout
    assert json.loads((tmp_path / "plan" / "_run.json").read_text())["run_on"] == "process"


@pytest.mark.unit
def test_what_only_spark_reads_is_not_planned_in_process(
    capsys: pytest.CaptureFixture[str],
) -> None:
    words = ["--input", "abfs://bucket/tables", "--output", "here", "--run-on", "process"]
    assert main("plan", words) == 2
    assert "abfs://bucket/tables" in capsys.readouterr().err
