"""Output of Spark's JVM: kept off the terminal, with its last lines shown on failure."""

import os
import re
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from rebalance_core.cli.terminal import STDERR, STDOUT

KEPT_LINES = 200
LONGEST_LINE = 2_000  # characters; a Spark plan may have a million

_BAR = re.compile(rb"\[Stage |\s+$")  # ConsoleProgressBar: show() and clear(), between two \r
_LAST_WORDS_SECONDS = 2.0  # a dying JVM's output is read to its end


class JvmOutput:
    """Reads all output of a JVM, and passes on only the progress bar."""

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
            ):  # a terminal may close, and a JVM whose output is not read would hang
                os.write(self._terminal, b"\r" + bar + b"\r")


_started: list[JvmOutput] = []
"""The JVM of this process; pyspark has one gateway."""


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
