"""Spark Connect: the simulation from a process without a JVM, against a server of its own."""

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pyspark
import pytest

from rebalance_core.cli.run.jvm import require_java_home
from rebalance_core.cli.run.session import RESULT_SETTINGS
from rebalance_core.contracts import LEDGER_TABLES
from tests.bare_python import bare_python
from tests.conftest import SESSION_SETTINGS
from tests.recordings.tables import DATA, replayed
from tests.spark.test_simulate import by_text

TREE = Path(__file__).resolve().parents[2]
SERVER = "org.apache.spark.sql.connect.service.SparkConnectServer"
START_SECONDS = 120
STOP_SECONDS = 60
RECORDING = "join-leave"

# Half a minute on two busy cores, with a server of its own.
pytestmark = pytest.mark.slow


@pytest.fixture
def address(tmp_path: Path) -> Iterator[str]:
    """The address of a server whose workers do not have the package."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    settings = SESSION_SETTINGS | RESULT_SETTINGS | {
        "spark.connect.grpc.binding.address": "127.0.0.1",
        "spark.connect.grpc.binding.port": str(port),
        "spark.sql.warehouse.dir": str(tmp_path / "warehouse"),
    }  # fmt: skip
    command = [Path(pyspark.__file__).parent / "bin" / "spark-submit", "--master", "local[2]"]
    command += [word for item in settings.items() for word in ("--conf", "=".join(item))]
    environment = os.environ | {
        "JAVA_HOME": str(require_java_home()),
        "PYSPARK_PYTHON": str(bare_python(tmp_path)),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(TREE / "conf"),
        "PYTHONPATH": "",
    }
    log = tmp_path / "server.log"
    with log.open("w") as lines:
        server = subprocess.Popen(
            [*map(str, command), "--class", SERVER, "spark-internal"],
            cwd=tmp_path, env=environment, stdout=lines, stderr=lines,
        )  # fmt: skip
        try:
            wait_for(port, server, log)
            yield f"sc://127.0.0.1:{port}"
        finally:
            server.terminate()
            try:
                server.wait(STOP_SECONDS)
            except subprocess.TimeoutExpired:
                server.kill()
                raise


def wait_for(port: int, server: subprocess.Popen[bytes], log: Path) -> None:
    end = time.monotonic() + START_SECONDS
    while server.poll() is None and time.monotonic() < end:
        with socket.socket() as attempt:
            if attempt.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.2)
    pytest.fail(f"the server did not start:\n{log.read_text()[-3000:]}")


def test_a_connect_client_gets_the_rows_of_the_replay(address: str, tmp_path: Path) -> None:
    package = tmp_path / "rebalance_core.zip"
    subprocess.run([sys.executable, TREE / "scripts/build_zip.py", package], check=True)
    words = [address, package, DATA / RECORDING / "tables"]
    done = subprocess.run(
        [sys.executable, "-m", "tests.spark.connect_client", *map(str, words)],
        cwd=TREE, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[:3000]
    found, expected = json.loads(done.stdout), replayed(RECORDING)
    assert found.keys() == LEDGER_TABLES.keys()
    assert len(found["ownership"]) > 0
    for name in LEDGER_TABLES:
        assert by_text(found[name]) == by_text(expected[name]), name
