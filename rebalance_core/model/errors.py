"""One root of errors; each leaf carries the exit code a job ends with. The near miss of an
unknown name.
"""

from collections.abc import Iterable
from difflib import get_close_matches

# One root of errors; each leaf carries the exit code a job ends with.


class RebalanceError(Exception):
    """Root of every error this package raises on purpose."""

    exit_code = 1


class UsageError(RebalanceError):
    """Wrong options or configuration; the message lists every mistake found."""

    exit_code = 2


class InputRefused(RebalanceError):
    """The input is missing, unreadable or has more bad rows than allowed."""

    exit_code = 4


class OutputExists(RebalanceError):
    """The output folder is in use, not ours, or holds a result already."""

    exit_code = 5


class StoreFailed(RebalanceError):
    """An object store did not answer, throttles or has an error of its own: another try may do."""

    exit_code = 6


class Terminated(SystemExit):
    """SIGTERM, as an exit that passes through every `with` and `finally`."""


class AllocationError(RebalanceError):
    """The strategy throws upstream.

    ``java_class`` is the simple name of upstream's exception, ``java_message`` its message (None
    where Java has none).
    """

    def __init__(self, java_class: str, java_message: str | None) -> None:
        super().__init__(f"{java_class}: {java_message}")
        self.java_class = java_class
        self.java_message = java_message

    def __reduce__(self) -> tuple[type, tuple[str, str | None]]:
        return type(self), (self.java_class, self.java_message)


class StartOffsetError(RebalanceError):
    """computePullFromWhere fails upstream; the message is upstream's."""


# The near miss that goes with every unknown name.


def nearest(name: str, known: Iterable[str]) -> str | None:
    """The known name most like `name`, whatever the case, or None if none is near.

    >>> nearest("MAX_BAD_SHARES", ["max_bad_share", "limits"])
    'max_bad_share'
    """
    by_upper = {candidate.upper(): candidate for candidate in known}
    closest = get_close_matches(name.upper(), list(by_upper), n=1, cutoff=0.5)
    return by_upper[closest[0]] if closest else None


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """`nearest` as the end of a sentence, empty if there is none."""
    meant = nearest(name, known)
    return f"; did you mean {meant}?" if meant else ""
