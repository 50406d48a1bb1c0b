"""RocketMQ versions: parsing and order. What changed when stands beside the rule that changed."""

import re
from typing import NamedTuple

from rebalance_core.model.errors import UsageError

LAST_PATCH = {
    (4, 9): 8, (5, 0): 0, (5, 1): 4, (5, 2): 0, (5, 3): 3, (5, 4): 0, (5, 5): 0,
}  # fmt: skip
"""The last release of each known line that has a client: of 5.3.4 and 5.5.1 none was published."""
OLDEST = (4, 9)

_PATTERN = re.compile(r"[Vv]?(\d+)[._](\d+)(?:[._](\d+))?(?:-SNAPSHOT)?")


class Version(NamedTuple):
    """A released version; compares numerically, also with plain tuples such as ``(5, 1, 1)``."""

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
    """True if the rules of its line were read; later lines are taken as the newest known one.

    >>> is_known_line(Version(5, 5, 1)), is_known_line(Version(5, 6, 0))
    (True, False)
    """
    return version[:2] in LAST_PATCH


def parse_version(text: str) -> Version:
    """``"5.3.3"``, ``"5.3"`` (its last patch) or ``"V4_9_7"`` as a `Version`.

    Versions after the newest known line behave as that line. Raises `UsageError` for text that is
    no version and for lines before 4.9, whose rules are not modelled.

    >>> parse_version("4.9")
    Version(major=4, minor=9, patch=8)
    """
    match = _PATTERN.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"{text!r} is not a RocketMQ version; expected e.g. 4.9.7 or 5.3")
    major, minor = int(match[1]), int(match[2])
    if (major, minor) < OLDEST:
        raise UsageError(f"RocketMQ {text} is not modelled; the oldest line is 4.9")
    patch = int(match[3]) if match[3] is not None else LAST_PATCH.get((major, minor), 0)
    return Version(major, minor, patch)
