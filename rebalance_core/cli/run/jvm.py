"""The JVM of Spark: the Java that it runs on, what it prints, and the one line that matters of
its failures.
"""

import os
import re
import shutil
import subprocess
import sys
import threading
from collections import deque
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from rebalance_core.cli.terminal import STDERR, STDOUT, ExitCode
from rebalance_core.contracts.paths import SHARE_IT, unreadable_file
from rebalance_core.model import errors
from rebalance_core.model.errors import UsageError

# Where is a Java that Spark 4 runs on? Found before Spark fails over it with a stack trace.

OLDEST_JAVA = 17  # Spark 4's own minimum
INSTALLED = Path("/usr/lib/jvm")
FETCHED = Path(__file__).resolve().parents[3] / ".java"  # put there by `make setup`

_VERSION = re.compile(r'version "(?:1\.)?(\d+)')


def java_version(home: Path) -> int | None:
    """Return the major version of the Java in `home`, or None if none there runs."""
    launcher = home / "bin" / "java"
    if not launcher.is_file():
        return None
    try:
        answer = subprocess.run(
            [launcher, "-version"], capture_output=True, text=True, timeout=30, check=True
        )
    except (OSError, subprocess.SubprocessError):
        return None
    match = _VERSION.search(answer.stderr + answer.stdout)
    return int(match[1]) if match else None


def java_candidates(environment: Mapping[str, str]) -> Iterator[Path]:
    """Yield homes to try, in order: JAVA_HOME, PATH, the system's, the `make setup` copy."""
    if environment.get("JAVA_HOME"):
        yield Path(environment["JAVA_HOME"])
    on_path = shutil.which("java", path=environment.get("PATH", ""))
    if on_path:
        yield Path(on_path).resolve().parent.parent
    if INSTALLED.is_dir():
        yield from sorted(path for path in INSTALLED.iterdir() if path.is_dir())
    yield FETCHED


def find_java_home(environment: Mapping[str, str] = os.environ) -> Path | None:
    """Return the first candidate of version 17 or newer, or None."""
    for home in java_candidates(environment):
        version = java_version(home)
        if version is not None and version >= OLDEST_JAVA:
            return home
    return None


def require_java_home(environment: Mapping[str, str] = os.environ) -> Path:
    """Return the result of `find_java_home`, or raise `UsageError` with a one-line remedy."""
    home = find_java_home(environment)
    if home is not None:
        return home
    stated = environment.get("JAVA_HOME")
    wrong_version = (
        f" (JAVA_HOME={stated} has version {java_version(Path(stated))})" if stated else ""
    )
    raise UsageError(
        f"Spark needs Java {OLDEST_JAVA} or newer and none was found{wrong_version}; "
        "install one (Debian: apt-get install default-jre-headless), set JAVA_HOME, or run "
        "`make setup`"
    )


# What the JVM prints: kept from the terminal, its last lines for a failure that nothing explains.
#
# Java, the launcher and Spark's logging write to the files the JVM inherits when it starts, each
# by a configuration of its own (the operator's SPARK_CONF_DIR among them). Those files are
# changed, and no configuration is.

KEPT_LINES = 200
LONGEST_LINE = 2_000  # characters; a plan of Spark's may have a million

_BAR = re.compile(rb"\[Stage |\s+$")  # ConsoleProgressBar: show() and clear(), between two \r
_LAST_WORDS_SECONDS = 2.0  # a JVM that dies has its output read to the end


class JvmOutput:
    """Reads what a JVM prints to its end, and passes on the progress bar alone."""

    def __init__(self, source: int, terminal: int | None) -> None:
        self._lines: deque[str] = deque(maxlen=KEPT_LINES)
        self._source = source
        self._terminal = terminal
        self._thread = threading.Thread(target=self._read, name="jvm-output", daemon=True)
        self._thread.start()

    def last_lines(self) -> list[str]:
        """Return the lines printed last, after a moment's wait for a JVM that is about to end."""
        self._thread.join(_LAST_WORDS_SECONDS)
        return list(self._lines)

    def _read(self) -> None:
        rest = b""
        while data := os.read(self._source, 1 << 16):
            *pieces, rest = re.split(rb"([\r\n])", rest + data)
            for text, end in zip(pieces[::2], pieces[1::2], strict=True):
                if end == b"\r" and _BAR.match(text):
                    self._pass_on(text)
                elif text:
                    self._keep(text)
        self._keep(rest)
        os.close(self._source)

    def _keep(self, text: bytes) -> None:
        if text.strip():
            self._lines.append(text.decode("utf-8", "replace")[:LONGEST_LINE])

    def _pass_on(self, bar: bytes) -> None:
        if self._terminal is not None:
            with suppress(
                OSError
            ):  # a terminal may close; a JVM whose output is not read would hang
                os.write(self._terminal, b"\r" + bar + b"\r")


