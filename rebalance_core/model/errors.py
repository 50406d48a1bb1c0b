"""The package's errors, each with the exit code of a job, and suggestions for misspelt names."""

from collections.abc import Collection, Iterable, Iterator
from difflib import get_close_matches


class RebalanceError(Exception):
    """Root of every error this package raises deliberately."""

    exit_code = 1


class UsageError(RebalanceError):
    """Invalid options or configuration; the message lists every mistake found."""

    exit_code = 2


class InputRefused(RebalanceError):
    """The input is missing, unreadable or has more bad rows than allowed."""

    exit_code = 4


class OutputExists(RebalanceError):
    """The output folder is in use, is not ours, or already holds a result."""

    exit_code = 5


class StoreFailed(RebalanceError):
    """An object store does not answer, throttles requests or has an internal error; a retry may
    help.
    """

    exit_code = 6


class Terminated(SystemExit):
    """SIGTERM, as an exit that passes through every ``with`` and ``finally``."""


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


def nearest(name: str, candidates: Iterable[str]) -> str | None:
    """Return the known name most similar to `name`, ignoring case, or None if none is close.

    >>> nearest("MAX_BAD_SHARES", ["max_bad_share", "limits"])
    'max_bad_share'
    """
    by_upper = {candidate.upper(): candidate for candidate in candidates}
    closest = get_close_matches(name.upper(), list(by_upper), n=1, cutoff=0.5)
    return by_upper[closest[0]] if closest else None


def did_you_mean(name: str, candidates: Iterable[str]) -> str:
    """Return `nearest` as the end of a sentence, or an empty string."""
    meant = nearest(name, candidates)
    return f"; did you mean {meant}?" if meant else ""


MOST_UNKNOWN = 20
"""The maximum number of unknown keys that a message names; a file of another kind may have a
million.
"""
_SHOWN = 100  # characters shown of a name


def unknown_keys(
    names: Iterable[str],
    valid_keys: Collection[str],
    *,
    prefix: str = "",
    whose: str = "",
    valid: str = "valid keys",
    near: Collection[str] = (),
) -> Iterator[tuple[str, str]]:
    """Yield the first 20 unknown keys with suggestions, then the number of the remaining ones.

    Args:
        names: the keys in a file.
        valid_keys: the keys that the file may have.
        prefix: the key's table and a dot, shown before its name.
        whose: the object of the key, shown after its name.
        valid: what to call valid keys.
        near: other names that may have been meant.

    Yields:
        The key, and what is wrong with it.

    >>> list(unknown_keys(["cluster", "clutser"], ["cluster"]))
    [('clutser', 'unknown key clutser; did you mean cluster? (valid keys: cluster)')]
    """
    unknown = [name for name in names if name not in valid_keys]
    for name in unknown[:MOST_UNKNOWN]:
        shown = name if len(name) <= _SHOWN else f"{name[:_SHOWN]}…"
        hint = did_you_mean(name, (*valid_keys, *near))
        yield name, f"unknown key {prefix}{shown}{whose}{hint} ({valid}: {', '.join(valid_keys)})"
    if len(unknown) > MOST_UNKNOWN:
        more = len(unknown) - MOST_UNKNOWN
        yield (
            unknown[MOST_UNKNOWN],
            (f"{more:,} more unknown keys; check that this is the right file"),
        )
