"""Names in the fixed columns of mqadmin, which cuts those that do not fit."""

from __future__ import annotations

import re

from rebalance_core.ingest.refusal import UNPARSABLE_LINE, Unreadable, shown

# TopicValidator and Validators of the client: [%|a-zA-Z0-9_-]; other clients check less.
_SPACE = re.compile(r"\s")


def token_of(value: str, name: str) -> str:
    """A value without spaces: a topic, a group, an address, a version.

    Raises:
        Unreadable: it is empty or holds a space.
    """
    if not value or _SPACE.search(value):
        raise Unreadable(UNPARSABLE_LINE, f"{name} is {shown(value)}, not one word")
    return value


def filled(value: str, name: str) -> str:
    """A value that may hold spaces, like the name of a broker, but is there.

    Raises:
        Unreadable: it is empty.
    """
    if not value:
        raise Unreadable(UNPARSABLE_LINE, f"the row has no {name}")
    return value


def is_truncated(value: str, width: int) -> bool:
    """Whether `UtilAll.frontStringAtLeast` may have truncated the name: it fills its column."""
    return len(value) >= width
