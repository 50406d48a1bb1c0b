"""The jobs as an operator starts them: processes, exit codes, stdout and stderr kept apart."""

import gzip
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pyspark
import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run.java_home import require_java_home
from tests.conftest import FAST_JVM, SESSION_SETTINGS
from tests.recordings.tables import DATA
from tests.tree import TREE

EVENTS: tuple[dict[str, object], ...] = (
    {"event_type": "BROKER_UP", "broker_name": "broker-a"},
    {
        "event_type": "TOPIC_CONFIG",
        "topic": "orders",
        "broker_name": "broker-a",
        "read_queue_nums": 4,
        "write_queue_nums": 4,
    },
    {
        "event_type": "CONSUMER_JOIN",
        "consumer_group": "order-service",
        "client_id": "10.0.0.1@1",
        "subscriptions": ["orders"],
    },
)

ROWS = "".join(f'{{"cluster": "c", "queue_id": {n}}}\n' for n in range(5000)).encode()
CHATTY = """
rootLogger.level = info
rootLogger.appenderRef.both.ref = both
appender.both.type = Console
appender.both.name = both
appender.both.target = SYSTEM_OUT
appender.both.layout.type = PatternLayout
appender.both.layout.pattern = chatty %p %c{1}: %m%n
"""

HOLD_A_LOCK = """
import signal, sys, time
from rebalance_core.cli import jobs
from rebalance_core.cli.jobs import Job
from rebalance_core.cli.options import JobOptions
from rebalance_core.cli.main import main
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.run.output_run import OutputRun

# a test run in the background of a script hands an ignored SIGINT down
signal.signal(signal.SIGINT, signal.default_int_handler)

class Hold(Job):
    def run(self, options, own_process=False):
        with OutputRun(typed_place(sys.argv[1]), "hold", options, {}, ["epochs"], "process"):
            print("held", file=sys.stderr, flush=True)
            time.sleep(60)

jobs.JOBS["hold"] = Hold("hold", JobOptions, "", ())
sys.exit(main("hold", []))
"""


@pytest.fixture
def tables(tmp_path: Path) -> Path:
    folder = tmp_path / "in"
    folder.mkdir()
    lines = [
        json.dumps({"cluster": "c", "event_ms": 1_700_000_000_000, "sequence": number, **event})
        + "\n"
        for number, event in enumerate(EVENTS)
    ]
    (folder / "cluster_events.jsonl").write_text("".join(lines))
    return folder


