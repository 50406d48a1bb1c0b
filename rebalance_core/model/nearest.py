"""The near miss that goes with every unknown name."""

from collections.abc import Iterable
from difflib import get_close_matches


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
