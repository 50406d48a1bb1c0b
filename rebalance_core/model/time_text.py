"""Times in text: UTC, as they stand in logs and as messages, summaries and pages show them."""

from datetime import UTC, datetime

from rebalance_core.model.time_units import SECOND_MS


def utc_time(time_ms: int) -> datetime | None:
    """The time to the second; None if it is beyond the calendar (a broken clock, a wrong unit)."""
    try:
        return datetime.fromtimestamp(time_ms // SECOND_MS, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def utc(time_ms: int, pattern: str = "%Y-%m-%d %H:%M:%SZ") -> str:
    """The time in text; the number itself if it is beyond the calendar.

    >>> utc(1795231709901)
    '2026-11-21 03:28:29Z'
    """
    at = utc_time(time_ms)
    return f"{time_ms} ms" if at is None else at.strftime(pattern)


def utc_ms(time_ms: int) -> str:
    """The time in text with its milliseconds.

    >>> utc_ms(1795231709901)
    '2026-11-21 03:28:29.901Z'
    """
    return utc(time_ms, f"%Y-%m-%d %H:%M:%S.{time_ms % SECOND_MS:03}Z")
