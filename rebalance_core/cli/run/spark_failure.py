"""The one important line of a Spark failure, and its remedy."""

import os
import re
from dataclasses import dataclass

from rebalance_core.cli.terminal import ExitCode
from rebalance_core.contracts.packed_files import unreadable_file
from rebalance_core.contracts.paths import SHARE_IT
from rebalance_core.model import errors
from rebalance_core.storage.store_answers import FULL

_PYTHON_CAUSE = re.compile(r"^(?:[\w]+\.)*(\w+(?:Error|Exception|Refused|Exists)): ?(.*)$")


_CAUSED_BY = "Caused by: "


_CALLING = "An error occurred while calling"


ADD_CONNECTOR = (
    "Spark has no connector for that store: add its jar (spark.jars.packages), or copy the files "
    "to a local folder"
)
_HINTS = (
    ("PATH_NOT_FOUND", ExitCode.INPUT_REFUSED, f"check the input paths; {SHARE_IT}"),
    ("UNABLE_TO_INFER_SCHEMA", ExitCode.INPUT_REFUSED, "the input has no file in that format"),
    ("OutOfMemoryError", ExitCode.BUG, "raise spark.driver.memory, or use more partitions"),
    # py4j's messages about a JVM that no longer answers.
    (
        "Error while sending or receiving",
        ExitCode.BUG,
        ("the JVM died; the system may have killed it for its memory use"),
    ),
    (
        "Answer from Java side is empty",
        ExitCode.BUG,
        "the JVM died; the system may have killed it for its memory use",
    ),
    *(
        (
            os.strerror(code),
            ExitCode.USAGE,
            "make room under --output or choose another place, or set SPARK_LOCAL_DIRS to another "
            "scratch folder",
        )
        for code in FULL
    ),
    (
        "AWS Error",
        ExitCode.STORE_FAILED,
        "executors reach the store with the driver's AWS_… variables, or else with their own roles",
    ),
    ("No FileSystem for scheme", ExitCode.USAGE, ADD_CONNECTOR),
    ("ClassNotFoundException: Class org.apache.hadoop.fs.", ExitCode.USAGE, ADD_CONNECTOR),
    ("FileNotFoundError", ExitCode.USAGE, SHARE_IT),
    ("CONNECT_URL_NOT_SET", ExitCode.USAGE, "name the server: --master sc://HOST:PORT"),
    ("UnknownHostException", ExitCode.USAGE, "no such host: check the address"),
    ("PYTHON_VERSION_MISMATCH", ExitCode.USAGE, "set PYSPARK_PYTHON to this interpreter"),
    (
        "No module named 'rebalance_core'",
        ExitCode.USAGE,
        "workers lack the package: pass --py-files dist/rebalance_core.zip to spark-submit",
    ),
    ("No module named", ExitCode.USAGE, "install that package on the workers"),
)


@dataclass(frozen=True)
class Failure:
    """The text to print and the exit code."""

    line: str
    hint: str
    exit_code: int

    def __str__(self) -> str:
        """Return the text for the operator; a fault in the input is not a Spark failure."""
        head = "" if self.exit_code == ExitCode.INPUT_REFUSED else "Spark failed: "
        return f"{head}{self.line}" + (f"\n  hint: {self.hint}" if self.hint else "")


def is_spark_failure(error: BaseException) -> bool:
    """Return True for errors of pyspark and py4j, without importing them."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def explain_spark_failure(error: BaseException) -> Failure:
    """Return the cause on one line, with a hint if there is one."""
    text = _whole(error)
    line, raised = _of_python(str(error)) or (_of_the_jvm(text), None)
    kind = getattr(errors, raised or "", None)
    if isinstance(kind, type) and issubclass(kind, errors.RebalanceError):
        return Failure(line, "", kind.exit_code)  # a deliberate refusal by a worker
    unreadable = unreadable_file(text)
    if unreadable is not None:
        return Failure(unreadable, "", ExitCode.INPUT_REFUSED)
    for sign, exit_code, hint in _HINTS:
        if sign in text:
            return Failure(line, hint, exit_code)
    return Failure(line, "for the full trace: --debug", ExitCode.BUG)


_OF_THE_JVM = ("_stackTrace", "_server_stacktrace", "_stacktrace")
"""Attributes of pyspark's exceptions that hold the hidden trace, for a local JVM and for Connect.
"""


def _whole(error: BaseException) -> str:
    """Return the text of an error with its traces, because only these contain the causes."""
    traces = (getattr(error, name, None) for name in _OF_THE_JVM)
    return "\n".join([str(error), *(trace for trace in traces if isinstance(trace, str))])


def _of_python(text: str) -> tuple[str, str] | None:
    """Return the last line of the last Python traceback, and the name of the exception."""
    lines = _lines(text)
    if not any(line.startswith("Traceback (most recent call last)") for line in lines):
        return None
    for line in reversed(lines):
        match = _PYTHON_CAUSE.match(line)
        # "org.apache.spark.SparkException: …" repeats the traceback that follows it
        if match and not line.startswith(("org.", "java.", "Caused by", "py4j.")):
            return f"{match[1]}: {match[2]}".rstrip(": "), match[1]
    return None


def _of_the_jvm(text: str) -> str:
    """Return the first informative line and the last cause."""
    lines = _lines(text)
    said = (line.lstrip(": ") for line in lines if not line.startswith(_CALLING))
    first = next(said, "Spark gave no message")
    causes = [line.removeprefix(_CAUSED_BY) for line in lines if line.startswith(_CAUSED_BY)]
    return first if not causes or causes[-1] in first else f"{first}; caused by {causes[-1]}"


def _lines(text: str) -> list[str]:
    return [line.strip() for line in text.splitlines() if line.strip()]


def under_spark_submit() -> bool:
    """Return True if the JVM already exists, with its own configuration and output."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def connect_address(master: str | None) -> str | None:
    """Return the address of the job's Connect server, or None for a local Spark.

    Args:
        master: the option's value; if None, SPARK_REMOTE is used.
    """
    if master is None and not under_spark_submit():
        return os.environ.get("SPARK_REMOTE") or None
    return master if master is not None and master.startswith("sc://") else None
