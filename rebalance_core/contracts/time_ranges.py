"""The valid times in an input table: any others must be in a different unit."""

from typing import NamedTuple

from rebalance_core.model.times import YEAR_2000_MS, YEAR_2201_MS

YEAR_10000_MS = 253_402_387_200_000
"""10000-01-02T00:00:00Z: later than 9999-12-31 in every time zone."""


class TimeRange(NamedTuple):
    """Valid times, in epoch ms, and the message about others."""

    first_ms: int
    end_ms: int
    """The first time after this range."""
    too_early: str
    too_late: str


_LATE = "after the year 2200; in microseconds?"


_MOMENT = TimeRange(YEAR_2000_MS, YEAR_2201_MS, "before the year 2000; in seconds?", _LATE)


_SINCE = TimeRange(0, YEAR_2201_MS, "before 1970;", _LATE)


_TIMESTAMP = TimeRange(0, YEAR_10000_MS, "before 1970;", "after the year 9999; in microseconds?")


TIME_RANGES = {
    **dict.fromkeys(("event_ms", "observed_ms", "first_ms", "last_ms", "to_ms"), _MOMENT),
    "from_ms": _SINCE,
    "consume_timestamp_ms": _TIMESTAMP,
}
"""Bounds of times, by column of an input table.

In two columns, 0 and 1970 are valid and mean "from the beginning": where a queue rate starts, and
the timestamp of CONSUME_FROM_TIMESTAMP, which clients write as yyyyMMddHHmmss (rocketmq.md §5.1).
"""
