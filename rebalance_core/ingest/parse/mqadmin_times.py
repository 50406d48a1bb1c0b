"""Times that mqadmin prints in the local time of the machine on which it ran."""

import re
from datetime import UTC, datetime, timedelta, tzinfo

from rebalance_core.ingest.fact import (
    BAD_TIME,
    Unreadable,
    shown,
)

# UtilAll.formatDate(…, "yyyy-MM-dd HH:mm:ss") and UtilAll.timeMillisToHumanString2.
_DASHED = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2}) ([0-9]{2}):([0-9]{2}):([0-9]{2})(?:,([0-9]{3}))?"
)


# UtilAll.timeMillisToHumanString.
_PACKED = re.compile(r"([0-9]{4})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{2})([0-9]{3})")


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


_MILLISECOND = timedelta(milliseconds=1)


def dashed_ms(text: str, time_zone: tzinfo) -> int:
    """Return the epoch milliseconds of ``yyyy-MM-dd HH:mm:ss`` or ``yyyy-MM-dd HH:mm:ss,SSS``.

    If a clock change repeats the hour, the zone determines the pass (`zones.ReadAt`); a plain zone
    takes the first.

    Raises:
        Unreadable: it has another format, or no such time exists.
    """
    return _epoch_ms(_DASHED.fullmatch(text), text, time_zone)


def packed_ms(text: str, time_zone: tzinfo) -> int:
    """Return the epoch milliseconds of ``yyyyMMddHHmmssSSS``.

    Raises:
        Unreadable: it has another format, or no such time exists.
    """
    return _epoch_ms(_PACKED.fullmatch(text), text, time_zone)


def _epoch_ms(match: re.Match[str] | None, text: str, time_zone: tzinfo) -> int:
    if match is None:
        raise Unreadable(BAD_TIME, f"{shown(text)} is not a time as mqadmin prints it")
    year, month, day, hour, minute, second, milli = (int(part or 0) for part in match.groups())
    try:
        local = datetime(year, month, day, hour, minute, second, milli * 1000, tzinfo=time_zone)
        return (local - _EPOCH) // _MILLISECOND
    except (ValueError, OverflowError) as error:
        raise Unreadable(BAD_TIME, f"{shown(text)} is not a time that exists: {error}") from None
