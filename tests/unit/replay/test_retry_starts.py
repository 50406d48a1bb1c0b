"""`pull_starts` of retry topics."""

from typing import Any

from tests.unit.replay.first_starts import (
    FIRST,
    JOINED_MS,
    TIMESTAMP,
    short,
    starts,
)
from tests.unit.replay.histories import (
    RETRY,
    join,
    seen,
    topic,
)


def retry_start(mode: str | None, **offsets: Any) -> tuple[Any, ...]:
    rows = starts(
        topic(0, 1),
        join(JOINED_MS, "x", consume_from_where=mode),
        commits=[],
        retry=True,
        **offsets,
    )
    return short(next(row for row in rows if row["topic"] == RETRY))


def test_a_retry_queue_starts_at_zero_or_under_timestamp_at_its_end() -> None:
    # Two observations, min above 0: the broker does not answer 0 by itself.
    old = [seen(f"{RETRY}/a0", 90_000, 3, 7), seen(f"{RETRY}/a0", 200_000, 3, 9)]
    assert retry_start(None, offsets=old) == ("RETRY_ZERO", 0, 0, 0, "OK")
    assert retry_start(FIRST, offsets=old) == ("RETRY_ZERO", 0, 0, 0, "OK")
    assert retry_start(TIMESTAMP, offsets=old) == ("RETRY_MAX", 7, 7, 9, "OK")


def test_a_retry_queue_without_an_observation_is_empty() -> None:
    assert retry_start(None, offsets=[])[:2] == ("RETRY_ZERO", 0)
    assert retry_start(TIMESTAMP, offsets=[])[:2] == ("RETRY_MAX", 0)
