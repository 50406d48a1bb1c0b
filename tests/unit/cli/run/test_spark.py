"""Progress of a run on Spark by its status tracker, and failures in a sentence."""

import sys
import threading
from types import SimpleNamespace
from typing import Any

import pytest

from rebalance_core.cli import terminal
from rebalance_core.cli.run.on_spark import spark_progress, tasks_of
from rebalance_core.cli.run.spark_failure import explain_spark_failure, is_spark_failure


class Tracker:
    """A job of two stages, the second not begun, and one that ended just now."""

    def __init__(self) -> None:
        self.asked = threading.Event()

    def getActiveJobsIds(self) -> list[int]:  # noqa: N802  # Spark's name
        self.asked.set()
        return [3, 4]

    def getJobInfo(self, job: int) -> Any:  # noqa: N802  # Spark's name
        return SimpleNamespace(stageIds=[7, 8]) if job == 3 else None

    def getStageInfo(self, stage: int) -> Any:  # noqa: N802  # Spark's name
        if stage == 8:
            return None
        return SimpleNamespace(numTasks=40, numCompletedTasks=12)


def session_of(tracker: Tracker) -> Any:
    return SimpleNamespace(sparkContext=SimpleNamespace(statusTracker=lambda: tracker))


def test_tasks_of_all_stages_that_are_known() -> None:
    assert tasks_of(Tracker()) == (12, 40)


def test_a_line_is_said_where_no_terminal_watches(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_LOG_SECONDS", 0.0)
    tracker = Tracker()
    with spark_progress(session_of(tracker), every=0.001):
        assert tracker.asked.wait(10)
    assert "12 of 40 tasks (30%)" in capsys.readouterr().err


def test_on_a_terminal_spark_shows_its_own_bar(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with spark_progress(None):
        pass


def test_a_tracker_that_fails_does_not_end_the_run(capsys: pytest.CaptureFixture[str]) -> None:
    tracker = Tracker()
    monkeypatched = session_of(tracker)
    tracker.getJobInfo = None  # type: ignore[assignment,method-assign]  # calling it raises
    with spark_progress(monkeypatched, every=0.001):
        assert tracker.asked.wait(10)
    assert capsys.readouterr().err == ""


IN_A_WORKER = """
  An exception was thrown from the Python worker. Please see the stack trace below.
Traceback (most recent call last):
  File "/tmp/rebalance_core/kernels/avg.py", line 3, in kernel
    raise InputRefused("no broker")
rebalance_core.model.errors.{0}: {1}

\tat org.apache.spark.api.python.BasePythonRunner.handle(PythonRunner.scala:1)
Caused by: java.io.IOException: stream
"""


@pytest.mark.parametrize(
    ("text", "line", "exit_code"),
    [
        (IN_A_WORKER.format("InputRefused", "no broker"), "InputRefused: no broker", 4),
        (IN_A_WORKER.format("KeyError", "'x'"), "KeyError: 'x'", 1),
        ("[PATH_NOT_FOUND] Path does not exist: file:/x.\nmore", "[PATH_NOT_FOUND] Path does", 4),
        (
            "An error occurred while calling o5.load.\n: java.lang.OutOfMemoryError: heap\n\tat x",
            ": java.lang.OutOfMemoryError: heap"[2:],
            1,
        ),
        ("java.io.IOException: No space left on device", "java.io.IOException: No space", 2),
        ("java.io.IOException: Disk quota exceeded", "java.io.IOException: Disk quota", 2),
        ("java.io.IOException: File too large", "java.io.IOException: File too large", 2),
        ('No FileSystem for scheme "s3"', 'No FileSystem for scheme "s3"', 2),
        (
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.gs.X not found",
            "java.lang.ClassNotFoundException: Class org.apache.hadoop.fs.gs.X",
            2,
        ),
        ("java.net.UnknownHostException: nn", "java.net.UnknownHostException: nn", 2),
        ("", "Spark gave no message", 1),
        (
            "Job aborted.\n\tat x\nCaused by: a.B: first\n\tat y\nCaused by: java.net.E: refused",
            "Job aborted.; caused by java.net.E: refused",
            1,
        ),
        ("FileNotFoundError: [Errno 2] No such file: '/x'", "FileNotFoundError: [Errno 2]", 2),
    ],
)
def test_the_one_line_that_matters(text: str, line: str, exit_code: int) -> None:
    failure = explain_spark_failure(Exception(text))
    assert failure.line.startswith(line)
    assert failure.exit_code == exit_code


def test_what_the_operator_reads() -> None:
    text = "[FAILED_READ_FILE.NO_HINT] Encountered error while reading file file:///a.gz. SQLSTATE"
    refused = explain_spark_failure(Exception(f"{text}\nCaused by: java.io.EOFException"))
    assert (str(refused), refused.exit_code) == ("/a.gz cannot be read: truncated gzip", 4)
    died = explain_spark_failure(Exception("Error while sending or receiving"))
    assert str(died).splitlines() == [
        "Spark failed: Error while sending or receiving",
        "  hint: the JVM died; the system may have killed it for its memory use",
    ]


@pytest.mark.parametrize("where", ["_stackTrace", "_server_stacktrace"])
def test_the_cause_stands_in_a_trace_that_pyspark_does_not_show(where: str) -> None:
    error = Exception("[TASK_WRITE_FAILED] Task failed while writing rows to file:/x.")
    setattr(error, where, "org.E: it\n\tat x\nCaused by: java.io.IOException: Disk quota exceeded")
    failure = explain_spark_failure(error)
    assert failure.line == f"{error}; caused by java.io.IOException: Disk quota exceeded"


def test_a_file_that_no_condition_is_named_for() -> None:
    """Spark 3.5: the cause is the exception below, the text of it alone."""
    error = Exception("Encountered error while reading file file:///a.gz. Details:")
    error._stackTrace = "\nCaused by: java.io.EOFException: Unexpected end of input"  # type: ignore[attr-defined]
    assert str(explain_spark_failure(error)) == "/a.gz cannot be read: truncated gzip"


def test_other_errors_are_not_sparks() -> None:
    assert not is_spark_failure(ValueError("x"))
