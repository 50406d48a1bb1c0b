"""How far a long run is: on a terminal a line that moves, elsewhere a line a minute."""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from rebalance_core.cli.terminal import say

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
