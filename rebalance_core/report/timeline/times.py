"""Times as the page shows them: UTC, ISO 8601, as they stand in the logs."""

from datetime import UTC, datetime

from markupsafe import Markup

MILLIS = 1000
DAY_MS, HOUR_MS, MINUTE_MS = 86_400_000, 3_600_000, 60_000


def utc_time(time_ms: int) -> datetime | None:
    """The time; None if it is beyond the calendar (a broken clock, a wrong unit)."""
    try:
        return datetime.fromtimestamp(time_ms // MILLIS, UTC)
    except (ValueError, OverflowError, OSError):
        return None


def utc(time_ms: int, pattern: str = "%Y-%m-%d %H:%M:%SZ") -> str:
    """The time in text.

    >>> utc(1795231709901)
    '2026-11-21 03:28:29Z'
    """
    at = utc_time(time_ms)
    return f"{time_ms} ms" if at is None else at.strftime(pattern)


def time_tag(time_ms: int | None) -> Markup:
    """A ``<time>`` element: seconds to read, milliseconds for a program; "–" for None."""
    if time_ms is None:
        return Markup("–")
    if utc_time(time_ms) is None:
        return Markup("<span>{} ms</span>").format(time_ms)
    exact = utc(time_ms, "%Y-%m-%dT%H:%M:%S") + f".{time_ms % MILLIS:03d}Z"
    return Markup('<time datetime="{}">{}</time>').format(exact, utc(time_ms))


def duration(span_ms: int) -> str:
    """A duration in its two largest units.

    >>> duration(29_400_000), duration(90_000), duration(450)
    ('8 h 10 min', '1 min 30 s', '450 ms')
    """
    units = (("d", DAY_MS), ("h", HOUR_MS), ("min", MINUTE_MS), ("s", MILLIS))
    parts = []
    for name, size in units:
        if span_ms >= size:
            parts.append(f"{span_ms // size:,} {name}")
        elif parts:
            parts.append("")
        span_ms %= size
    return " ".join(part for part in parts[:2] if part) or f"{span_ms} ms"
