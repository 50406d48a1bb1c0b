"""Spark Connect: jobs from a process without a JVM, against a server of its own."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pyspark
import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run.java_home import require_java_home
from rebalance_core.cli.run.session import RESULT_SETTINGS
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.storage.package_zip import write_package
from tests.bare_python import bare_python
from tests.conftest import SESSION_SETTINGS
from tests.recordings.tables import DATA, replayed
from tests.spark.test_simulate import by_text
from tests.tree import TREE

SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
JAR_OF_3_5 = "org.apache.spark:spark-connect_2.12:3.5.7"
"""Not of every 3.5 there is; it serves all of them."""
START_SECONDS = 120
STOP_SECONDS = 60
RECORDING = "join-leave"
STEADY = TREE / "rebalance_core/bundled/demo/steady/tables"
SCENARIO = TREE / "rebalance_core/bundled/scenarios/add-consumers.toml"
JOBS: dict[str, tuple[object, ...]] = {
    "simulate": ("--input", TREE / "rebalance_core/bundled/demo/join-leave/tables"),
    "generate": ("--groups", 20, "--seed", 5),
    "ingest": ("--collection", DATA / "pathologies/collection"),
    "audit": ("--collection", DATA / "nightly/collection"),
    "plan": ("--input", STEADY, "--scenario", SCENARIO, "--strategy", "league"),
    "propagate": ("--input", STEADY, "--seeds", 2),
    "producers": ("--model", TREE / "rebalance_core/bundled/producers/brown-out.toml"),
}
TRACE = re.compile(r"^\s+at [\w.$]+\(|Exception: ", re.MULTILINE)
"""A line of a Java trace, or its head."""

# Minutes on two busy cores, with a server of its own.
pytestmark = pytest.mark.slow


@dataclass(frozen=True)
class Server:
    """A Connect server: where it is, and what it printed."""

    address: str
    log: Path


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """A server whose workers do not have the package."""
    folder = tmp_path_factory.mktemp("connect")
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = (
        SESSION_SETTINGS
        | RESULT_SETTINGS
        | {
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": str(port),
            "spark.sql.warehouse.dir": str(folder / "warehouse"),
        }
    )
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
    command += [word for item in settings.items() for word in ("--conf", "=".join(item))]
    if pyspark.__version__.startswith("3."):  # from 4.0 on it comes with pyspark
        command += ["--packages", JAR_OF_3_5]
    environment = os.environ | {
        "JAVA_HOME": str(require_java_home()),
        "PYSPARK_PYTHON": str(bare_python(folder)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(TREE / "conf"),
        "PYTHONPATH": "",
    }
    log = folder / "server.log"
    with log.open("w") as lines:
        process = subprocess.Popen(
            [*map(str, command), "--class", SERVER, "spark-internal"],
            cwd=folder, env=environment, stdout=lines, stderr=lines,
        )  # fmt: skip
        try:
            wait_for(port, process, log)
            yield Server(f"sc://127.0.0.1:{port}", log)
        finally:
            process.terminate()
            try:
                process.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                process.kill()
                raise


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


def client(*words: object, **environment: str) -> subprocess.CompletedProcess[str]:
    """A process of its own: one has either a JVM or a Connect session."""
    return subprocess.run(
        [sys.executable, "-m", *map(str, words)], cwd=TREE, env=os.environ | environment,
        capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip


def test_a_connect_client_gets_the_rows_of_the_replay(server: Server, tmp_path: Path) -> None:
    package = tmp_path / "rebalance_core.zip"
    write_package(package)
    done = client(
        "tests.spark.connect_client", server.address, package, DATA / RECORDING / "tables"
    )
    assert done.returncode == 0, done.stderr[:3000]
    found, expected = json.loads(done.stdout), replayed(RECORDING)
    assert found.keys() == LEDGER_TABLES.keys()
    assert len(found["ownership"]) > 0
    for name in LEDGER_TABLES:
        assert by_text(found[name]) == by_text(expected[name]), name


@pytest.mark.parametrize("job", JOBS)
def test_a_job_leaves_what_it_leaves_in_a_process(server: Server, job: str, tmp_path: Path) -> None:
    words = (job, *JOBS[job])
    before = len(server.log.read_text())
    cli = "rebalance_core.cli.main"
    done = client(cli, *words, "--output", tmp_path / "connect", "--master", server.address)
    here = main(None, [*map(str, words), "--run-on", "process", "--output", str(tmp_path / "here")])
    assert done.returncode == here, done.stderr[:3000]
    connect, process = (record(tmp_path / name) for name in ("connect", "here"))
    assert connect["outputs"] == process["outputs"]
    assert connect["run_on"] == "spark"
    assert not TRACE.search(done.stderr)
    assert not TRACE.search(server.log.read_text()[before:])


def record(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "_run.json").read_text())
    return found


def test_a_remote_in_the_environment_is_where_jobs_run(server: Server, tmp_path: Path) -> None:
    words = ("generate", "--groups", 2, "--output", tmp_path / "out")
    done = client("rebalance_core.cli.main", *words, SPARK_REMOTE=server.address)
    assert done.returncode == 0, done.stderr[:3000]
    assert record(tmp_path / "out")["run_on"] == "spark"


def test_what_a_server_cannot_reach_is_said(server: Server, tmp_path: Path) -> None:
    words = ("generate", "--groups", 2, "--output", "hdfsx://host/out", "--master", server.address)
    done = client("rebalance_core.cli.main", *words)
    assert done.returncode == 2
    assert "which Spark Connect does not have; name a folder that this host and the" in done.stderr
