"""The one line that matters of a Spark failure, and what to do about it.

An exception in a Python worker is 400 lines of log; the cause is one of them.
"""

import re
from dataclasses import dataclass

from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.contracts.paths import unreadable_file
from rebalance_core.model import errors

_PYTHON_CAUSE = re.compile(r"^(?:[\w]+\.)*(\w+(?:Error|Exception|Refused|Exists)): ?(.*)$")

_HINTS = (
    ("PATH_NOT_FOUND", ExitCode.INPUT_REFUSED, "check the input paths"),
    ("UNABLE_TO_INFER_SCHEMA", ExitCode.INPUT_REFUSED, "the input holds no file of that format"),
    ("OutOfMemoryError", ExitCode.BUG, "give more memory: spark.driver.memory, or more partitions"),
    # py4j's words for a JVM that no longer answers.
    ("Error while sending or receiving", ExitCode.BUG, "the JVM died; was it killed for memory?"),
    ("Answer from Java side is empty", ExitCode.BUG, "the JVM died; was it killed for memory?"),
    (
        "No space left on device",
        ExitCode.USAGE,
        "free some below --output, or give Spark another scratch place: SPARK_LOCAL_DIRS",
    ),
    (
        "AWS Error",
        ExitCode.BUG,
        "executors reach the store with the driver's AWS_… variables, else with roles of their own",
    ),
    (
        "No FileSystem for scheme",
        ExitCode.USAGE,
        "Spark lacks the connector of that store: add its jar (spark.jars.packages), or copy the "
        "files to a local folder",
    ),
    ("UnknownHostException", ExitCode.USAGE, "no such host: check the address"),
    ("PYTHON_VERSION_MISMATCH", ExitCode.USAGE, "set PYSPARK_PYTHON to this interpreter"),
    (
        "No module named 'rebalance_core'",
        ExitCode.USAGE,
        "workers lack the package: spark-submit --py-files dist/rebalance_core.zip",
    ),
    ("No module named", ExitCode.USAGE, "install that package where the workers run"),
)


@dataclass(frozen=True)
class Failure:
    """What to print and how to end."""

    line: str
    hint: str
    exit_code: int

    def __str__(self) -> str:
        """As the operator reads it; what is wrong with the input is no failure of Spark."""
        head = "" if self.exit_code == ExitCode.INPUT_REFUSED else "Spark failed: "
        return f"{head}{self.line}" + (f"\n  hint: {self.hint}" if self.hint else "")


def is_spark_failure(error: BaseException) -> bool:
    """True for what pyspark and py4j raise; asks no import of them."""
    return type(error).__module__.partition(".")[0] in ("pyspark", "py4j")


def explain_spark_failure(error: BaseException) -> Failure:
    """The cause on one line, with a hint where one is known."""
    text = str(error)
    line, raised = _cause(text)
    kind = getattr(errors, raised or "", None)
    if isinstance(kind, type) and issubclass(kind, errors.RebalanceError):
        return Failure(line, "", kind.exit_code)  # a worker refused on purpose
    unreadable = unreadable_file(text)
    if unreadable is not None:
        return Failure(unreadable, "", ExitCode.INPUT_REFUSED)
    for sign, exit_code, hint in _HINTS:
        if sign in text:
            return Failure(line, hint, exit_code)
    return Failure(line, "the whole of it: --debug", ExitCode.BUG)


def _cause(text: str) -> tuple[str, str | None]:
    """Last line of the last Python traceback, else the first line that says something."""
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    if any(line.startswith("Traceback (most recent call last)") for line in lines):
        for line in reversed(lines):
            match = _PYTHON_CAUSE.match(line)
            # "org.apache.spark.SparkException: …" repeats the traceback that follows it
            if match and not line.startswith(("org.", "java.", "Caused by", "py4j.")):
                return f"{match[1]}: {match[2]}".rstrip(": "), match[1]
    for line in lines:
        if not line.startswith("An error occurred while calling"):
            return line.lstrip(": "), None
    return "Spark gave no message", None
