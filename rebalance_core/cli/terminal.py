"""Output to the terminal: lines, tables, progress and exit codes."""

from __future__ import annotations

import os
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, redirect_stdout
from dataclasses import asdict, dataclass, field
from enum import IntEnum
from typing import TYPE_CHECKING, Any, TextIO

from rebalance_core.checks.row_limits import complaint_lines
from rebalance_core.cli.options import PROCESS, SPARK
from rebalance_core.model.errors import RebalanceError, Terminated
from rebalance_core.model.file_statuses import FILE_STATUSES
from rebalance_core.model.nouns import counted
from rebalance_core.model.times import utc as known_utc
from rebalance_core.report.visible import visible
from rebalance_core.storage.store_answers import is_full, is_of_store

if TYPE_CHECKING:
    from rebalance_core.engine.options import RowForecast
    from rebalance_core.ingest.file_record import FileOutcome


# Hints for missing packages: the wheel has no dependencies, so that it replaces no package on a
# cluster.
_EXTRAS = {
    "numpy": "process",
    "pyarrow": "process",
    "pandas": "spark",
    "py4j": "spark",
    "grpc_status": "connect",
    "google": "connect",
    "pyspark": "spark",
    "jinja2": "process",
    "matplotlib": "plots",
}
"""The extra of `pyproject.toml` that installs each package."""


def missing_package(error: BaseException) -> str | None:
    """Return a hint to install a package, or None for another error.

    >>> missing_package(ModuleNotFoundError("No module named 'numpy'", name="numpy"))
    "numpy is not installed: pip install 'WHEEL[process]' (the .whl file), or numpy on its own"
    """
    if not isinstance(error, ModuleNotFoundError):
        return None
    package = (error.name or "").partition(".")[0]
    extra = _EXTRAS.get(package)
    if extra is None:
        return None
    wheel = f"pip install 'WHEEL[{extra}]' (the .whl file)"
    return f"{package} is not installed: {wheel}, or {package} on its own"


class ExitCode(IntEnum):
    """The stable exit codes, and those for the two signals."""

    OK = 0
    BUG = 1
    USAGE = 2
    DIFFERENCES = 3
    INPUT_REFUSED = 4
    OUTPUT_EXISTS = 5
    STORE_FAILED = 6
    INTERRUPTED = 130  # 128 + SIGINT, as in a shell
    TERMINATED = 143  # 128 + SIGTERM


def exit_code_of(error: BaseException) -> int:
    """Return the exit code of a job that raises `error`."""
    if isinstance(error, RebalanceError):
        return error.exit_code
    if isinstance(error, KeyboardInterrupt):
        return ExitCode.INTERRUPTED
    if isinstance(error, Terminated):
        return ExitCode.TERMINATED
    if is_of_store(error):
        return ExitCode.STORE_FAILED
    if is_full(error) or missing_package(error) or isinstance(error, MemoryError):
        return ExitCode.USAGE
    return ExitCode.BUG


STDOUT, STDERR = 1, 2
"""File descriptors."""


@contextmanager
def nothing_on_stdout() -> Iterator[None]:
    """Redirect all output inside the block to stderr, including that of plugins and the programs
    that they start.
    """
    stdout = sys.stdout
    try:
        own = os.dup(stdout.fileno()) if stdout.fileno() == STDOUT else None
    except (OSError, AttributeError):  # stdout is closed, or captured by a caller in Python
        own = None
    if own is not None:
        stdout.flush()
        os.dup2(STDERR, STDOUT)
    try:
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if own is not None:
            os.dup2(own, STDOUT)
            os.close(own)


def say(text: str) -> None:
    """Print a message to the operator, with the program's name before each line."""
    for line in visible_lines(text).split("\n"):
        print_on_stderr(f"rebalance: {line}")


def print_on_stderr(text: str, end: str = "\n") -> None:
    """Print text that is not a result; a closed stderr (`2>&1 | head`) does not end the job."""
    try:
        print(text, end=end, file=sys.stderr, flush=True)
    except OSError:
        discard(sys.stderr)


def discard(stream: TextIO) -> None:
    """Redirect a stream that cannot be written to the null device, because Python flushes it again
    at exit.
    """
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, stream.fileno())
    os.close(nowhere)


def start_up_text(start: Mapping[str, Any]) -> str:
    """Return in words how long ``start()`` takes, from ``brokers``, ``median_ms`` and ``basis``."""
    brokers = counted(start["brokers"], "broker")
    return (
        f"start() takes about {start['median_ms'] / 1_000:,.1f} s with {brokers} "
        f"({start['basis']}), which a start-up probe has to allow for."
    )


