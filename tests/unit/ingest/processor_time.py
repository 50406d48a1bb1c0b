"""What reading costs, in processor time: what else the machine does says nothing."""

import time
from collections.abc import Iterator
from contextlib import contextmanager

HUGE = 4_000_000
SECONDS = 20
"""Reading so many characters takes half of one; a cost that grows with their square takes hours."""


@contextmanager
def linear(about: object = "") -> Iterator[None]:
    """What is done inside, with `HUGE` characters, must not take more than `SECONDS`."""
    started = time.process_time()
    yield
    assert time.process_time() - started < SECONDS, about
