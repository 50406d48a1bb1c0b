"""The entry point: parse the command line, run the job, print its results and return its exit code.

Results go to stdout and everything else to stderr.
"""

import json
import os
import signal
import sys
import threading
import traceback
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import FrameType
from typing import Any

from rebalance_core.cli import terminal
from rebalance_core.cli.jobs import JOBS, parse_options
from rebalance_core.cli.terminal import ExitCode
from rebalance_core.model.errors import RebalanceError, Terminated, UsageError
from rebalance_core.storage.store_answers import is_full, is_of_store, reason_of


def main(job: str | None = None, argv: Sequence[str] | None = None) -> int:
    """Run a job and return the exit code of the process.

    Args:
        job: name of the job, for the entry scripts; None reads it from `argv` (`rebalance JOB …`).
        argv: the words after the program's name; None for the process's own.
    """
    words = list(sys.argv[1:] if argv is None else argv)
    if job is not None:
        words.insert(0, job)
    _release_on_sigterm()
    _open_closed_streams()
    try:
        try:
            chosen, options = parse_options(words, JOBS)
        except SystemExit:  # --help, --version
            _print("", end="")
            return ExitCode.OK
        with terminal.nothing_on_stdout():
            report = chosen.run(options, own_process=argv is None)
        end = _end(report.exit_code)
        _print(
            _json({**report.facts, **end}) if options.json else terminal.visible_lines(report.text)
        )
        return int(report.exit_code)
    except BaseException as error:  # the only place where errors become exit codes
        code, why = _explain(error, debug="--debug" in words)
        if "--json" in words:
            name = words[0] if words[0] in JOBS else None
            with suppress(UsageError):  # stdout cannot be written
                _print(_json({"job": name, **_end(code), "error": why}))
        return code


def _end(code: int) -> dict[str, Any]:
    """Return how the job ended: the exit code and its name."""
    return {"status": ExitCode(code).name, "exit_code": int(code)}


def _json(facts: Mapping[str, Any]) -> str:
    """Return the object as JSON on one line, in characters that stdout can write."""
    text = json.dumps(facts, ensure_ascii=False)
    return text if _writable(text) == text else json.dumps(facts)


def _writable(text: str) -> str:
    """Return the text, escaping characters that stdout's encoding lacks."""
    encoding = sys.stdout.encoding or "utf-8"
    return text.encode(encoding, "backslashreplace").decode(encoding)


def _open_closed_streams() -> None:
    """Open stdout and stderr, in this order, if the caller closed them (`>&-`).

    Otherwise the first file that a job opens would get their descriptor and receive the printed
    output.
    """
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            nowhere = Path(os.devnull).open("w", encoding="utf-8")  # noqa: SIM115 - it stays open
            setattr(sys, name, nowhere)


def _print(text: str, end: str = "\n") -> None:
    """Print the results; a reader that stops early (`| head`) is not an error."""
    try:
        print(_writable(text), end=end, flush=True)
    except BrokenPipeError:
        terminal.discard(sys.stdout)
    except OSError as error:
        terminal.discard(sys.stdout)
        raise UsageError(
            f"the job has finished, but its result cannot be printed: {reason_of(error)}"
        ) from error


def _explain(error: BaseException, *, debug: bool) -> tuple[int, str]:
    """Print the error on stderr; return the exit code and the text."""
    if debug:
        trace = "".join(traceback.format_exception(error))
        terminal.print_on_stderr(terminal.visible_lines(trace))
    from rebalance_core.cli.run import (
        jvm,  # takes a while and is not needed for --help
        spark_failure,
    )

    failure = (
        spark_failure.explain_spark_failure(error)
        if spark_failure.is_spark_failure(error)
        else None
    )
    code = int(failure.exit_code if failure else terminal.exit_code_of(error))
    if code == ExitCode.BUG:
        _say_last_words_of_spark(jvm.last_lines())
    why = (
        str(failure)
        if failure
        else _reason(error) + "; see --debug" * (code == ExitCode.BUG and not debug)
    )
    terminal.say(why)
    return code, why


def _reason(error: BaseException) -> str:
    if isinstance(error, RebalanceError):
        return str(error)
    if is_of_store(error):
        return f"the store failed, and there is no result: {reason_of(error)}"
    if (missing := terminal.missing_package(error)) is not None:
        return missing
    if is_full(error):
        why = error.strerror if error.filename else os.strerror(error.errno or 0)
        where = f"{error.filename}: " if error.filename else ""
        return f"the output cannot be written, and there is no result: {where}{why}"
    if isinstance(error, KeyboardInterrupt):
        return "interrupted; the output is incomplete"
    if isinstance(error, Terminated):
        return "terminated; the output is incomplete"
    if isinstance(error, MemoryError):
        return (
            "this process ran out of memory, and there is no result: give it more memory, run on "
            "Spark (--run-on spark), or reduce the input"
        )
    return f"this is a bug: {type(error).__name__}: {error}"


def _say_last_words_of_spark(lines: Sequence[str]) -> None:
    """Print the output hidden from the terminal, which may be the only clue to why a JVM died."""
    if lines:
        terminal.say("Spark and its JVM last printed:")
        terminal.print_on_stderr(terminal.joined(f"  {line.expandtabs()}" for line in lines))


def _release_on_sigterm() -> None:
    """Turn SIGTERM into an exit that passes through every ``with`` and ``finally``."""

    def leave(number: int, frame: FrameType | None) -> None:
        # A second signal from an impatient supervisor must not interrupt the cleanup.
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        raise Terminated(int(ExitCode.TERMINATED))

    if threading.current_thread() is threading.main_thread():
        signal.signal(signal.SIGTERM, leave)


if __name__ == "__main__":
    sys.exit(main())