def joined(lines: Iterable[str]) -> str:
    """Join the lines into text in which no name can hide, move the cursor or start a line."""
    return "\n".join(visible(line, longest=None) for line in lines)


def visible_lines(text: str) -> str:
    """Return the text with all invisible characters except line breaks escaped."""
    return joined(text.split("\n"))


def warn(text: str) -> None:
    """Warn the operator, while the run continues."""
    say(f"warning: {text}")


def warn_of_nothing(restrictions: Mapping[str, object]) -> None:
    """Warn about the options that left no group in the output; do nothing if no option was given.

    Args:
        restrictions: the value of each option, or None if it was not given.
    """
    restricted = [
        f"{option} {value}" for option, value in restrictions.items() if value is not None
    ]
    if restricted:
        warn(f"{' '.join(restricted)}: no input row matches, so the output has no group")


FIRST_AFTER_SECONDS = 2.0
"""Shorter runs show nothing."""
_TERMINAL_SECONDS, _LOG_SECONDS = 0.2, 60.0
_LOOK_SECONDS = 1.0
SLOW_SECONDS = 5.0
"""Steps that take longer are named."""


@dataclass
class ProgressLine:
    """Shows how many items are done, and which one is in progress.

    Attributes:
        what: The items, e.g. ``groups``.
        terminal: Whether a person is watching.
    """

    what: str
    terminal: bool
    _shown_at: float = field(default_factory=time.monotonic)
    _shown: bool = False
    _reported: tuple[int, int, str | None] | None = None
    _since: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, done: int, total: int, begun: str | None = None) -> None:
        """Record how many items are done, and print progress when it is due.

        Args:
            done: Number of finished items.
            total: Total number of items.
            begun: The item that has begun; None if unknown.
        """
        with self._lock:
            if self._reported is None or self._reported[2] != begun:
                self._since = time.monotonic()
            self._reported = done, total, begun
        self.show()

    def show(self) -> None:
        """Print the latest progress if it is due."""
        with self._lock:
            now = time.monotonic()
            pause = _TERMINAL_SECONDS if self.terminal else _LOG_SECONDS
            if self.terminal and not self._shown:
                pause = FIRST_AFTER_SECONDS
            if self._reported is None or now - self._shown_at < pause:
                return
            self._shown_at, self._shown = now, True
            done, total, begun = self._reported
            text = f"{done:,} of {total:,} {self.what} ({done / max(total, 1):.0%})"
            if begun is not None and now - self._since >= SLOW_SECONDS:
                text += f", at {begun} for {now - self._since:,.0f} s"
            if self.terminal:
                line = visible(text, longest=None)
                print_on_stderr(f"\r\x1b[Krebalance: {line}", end="")
            else:
                say(text)

    def end(self) -> None:
        """Clear the line."""
        if self.terminal and self._shown:
            print_on_stderr("\r\x1b[K", end="")


@contextmanager
def progress_of(what: str) -> Iterator[ProgressLine]:
    """Show progress on stderr while the block runs, also during a single long task."""
    progress, over = ProgressLine(what, sys.stderr.isatty()), threading.Event()

    def watch() -> None:
        while not over.wait(_LOOK_SECONDS):
            progress.show()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    thread.start()
    try:
        yield progress
    finally:
        over.set()
        thread.join()
        progress.end()


WIDTH = 96
"""Width of running text."""
DRY_RUN = ("Dry run: nothing is written.", "")
"""The first lines of every dry run."""
_PLACES = {PROCESS: "in process", SPARK: "on Spark"}
_EXACT_BELOW = 10  # seconds


def result_facts(
    job: str,
    output: str,
    results: Mapping[str, Any],
    seconds: float,
    run_on: str,
    exit_code: int = 0,
) -> dict[str, Any]:
    """Return the `--json` object of a job that wrote a result, the source of its summary.

    Args:
        job: its name.
        output: where the result is.
        results: the job's own figures.
        seconds: how long the run took.
        run_on: where it ran.
        exit_code: the job's exit code.
    """
    return {
        "job": job,
        "status": "OK",
        "exit_code": int(exit_code),
        "output": output,
        **results,
        "seconds": seconds,
        "run_on": run_on,
    }


