"""What the operator reads while a job runs; results alone go to stdout."""

import sys
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from rebalance_core.report.visible import visible


def say(text: str) -> None:
    """A word to the operator, each line of it marked as ours."""
    for line in visible_lines(text).split("\n"):
        print(f"rebalance: {line}", file=sys.stderr)


def joined(lines: Iterable[str]) -> str:
    """The lines as one text in which no name hides, moves the cursor or begins a line."""
    return "\n".join(visible(line, longest=None) for line in lines)


def visible_lines(text: str) -> str:
    """The text with all but its line ends made visible."""
    return joined(text.split("\n"))


def warn(text: str) -> None:
    """What the operator should look at, though the run goes on."""
    say(f"warning: {text}")


def warn_of_nothing(restrictions: Mapping[str, object]) -> None:
    """Say which options left no group in an output; nothing if none was given.

    Args:
        restrictions: value by option; None where it was not given.
    """
    given = [f"{option} {value}" for option, value in restrictions.items() if value is not None]
    if given:
        warn(f"{' '.join(given)}: nothing in the input matches, so the output has no group")


# How far a long run is: on a terminal a line that moves, elsewhere a line a minute.

FIRST_AFTER_SECONDS = 2.0
"""A run that is over sooner shows nothing."""
_TERMINAL_SECONDS, _LOG_SECONDS = 0.2, 60.0


@dataclass
class Progress:
    """Shows how many of all things are done.

    Attributes:
        what: The things, e.g. ``groups``.
        terminal: Somebody watches.
    """

    what: str
    terminal: bool
    _shown_at: float = field(default_factory=time.monotonic)
    _shown: bool = False

    def __call__(self, done: int, total: int) -> None:
        """Say how many are done, if it is time to."""
        now = time.monotonic()
        pause = _TERMINAL_SECONDS if self.terminal else _LOG_SECONDS
        if self.terminal and not self._shown:
            pause = FIRST_AFTER_SECONDS
        if now - self._shown_at < pause:
            return
        self._shown_at, self._shown = now, True
        text = f"{done:,} of {total:,} {self.what} ({done / max(total, 1):.0%})"
        if self.terminal:
            print(f"\r\x1b[Krebalance: {text}", end="", file=sys.stderr, flush=True)
        else:
            say(text)

    def end(self) -> None:
        """Clear the line."""
        if self.terminal and self._shown:
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


@contextmanager
def progress_of(what: str) -> Iterator[Progress]:
    """Progress on stderr while the block runs."""
    progress = Progress(what, sys.stderr.isatty())
    try:
        yield progress
    finally:
        progress.end()
