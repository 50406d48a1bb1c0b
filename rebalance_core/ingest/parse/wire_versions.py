"""Versions as sent over the wire: the ordinal of ``MQVersion.Version``."""

from collections.abc import Iterator, Mapping
from functools import cache

from rebalance_core.model.versions import (
    HIGHER_TEXT,
    is_before_known,
    is_known_line,
    nearest_version,
)

V5_0_0 = 413


HIGHER_VERSION = 612
"""The ordinal after the last 5.x; a later enum may assign releases to it, so it identifies none."""


V3_4_9 = 121  # sent by ali-ons, a client for Node.js, in every release


V4_0_0 = 213  # below it, the enum is irregular and the releases are not modelled


@cache
def version_of_ordinal(ordinal: int) -> str | None:
    """Return the version with that ordinal, or a snapshot's release; None below 4.0.0 except for
    3.4.9.

    >>> version_of_ordinal(407), version_of_ordinal(478), version_of_ordinal(12)
    ('4.9.7', '5.3.3', None)
    >>> version_of_ordinal(513), version_of_ordinal(612)
    ('5.5.0', 'HIGHER.VERSION')
    """
    if ordinal < V4_0_0:
        return "3.4.9" if ordinal == V3_4_9 else None
    if ordinal >= HIGHER_VERSION:
        return HIGHER_TEXT
    number = 500 + ((ordinal | 1) - V5_0_0) // 2  # releases are odd, 5.0.0 is 500
    return f"{number // 100}.{number // 10 % 10}.{number % 10}"


def plain_version(text: str) -> str:
    """Return ``5.3.3`` for ``V5_3_3``; for a snapshot, its release.

    >>> plain_version("V4_9_7"), plain_version("V5_3_4_SNAPSHOT")
    ('4.9.7', '5.3.4')
    """
    plain = text.removeprefix("V").replace("_", ".")
    return plain.removesuffix("-SNAPSHOT").removesuffix(".SNAPSHOT")


def is_later(version: str) -> bool:
    """Return True for a version after the newest line whose rules the simulator knows.

    >>> is_later("5.5.1"), is_later("5.6.0"), is_later("4.3.0"), is_later("HIGHER.VERSION")
    (False, True, False, True)
    """
    if version == HIGHER_TEXT:
        return True
    nearest = nearest_version(version)
    return nearest is not None and not is_known_line(nearest)


def not_modelled(versions: Mapping[str, str]) -> Iterator[tuple[str, list[str], str, str]]:
    """Yield each version whose rules are unknown, the clients or brokers with it, its substitute,
    and the remedy.

    Args:
        versions: the versions by client or broker, as returned by `plain_version`.
    """
    for version in sorted({*versions.values()}):
        having = sorted(name for name, own in versions.items() if own == version)
        if is_before_known(version):
            instead = f"is older than the oldest known line; {nearest_version(version)}'s rules"
            remedy = "Upgrade to 4.9 or later; until then treat starts and windows with caution."
        elif is_later(version):
            instead = "is later than the newest known line; that line's rules"
            remedy = (
                "Look for a release of this project that supports the version; until then treat "
                "starts and windows with caution."
            )
        else:
            continue
        yield version, having, f"{instead} are used", remedy