@pytest.fixture(scope="module")
def package_zip(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("dist") / "rebalance_core.zip"
    subprocess.run([sys.executable, TREE / "scripts/build_zip.py", target], check=True)
    return target


def run(
    *words: str | Path,
    path: Path = TREE,
    cwd: Path = TREE,
    environment: Mapping[str, str] | None = None,
) -> subprocess.CompletedProcess[str]:
    env = os.environ | {"PYTHONPATH": str(path)} | dict(environment or {})
    command = [sys.executable, *map(str, words)]
    return subprocess.run(command, cwd=cwd, env=env, capture_output=True, text=True, timeout=300)


def simulate(*words: str | Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return run(TREE / "jobs/simulate.py", *words, environment=environment)


def test_a_usage_error_ends_with_2() -> None:
    done = simulate("--inptu", "x")
    assert (done.returncode, done.stdout) == (2, "")
    assert "did you mean --input?" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_missing_input_ends_with_4(tmp_path: Path) -> None:
    done = simulate("--input", tmp_path / "none", "--output", tmp_path / "out")
    assert (done.returncode, done.stdout) == (4, "")
    assert not (tmp_path / "out").exists()


def test_a_foreign_output_ends_with_5_before_spark_starts(tmp_path: Path, tables: Path) -> None:
    done = simulate("--input", tables, "--output", tables, "--overwrite", JAVA_HOME="/none")
    assert (done.returncode, done.stdout) == (5, "")
    assert sorted(path.name for path in tables.iterdir()) == ["cluster_events.jsonl"]


def test_a_dry_run_prints_one_json_object_and_writes_nothing(tmp_path: Path, tables: Path) -> None:
    done = simulate("--input", tables, "--output", tmp_path / "out", "--dry-run", "--json")
    assert done.returncode == 0, done.stderr
    plan = json.loads(done.stdout)
    assert (plan["exit_code"], plan["refused"]) == (0, None)
    assert list(plan["inputs"]) == ["cluster_events"]
    assert plan["config"]["max_bad_share"] == 0.5
    assert not (tmp_path / "out").exists()


def test_results_that_are_not_read_to_their_end_are_no_error(tmp_path: Path, tables: Path) -> None:
    words = ["--input", tables, "--output", tmp_path / "out", "--json"]
    command = [sys.executable, TREE / "jobs/simulate.py", *words]
    with subprocess.Popen(
        list(map(str, command)), cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        process.stdout.close()
        assert process.stderr is not None
        told = process.stderr.read()
    assert process.returncode == 0, told
    assert told == "rebalance: simulating; inputs: cluster_events\n"


def test_the_zip_alone_holds_code_and_defaults(
    tmp_path: Path, tables: Path, package_zip: Path
) -> None:
    module = ("-m", "rebalance_core.cli.main", "simulate")
    words = ("--input", tables, "--output", tmp_path / "out", "--dry-run")
    done = run("-P", *module, *words, path=package_zip, cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "max_bad_share = 0.5" in done.stdout


def truncated(tmp_path: Path, tables: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """A job on a Spark whose logging is talkative, of a file that ends too early."""
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf/log4j2.properties").write_text(CHATTY)
    quick = "".join(f"{name} {value}\n" for name, value in SESSION_SETTINGS.items())
    (tmp_path / "conf/spark-defaults.conf").write_text(quick)
    (tables / "queue_offsets.jsonl.gz").write_bytes(gzip.compress(ROWS)[:-100])
    places = ("--input", tables, "--output", tmp_path / "out", "--run-on", "spark")
    return simulate(*places, *words, SPARK_CONF_DIR=str(tmp_path / "conf"))


def truncated_lines(tables: Path) -> list[str]:
    """What the job itself says of it."""
    return [
        "rebalance: simulating; inputs: cluster_events, queue_offsets",
        f"rebalance: {tables}/queue_offsets.jsonl.gz cannot be read: truncated gzip",
    ]


def test_the_terminal_shows_our_lines_alone(tmp_path: Path, tables: Path) -> None:
    quiet = truncated(tmp_path, tables)
    assert (quiet.returncode, quiet.stdout) == (4, "")
    assert quiet.stderr.splitlines() == truncated_lines(tables)


@pytest.mark.slow
def test_with_debug_the_terminal_shows_all(tmp_path: Path, tables: Path) -> None:
    """By default `--debug` is held below, of a JVM that does not start."""
    loud = truncated(tmp_path, tables, "--debug")
    assert (loud.returncode, loud.stdout) == (4, "")
    assert "chatty ERROR Executor" in loud.stderr  # PySpark sets a root level of INFO to WARN
    assert "Unexpected end of input stream" in loud.stderr
    # a task that is cancelled may be told of after the job has ended
    assert truncated_lines(tables)[-1] in loud.stderr


def test_a_jvm_that_does_not_start_has_its_say(tmp_path: Path, tables: Path) -> None:
    words = ("--input", tables, "--output", tmp_path / "out", "--run-on", "spark")
    done = simulate(*words, PYSPARK_SUBMIT_ARGS="--driver-memory 1k pyspark-shell")
    assert (done.returncode, done.stdout) == (1, "")
    assert "Too small maximum heap" in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stderr.splitlines()[-2].startswith("rebalance: Spark failed: [JAVA_GATEWAY_EXITED]")
    loud = simulate(*words, "--debug", PYSPARK_SUBMIT_ARGS="--driver-memory 1k pyspark-shell")
    assert loud.stderr.startswith("Error occurred during initialization of VM\nToo small maximum")
    assert "Traceback" in loud.stderr
    assert loud.stderr.splitlines()[-2:] == done.stderr.splitlines()[-2:]


def submit(package: Path, cwd: Path, *words: str | Path) -> subprocess.CompletedProcess[str]:
    """The main job under spark-submit, which finds the package in the zip alone."""
    tool = Path(pyspark.__path__[0]) / "bin/spark-submit"
    command = [tool, "--master", "local[*]", "--driver-java-options", FAST_JVM]
    command += ["--py-files", package, TREE / "jobs/simulate.py"]
    environment = os.environ | {
        "JAVA_HOME": str(require_java_home()),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(TREE / "conf"),
        "PYSPARK_PYTHON": sys.executable,
        "PYTHONPATH": "",
    }
    return subprocess.run(
        [*map(str, command), *map(str, words)],
        cwd=cwd,
        env=environment,
        capture_output=True,
        text=True,
        timeout=400,
        check=False,
    )


def test_spark_submit_with_the_zip_gives_the_same_digests(
    tmp_path: Path, package_zip: Path
) -> None:
    here, there = tmp_path / "here", tmp_path / "ledger"
    recorded = DATA / "join-leave" / "tables"
    assert main("simulate", ["--input", str(recorded), "--output", str(here)]) == 0
    done = submit(package_zip, tmp_path, "--input", recorded, "--output", there, "--json")
    assert done.returncode == 0, done.stderr[-3000:]
    records = [json.loads((folder / "_run.json").read_text()) for folder in (there, here)]
    assert records[0]["outputs"] == records[1]["outputs"]
    assert [record["run_on"] for record in records] == ["spark", "process"]
    # spark-submit hands on both streams of a Python program as stdout
    *said, last = done.stdout.splitlines()
    assert [line.partition(":")[0] for line in said] == ["rebalance"] * len(said)
    facts = json.loads(last)
    assert (facts["exit_code"], facts["run_on"]) == (0, "spark")


def test_spark_submit_hands_options_and_exit_code_through(
    tmp_path: Path, tables: Path, package_zip: Path
) -> None:
    words = ("--input", tables, "--output", tmp_path / "out", "--dry-run", "--engine", "fast")
    done = submit(package_zip, tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert "Dry run" not in done.stdout


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_releases_the_lock(tmp_path: Path, sent: signal.Signals, code: int) -> None:
    out = tmp_path / "out"
    command = [sys.executable, "-c", HOLD_A_LOCK, str(out)]
    with subprocess.Popen(
        command, cwd=TREE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        assert process.stderr.readline() == "held\n"
        process.send_signal(sent)
        process.communicate(timeout=30)
    assert process.returncode == code
    assert [path.name for path in out.iterdir()] == ["_run.json"]
    record = json.loads((out / "_run.json").read_text())
    assert (record["status"], record["exit_code"]) == ("FAILED", code)