_started: list[JvmOutput] = []
"""Of this process: as many as pyspark has gateways, one."""


@contextmanager
def jvm_output(*, shown: bool) -> Iterator[None]:
    """Let a JVM started inside write to stderr if ``shown``; otherwise keep its output."""
    sys.stdout.flush()
    sys.stderr.flush()
    before = os.dup(STDOUT), os.dup(STDERR)
    if shown:
        target = os.dup(STDERR)
    else:
        source, target = os.pipe()
        terminal = os.dup(STDERR) if os.isatty(STDERR) else None
        _started.append(JvmOutput(source, terminal))
    try:
        os.dup2(target, STDOUT)
        os.dup2(target, STDERR)
        os.close(target)
        yield
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        for number, copy in zip((STDOUT, STDERR), before, strict=True):
            os.dup2(copy, number)
            os.close(copy)


def last_lines() -> list[str]:
    """Return the hidden lines that the JVM of this process printed last."""
    return [line for output in _started for line in output.last_lines()]


# The one line that matters of a Spark failure, and what to do about it.
#
# An exception in a Python worker is 400 lines of log; the cause is one of them.

_PYTHON_CAUSE = re.compile(r"^(?:[\w]+\.)*(\w+(?:Error|Exception|Refused|Exists)): ?(.*)$")

_CAUSED_BY = "Caused by: "
_CALLING = "An error occurred while calling"

_HINTS = (
    ("PATH_NOT_FOUND", ExitCode.INPUT_REFUSED, f"check the input paths; {SHARE_IT}"),
    ("UNABLE_TO_INFER_SCHEMA", ExitCode.INPUT_REFUSED, "the input has no file in that format"),
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
        ExitCode.STORE_FAILED,
        "executors reach the store with the driver's AWS_… variables, else with roles of their own",
    ),
    (
        "No FileSystem for scheme",
        ExitCode.USAGE,
        "Spark lacks the connector of that store: add its jar (spark.jars.packages), or copy the "
        "files to a local folder",
    ),
    ("FileNotFoundError", ExitCode.USAGE, SHARE_IT),
    ("CONNECT_URL_NOT_SET", ExitCode.USAGE, "name the server: --master sc://HOST:PORT"),
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
    """Text to print, and how to end."""

    line: str
    hint: str
    exit_code: int

    def __str__(self) -> str:
        """Return the text for the operator; an input's fault is not a failure of Spark."""
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
        return Failure(line, "", kind.exit_code)  # a worker refused on purpose
    unreadable = unreadable_file(text)
    if unreadable is not None:
        return Failure(unreadable, "", ExitCode.INPUT_REFUSED)
    for sign, exit_code, hint in _HINTS:
        if sign in text:
            return Failure(line, hint, exit_code)
    return Failure(line, "for the full trace: --debug", ExitCode.BUG)


_OF_THE_JVM = ("_stackTrace", "_server_stacktrace", "_stacktrace")
"""Where pyspark's exceptions have the trace that they do not show: of a JVM here, of Connect's."""


def _whole(error: BaseException) -> str:
    """Return the text of an error with its traces, which alone contain the causes."""
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
    """Return True if the JVM exists already, with its own configuration and output."""
    return "PYSPARK_GATEWAY_PORT" in os.environ


def connect_address(master: str | None) -> str | None:
    """Return the address of the job's Connect server, or None for a local Spark.

    Args:
        master: of the options; SPARK_REMOTE is asked where it is None.
    """
    if master is None and not under_spark_submit():
        return os.environ.get("SPARK_REMOTE") or None
    return master if master is not None and master.startswith("sc://") else None
