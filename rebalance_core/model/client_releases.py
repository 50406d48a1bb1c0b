"""Releases of non-Java clients, derived from the versions that they report."""

import re

from rebalance_core.model.errors import UsageError
from rebalance_core.model.languages import (
    GO,
)

ROCKETMQ_MAJOR = 4
"""Versions from this one on are RocketMQ's. A client that reports one reports it in every release
(Go 4.5.2, C++ 4.6.0, .NET 4.8.0 or 4.9.7), so it does not identify the client's release.
"""

_GO_RELEASES = {"v2.0.0": "2.0.0", "v2.1.1": "2.1.2"}
"""Releases of the Go client by reported version. 2.1.2 and later still report v2.1.1; v2.1.0 may be
2.1.0 or 2.1.1, which start differently.
"""


def told_release(language: str, text: str | None) -> str | None:
    """Return the release that PROP_CLIENT_VERSION identifies, if any.

    >>> told_release("GO", "v2.1.1"), told_release("GO", "v2.1.0"), told_release("CPP", "V3_1_8")
    ('2.1.2', None, None)
    """
    return _GO_RELEASES.get(text or "") if language == GO else None


_RELEASE = re.compile(r"[vV]?(\d{1,9}(?:\.\d{1,9}){1,3})(?:[-_.+].*)?")


def release_of(version: str | None) -> tuple[int, ...] | None:
    """Return the release of a non-Java client, or None if the version does not identify it.

    >>> release_of("v2.1.3-0.20251226070945"), release_of("4.5.2")
    ((2, 1, 3), None)
    """
    match = _RELEASE.fullmatch((version or "").strip())
    release = () if match is None else tuple(map(int, match[1].split(".")))
    return release if release and release[0] < ROCKETMQ_MAJOR else None


def parse_release(text: str) -> str:
    """Return the validated release of a client of another language. Raises `UsageError`.

    >>> parse_release("2.1.2")
    '2.1.2'
    """
    if not _RELEASE.fullmatch(text.strip()):
        raise UsageError(f"{text!r} is not a client release; expected e.g. 2.1.2")
    return text
