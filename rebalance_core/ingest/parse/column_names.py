"""Names in the fixed columns of mqadmin, which truncates those that do not fit."""

import re

from rebalance_core.ingest.fact import (
    UNPARSABLE_LINE,
    Unreadable,
    shown,
)

# TopicValidator and the client's Validators: [%|a-zA-Z0-9_-]; other clients check less.
_SPACE = re.compile(r"\s")


def token_of(value: str, name: str) -> str:
    """Return a value without spaces: a topic, a group, an address, a version.

    Raises:
        Unreadable: it is empty or contains a space.
    """
    if not value or _SPACE.search(value):
        raise Unreadable(UNPARSABLE_LINE, f"{name} is {shown(value)}, not one word")
    return value


def filled(value: str, name: str) -> str:
    """Return a non-empty value that may contain spaces, such as a broker's name.

    Raises:
        Unreadable: it is empty.
    """
    if not value:
        raise Unreadable(UNPARSABLE_LINE, f"the row has no {name}")
    return value


_NAME_WIDTHS = (32, 64)
"""Width of the name columns in characters, by version."""


def is_truncated(value: str, width: int) -> bool:
    """Return True if ``UtilAll.frontStringAtLeast`` may have truncated the name, which fills its
    column.

    The width of a column whose header was collapsed is unknown.
    """
    return len(value) >= width if width >= min(_NAME_WIDTHS) else len(value) in _NAME_WIDTHS
