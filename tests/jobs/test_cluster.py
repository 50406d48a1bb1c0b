"""Real executors on one machine: the main job from the zip, and with two of them killed.

`local-cluster` starts a master, workers and executors as Spark's standalone mode does.
"""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow.dataset as ds
import pyspark
import pytest

from rebalance_core.cli.main import main
from rebalance_core.cli.run.java_home import require_java_home
from rebalance_core.contracts.run_names import ATTEMPTS
from tests.bare_python import bare_python
from tests.jobs.executors import LOOK_SECONDS, kill_busy
from tests.tree import TREE

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="finds processes in /proc"),
]

MASTER = "local-cluster[2,1,1024]"
FLEET = ["--groups", "300", "--seed", "5"]
PATIENCE_SECONDS = 20 * 60
STOP_SECONDS = 60
KILLED = 128 + signal.SIGKILL

Event = dict[str, Any]


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some hundred groups, so that tasks last long enough to be interrupted."""
    target = tmp_path_factory.mktemp("fleet") / "tables"
    assert main("generate", [*FLEET, "--output", str(target)]) == 0
    return target


@pytest.fixture(scope="module")
def expected(fleet: Path, tmp_path_factory: pytest.TempPathFactory) -> object:
    """Rows and digest of every table by a run inside one process."""
    target = tmp_path_factory.mktemp("local") / "ledger"
    assert main("simulate", ["--input", str(fleet), "--output", str(target)]) == 0
    return outputs(target)


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_executors_with_the_zip_alone_give_the_same_digests(
    fleet: Path, expected: object, tmp_path: Path
) -> None:
    with submitted(fleet, tmp_path) as job:
        log = finish(job, tmp_path)
    assert "ERROR" not in log
    assert outputs(tmp_path / "ledger") == expected
    tasks = [event for event in events(tmp_path) if event["Event"] == "SparkListenerTaskEnd"]
    assert {task["Task Info"]["Executor ID"] for task in tasks} == {"0", "1"}


@pytest.mark.timeout(PATIENCE_SECONDS)
def test_executors_killed_in_the_middle_of_tasks_change_nothing(
    fleet: Path, expected: object, tmp_path: Path
) -> None:
    target = tmp_path / "ledger"
    with submitted(fleet, tmp_path) as job:
        # while the input is read, and while tables are written: checked rows, shuffle files and
        # half-written files of the ledger are gone with it
        kill_busy_executor(job, lambda: True)
        kill_busy_executor(job, lambda: any((target / ATTEMPTS).glob("*/epochs/*")))
        assert not (target / "epochs").exists(), "too late: all is written"
        log = finish(job, tmp_path)
    assert log.count(f"Command exited with code {KILLED}") == 2
    ends = [event for event in events(tmp_path) if event["Event"] == "SparkListenerTaskEnd"]
    assert [end for end in ends if end["Task End Reason"]["Reason"] == "ExecutorLostFailure"]
    assert outputs(target) == expected
    assert not (target / ATTEMPTS).exists()
    for name, table in outputs(target).items():
        assert ds.dataset(target / name).count_rows() == table["rows"]


@contextmanager
def submitted(fleet: Path, folder: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The job under spark-submit; nothing of it is left running."""
    home, package, seen = folder / "spark", folder / "rebalance_core.zip", folder / "events"
    # workers write beside the jars: into this folder instead of the installed package
    home.mkdir()
    seen.mkdir()
    for path in Path(pyspark.__file__).parent.iterdir():
        (home / path.name).symlink_to(path)
    (home / "work").unlink(missing_ok=True)
    subprocess.run([sys.executable, TREE / "scripts/build_zip.py", package], check=True)
    # a copy: Python looks for modules beside the script it runs
    script = folder / "simulate.py"
    script.write_bytes((TREE / "jobs/simulate.py").read_bytes())
    settings = {
        "spark.ui.enabled": "false",
        "spark.driver.host": "127.0.0.1",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.dir": seen.as_uri(),
        "spark.eventLog.compress": "false",
        "spark.eventLog.rolling.enabled": "false",
    }
    command = [home / "bin/spark-submit", "--master", MASTER, "--py-files", package]
    command += [word for item in settings.items() for word in ("--conf", "=".join(item))]
    command += [script, "--input", fleet, "--output", folder / "ledger"]
    environment = os.environ | {
        "JAVA_HOME": str(require_java_home()),
        "SPARK_HOME": str(home),
        "SPARK_LOCAL_IP": "127.0.0.1",
        "SPARK_CONF_DIR": str(TREE / "conf"),
        "PYSPARK_PYTHON": str(bare_python(folder)),
        "PYTHONPATH": "",
    }
    with (folder / "log").open("w") as log:
        job = subprocess.Popen(
            list(map(str, command)), cwd=folder, env=environment, stdout=log, stderr=log
        )
    try:
        yield job
    finally:
        job.terminate()
        try:
            job.wait(STOP_SECONDS)
        except subprocess.TimeoutExpired:
            job.kill()  # executors end themselves when their driver is gone
            raise


def finish(job: subprocess.Popen[bytes], folder: Path) -> str:
    """What the job said; it must have ended well."""
    code = job.wait(PATIENCE_SECONDS)
    log = (folder / "log").read_text()
    assert code == 0, log[-5000:]
    return log


def outputs(target: Path) -> Any:
    return json.loads((target / "_run.json").read_text())["outputs"]


def events(folder: Path) -> list[Event]:
    """What Spark's own listeners saw."""
    (log,) = (folder / "events").iterdir()
    return [json.loads(line) for line in log.read_text().splitlines()]


def kill_busy_executor(job: subprocess.Popen[bytes], may: Callable[[], bool]) -> None:
    """Kill, once allowed, an executor in the middle of a task."""
    while job.poll() is None:
        if may() and kill_busy(job.pid):
            return
        time.sleep(LOOK_SECONDS)
    pytest.fail("the job ended before an executor could be killed")