def file_facts(files: Iterable[FileOutcome]) -> dict[str, Any]:
    """List the files of a collection in the `--json` object: the number with each status, and each
    file.

    Args:
        files: as in `_run.json`; empty if tables were read.
    """
    table = [
        {"name": f["name"], "kind": f["kind"], "status": f["status"], "reason": f["reason"]}
        for f in files
    ]
    statuses = Counter(file["status"] for file in table)
    counts = {status: statuses[status] for status in FILE_STATUSES} if table else {}
    return {"file_statuses": counts, "file_table": table}


def took(facts: Mapping[str, Any]) -> str:
    """Return how long a run took, and where it ran.

    >>> took({"seconds": 0.234, "run_on": "process"}), took({"seconds": 51.4, "run_on": "spark"})
    ('0.2 s in process', '51 s on Spark')
    """
    seconds = facts["seconds"]
    text = f"{seconds:.1f} s" if seconds < _EXACT_BELOW else f"{seconds:,.0f} s"
    return f"{text} {_PLACES[facts['run_on']]}"


def utc(time_ms: int | None) -> str:
    """Return the time in UTC, as in logs, or "-" for None.

    >>> utc(1795231709901), utc(None)
    ('2026-11-21 03:28:29Z', '-')
    """
    return "-" if time_ms is None else known_utc(time_ms)


def whole(number: int | None) -> str:
    """Return a whole number, or "-" for None."""
    return "-" if number is None else f"{number:,}"


def by_code(counts: Mapping[str, int]) -> str:
    """Return counts by code, in one line.

    >>> by_code({"BAD_TIME": 1200, "BAD_ID": 1})
    'BAD_ID 1, BAD_TIME 1,200'
    """
    return ", ".join(f"{code} {count:,}" for code, count in sorted(counts.items()))


def numbers(values: Mapping[str, int], notes: Mapping[str, str] | None = None) -> list[str]:
    """Return a line for each number, with its note."""
    width = len(f"{max(values.values(), default=0):,}")
    shown = notes or {}
    return [
        f"  {name:<20} {count:>{width},}  {shown.get(name, '')}".rstrip()
        for name, count in values.items()
    ]


def table(
    header: Sequence[str], rows: Sequence[Sequence[str]], text: Sequence[int] = (0,)
) -> Iterator[str]:
    """Yield the lines of a table: text columns left-aligned, others right-aligned.

    Args:
        header: the header of the columns.
        rows: their cells.
        text: the text columns by index; -1 for the last.
    """
    lines = [header, *rows]
    left = {column % len(header) for column in text}
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    for line in lines:
        cells = [
            cell.ljust(width) if column in left else cell.rjust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ]
        yield "  " + "  ".join(cells).rstrip()


def rejected_rows(rejected: Mapping[str, int]) -> list[str]:
    """Return the unused rows by code; no lines if there are none."""
    lines = [f"  {code:<20} {times:,}" for code, times in rejected.items()]
    return ["", "Rejected rows", *lines] if lines else []


def output_lines(output: str, tables: Sequence[str]) -> list[str]:
    """Return lines about the tables that a run would write, and where."""
    return ["", f"output  {output}", f"  {', '.join(tables)}"]


@dataclass(frozen=True)
class RowReport:
    """A `RowForecast` in words."""

    forecast: RowForecast

    @property
    def exit_code(self) -> int:
        """The exit code of a run with these rows."""
        refusal = self.forecast.refusal
        return ExitCode.OK if refusal is None else refusal.exit_code

    def facts(self) -> dict[str, Any]:
        """Return the facts for the `--json` object."""
        counts, refusal = self.forecast.counts, self.forecast.refusal
        return {
            "exit_code": int(self.exit_code),
            "refused": None if refusal is None else str(refusal),
            "rows": {name: {"rows": c.rows, "bad": c.bad} for name, c in counts.items()},
            "complaints": [asdict(complaint) for complaint in self.forecast.complaints],
        }

    def input_lines(self, paths: Mapping[str, str]) -> list[str]:
        """Return readable lines with the counts of each input."""
        counts = self.forecast.counts
        return [
            "inputs",
            *(
                f"  {table:<18} {counts[table].rows:>9,} rows, {counts[table].bad:,} bad"
                f"  {path}".rstrip()
                for table, path in paths.items()
            ),
        ]

    def lines(self) -> list[str]:
        """Return readable lines about bad rows and about how a run would end."""
        complaints, refusal = self.forecast.complaints, self.forecast.refusal
        lines = ["", "bad rows", *complaint_lines(complaints)] if complaints else []
        if refusal is not None:
            first = str(refusal).partition("\n")[0]
            lines += ["", f"A run would end with exit code {self.exit_code}: {first}"]
        return lines
