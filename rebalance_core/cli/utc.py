"""Times in summaries, where there may be none."""

from rebalance_core.model.times import utc as known_utc


def utc(time_ms: int | None) -> str:
    """The time in UTC, as people compare it with logs; "-" for None.

    >>> utc(1795231709901), utc(None)
    ('2026-11-21 03:28:29Z', '-')
    """
    return "-" if time_ms is None else known_utc(time_ms)
