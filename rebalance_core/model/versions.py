"""Parsing and order of RocketMQ versions."""

import re
from functools import cache
from typing import NamedTuple

from rebalance_core.model.errors import UsageError

LAST_PATCH = {
    (4, 9): 8,
    (5, 0): 0,
    (5, 1): 4,
    (5, 2): 0,
    (5, 3): 3,
    (5, 4): 0,
    (5, 5): 0,
}
"""The last release in each known line that includes a client; 5.3.4 and 5.5.1 were not published.
"""
OLDEST = (4, 9)
HIGHER_TEXT = "HIGHER.VERSION"
"""``HIGHER_VERSION`` with a dot for its underscore: a version later than the last one that RocketMQ
knows.
"""

_NUMBERS = r"[Vv]?(\d{1,9})[._](\d{1,9})(?:[._](\d{1,9}))?"
_PATTERN = re.compile(_NUMBERS + "(?:[-_.]SNAPSHOT)?")
_STATED = re.compile(_NUMBERS + r"(?:[-_.]\w+)?")


class Version(NamedTuple):
    """A released version; compares numerically, even with plain tuples such as ``(5, 1, 1)``."""

    major: int
    minor: int
    patch: int

    def __str__(self) -> str:
        return f"{self.major}.{self.minor}.{self.patch}"

    @property
    def is_v4(self) -> bool:
        """True for the classic client line 4.9.x."""
        return self.major == 4


def is_known_line(version: Version) -> bool:
    """Return True if the rules of the version's line are known; later lines follow the newest known
    line.

    >>> is_known_line(Version(5, 5, 1)), is_known_line(Version(5, 6, 0))
    (True, False)
    """
    return version[:2] in LAST_PATCH


def parse_version(text: str) -> Version:
    """Parse ``"5.3.3"``, ``"5.3"`` (its last patch) or ``"V4_9_7"`` into a `Version`.

    Versions after the newest known line behave like that line. Raises `UsageError` for text that is
    not a version and for lines before 4.9, whose rules are not modelled.

    >>> parse_version("4.9")
    Version(major=4, minor=9, patch=8)
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a RocketMQ version; expected e.g. 4.9.7 or 5.3")
    major, minor = int(match[1]), int(match[2])
    if (major, minor) < OLDEST:
        raise UsageError(f"RocketMQ {text} is not modelled; the oldest supported line is 4.9")
    patch = int(match[3]) if match[3] is not None else LAST_PATCH.get((major, minor), 0)
    return Version(major, minor, patch)


@cache
def nearest_version(text: str) -> Version | None:
    """Return the version whose rules apply to the given one, or None if the text is not a version.

    A snapshot follows the rules of its release, a version before the oldest known line follows
    those of that line's first release, and ``HIGHER_VERSION`` follows those of the newest line.

    >>> nearest_version("5.3.4.SNAPSHOT"), nearest_version("4.8.0")
    (Version(major=5, minor=3, patch=4), Version(major=4, minor=9, patch=0))
    >>> nearest_version("HIGHER.VERSION"), nearest_version("-")
    (Version(major=5, minor=5, patch=0), None)
    """
    text = text.strip()
    if text.replace("_", ".") == HIGHER_TEXT:
        newest = max(LAST_PATCH)
        return Version(*newest, LAST_PATCH[newest])
    if is_before_known(text):
        return Version(*OLDEST, 0)
    return parse_version(text) if _PATTERN.fullmatch(text) else None


def is_before_known(text: str) -> bool:
    """Return True for a version before the oldest line whose rules are known.

    >>> is_before_known("V3_0_0_BETA5"), is_before_known("4.9.0"), is_before_known("-")
    (True, False, False)
    """
    match = _STATED.fullmatch(text.strip())
    return match is not None and (int(match[1]), int(match[2])) < OLDEST
