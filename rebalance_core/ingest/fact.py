"""What every parser yields: facts that one place of one file states, and what it could not read."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Fact:
    """One statement of one file, before statements of several files become one event.

    Attributes:
        kind: of a log line one of `LOG_FACTS`, of a document one of its parser's `KINDS`.
        at_ms: when it was true, epoch milliseconds UTC; None: when the file was written.
        values: the fields of the kind.
        source: ``file:line``, or ``file`` for a document.
    """

    kind: str
    at_ms: int | None
    values: Mapping[str, Any]
    source: str


@dataclass(frozen=True, slots=True)
class Unread:
    """A line or document that looks like one of ours and does not parse."""

    source: str
    raw: str
    code: str
    message: str


def file_of(source: str) -> str:
    """The file of a ``file:line``. Its name may hold colons itself, as a client id of IPv6 does.

    >>> file_of("mqadmin/1-consumerStatus-g/[::1]@1#2.txt:33"), file_of("[::1]@1#2.txt")
    ('mqadmin/1-consumerStatus-g/[::1]@1#2.txt', '[::1]@1#2.txt')
    """
    name, _, line = source.rpartition(":")
    return name if line.isdecimal() else source
