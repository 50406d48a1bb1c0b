"""Time zones by name; UTC needs no tz database, which small images lack."""

from __future__ import annotations

from datetime import UTC, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

UTC_NAME = "UTC"


def zone_named(name: str) -> tzinfo:
    """The zone of that name.

    Raises:
        ValueError: the tz database of this machine has none.
    """
    if name == UTC_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"{name} is no time zone of this machine's tz database") from error


def known_zone(name: str) -> bool:
    """True for a zone that `zone_named` has."""
    try:
        zone_named(name)
    except ValueError:
        return False
    return True
