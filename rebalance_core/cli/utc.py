"""Times in summaries."""

from datetime import UTC, datetime

MILLIS = 1000


def utc(time_ms: int | None) -> str:
    """A time as people compare it with logs.

    >>> utc(1795231709901)
    '2026-11-21 03:28:29Z'
    """
    if time_ms is None:
        return "-"
    return datetime.fromtimestamp(time_ms // MILLIS, UTC).strftime("%Y-%m-%d %H:%M:%SZ")
