"""Time zones by name; UTC needs no tz database, which small images lack."""

from datetime import UTC, datetime, timedelta, tzinfo
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from rebalance_core.ingest.parse.java_text import MS_MAX

UTC_NAME = "UTC"


_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


def zone_named(name: str) -> tzinfo:
    """Return the zone with that name.

    Raises:
        ValueError: this machine's tz database has no such zone.
    """
    if name == UTC_NAME:
        return UTC
    try:
        return ZoneInfo(name)
    except (ZoneInfoNotFoundError, OSError) as error:
        raise ValueError(f"{name} is not a time zone of this machine's tz database") from error


def known_zone(name: str) -> bool:
    """Return True for a zone that `zone_named` knows."""
    try:
        zone_named(name)
    except ValueError:
        return False
    return True


class ReadAt(tzinfo):
    """A time zone for times read at a known moment, such as those that a dump prints.

    In the hour that the zone repeats when summer time ends, a time belongs to the second pass
    unless that had not begun yet.
    """

    def __init__(self, zone: tzinfo, at_ms: int) -> None:
        self._zone = zone
        until = _EPOCH + timedelta(milliseconds=min(at_ms, MS_MAX))
        self._until = until.replace(tzinfo=None)

    def utcoffset(self, moment: datetime | None) -> timedelta | None:
        """Return the UTC offset in the pass of the hour to which the time belongs."""
        if moment is None:
            return None
        local = moment.replace(tzinfo=None)
        first = local.replace(tzinfo=self._zone, fold=0).utcoffset()
        second = local.replace(tzinfo=self._zone, fold=1).utcoffset()
        if first is None or second is None or second >= first:
            return first
        return second if local - second <= self._until else first

    def dst(self, moment: datetime | None) -> timedelta | None:
        """Return None, because the part due to daylight saving is unknown."""
        return None

    def tzname(self, moment: datetime | None) -> str | None:
        """Return the zone's own name for the time."""
        return None if moment is None else self._zone.tzname(moment.replace(tzinfo=self._zone))


def is_repeated(hour: str, zone: tzinfo) -> bool:
    """Return True for an hour (``yyyy-MM-dd HH``) part of which occurs twice in the zone.

    >>> [is_repeated(f"2026-11-01 0{hour}", ZoneInfo("America/New_York")) for hour in range(3)]
    [False, True, False]
    """
    try:
        ends = [datetime.fromisoformat(f"{hour}:{rest}") for rest in ("00:00", "59:59")]
    except ValueError:
        return False
    return any(zone.utcoffset(end) != zone.utcoffset(end.replace(fold=1)) for end in ends)
