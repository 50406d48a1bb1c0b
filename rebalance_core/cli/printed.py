"""Times, durations and places as summaries print them."""

from rebalance_core.cli.run_on import PROCESS, SPARK
from rebalance_core.model.times import utc as known_utc

# How long a run took, and where, in summaries.

_PLACES = {PROCESS: "in process", SPARK: "on Spark"}
_EXACT_BELOW = 10


def duration(seconds: float) -> str:
    """Seconds as a person wants them.

    >>> duration(0.234), duration(51.4)
    ('0.2 s', '51 s')
    """
    return f"{seconds:.1f} s" if seconds < _EXACT_BELOW else f"{seconds:,.0f} s"


def place(run_on: str) -> str:
    """Where a run took place.

    >>> place("spark")
    'on Spark'
    """
    return _PLACES[run_on]


# Times in summaries, where there may be none.


def utc(time_ms: int | None) -> str:
    """The time in UTC, as people compare it with logs; "-" for None.

    >>> utc(1795231709901), utc(None)
    ('2026-11-21 03:28:29Z', '-')
    """
    return "-" if time_ms is None else known_utc(time_ms)
