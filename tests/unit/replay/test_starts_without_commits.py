"""`pull_starts` of groups that never committed: which rule, which bounds."""

from typing import Any

import pytest

from tests.unit.replay.first_starts import (
    FIRST,
    JOINED_MS,
    OLD,
    TIMESTAMP,
    first_start,
    starts,
)
from tests.unit.replay.histories import (
    join,
    seen,
    topic,
)


def test_last_offset_starts_at_the_end_which_moves_until_the_window_closes() -> None:
    assert first_start() == ("MAX_OFFSET", 50, 50, 90, "OK")
    assert first_start(offsets=OLD[:1]) == ("MAX_OFFSET", 50, 50, None, "OK")
    at_once = [*OLD, seen("a0", JOINED_MS + 3_000, 10, 60)]
    assert first_start(offsets=at_once) == ("MAX_OFFSET", 50, 50, 60, "OK")


def test_first_offset_starts_at_zero_seen_or_not() -> None:
    assert first_start(consume_from_where=FIRST) == ("FIRST_ZERO", 0, 0, 0, "OK")
    assert first_start(consume_from_where=FIRST, offsets=None) == ("FIRST_ZERO", 0, 0, 0, "OK")


def test_a_members_own_mode_counts() -> None:
    (row,) = starts(
        topic(0, 1), join(JOINED_MS, "x", consume_from_where=FIRST), offsets=OLD, commits=[]
    )
    assert row["rule"] == "FIRST_ZERO"


@pytest.mark.parametrize(
    ("timestamp_ms", "expected"),
    [
        (50_000, ("TIMESTAMP_SEARCH", 10, 10, 50, "OK")),  # before all: from min on
        (95_000, ("TIMESTAMP_SEARCH", 50, 50, 90, "OK")),
        (90_000, ("TIMESTAMP_SEARCH", 10, 10, 50, "OK")),  # seen at the timestamp bounds above
        (None, (None, None, None, None, "UNKNOWN")),
    ],
)
def test_timestamp_search(timestamp_ms: int | None, expected: tuple[Any, ...]) -> None:
    assert first_start(consume_from_where=TIMESTAMP, consume_timestamp_ms=timestamp_ms) == expected


@pytest.mark.parametrize(
    ("version", "offsets", "rule"),
    [
        ("5.3", (0, 50, None), "BROKER_ZERO"),
        ("5.3", (0, 50, True), "BROKER_ZERO"),
        ("5.3", (0, 50, False), "MAX_OFFSET"),
        ("5.3", (1, 50, True), "MAX_OFFSET"),
        ("5.3", (0, 0, None), "MAX_OFFSET"),  # nothing is in the page cache, so nothing is known
        ("5.0", (0, 0, None), "BROKER_ZERO"),  # before 5.1.0 nothing on disk is enough
        ("4.9", (0, 0, False), "BROKER_ZERO"),  # head_cached counts only when max > 0
    ],
)
def test_broker_zero_by_version(
    version: str, offsets: tuple[int, int, bool | None], rule: str
) -> None:
    rows = [seen("a0", at, *offsets) for at in (90_000, 200_000)]
    assert first_start(offsets=rows, broker_version=version)[0] == rule


def test_an_observation_inside_the_window_widens_a_broker_zero() -> None:
    # Young before, its first message gone inside the window: the client may also see the end.
    rows = [
        seen("a0", 90_000, 0, 50),
        seen("a0", JOINED_MS + 1_000, 1, 60),
        seen("a0", 200_000, 1, 70),
    ]
    assert first_start(offsets=rows) == ("BROKER_ZERO", 0, 0, 70, "OK")
    # The other way round: entry 0 is read again inside the window, so 0 is possible too.
    rows = [
        seen("a0", 90_000, 0, 50, False),
        seen("a0", JOINED_MS + 1_000, 0, 60, True),
        seen("a0", 200_000, 0, 70, True),
    ]
    assert first_start(offsets=rows) == ("MAX_OFFSET", 50, 0, 70, "OK")


def test_without_an_observation_nothing_is_said() -> None:
    unknown = (None, None, None, None, "UNKNOWN")
    assert first_start(offsets=None) == unknown
    assert first_start(offsets=[]) == unknown
    assert first_start(offsets=OLD[1:]) == unknown  # seen only after the change
    assert first_start(commits=None) == unknown


def test_a_pull_consumer_always_starts_at_zero() -> None:
    assert first_start(consumer_type="PULL") == ("PULL_ALWAYS_ZERO", 0, 0, 0, "OK")
    assert first_start(consumer_type="PULL", commits=None, offsets=None)[0] == "PULL_ALWAYS_ZERO"


def test_lite_pull_refuses_a_deprecated_mode() -> None:
    mode = "CONSUME_FROM_MIN_OFFSET"
    assert first_start(consume_from_where=mode)[:2] == ("MAX_OFFSET", 50)
    failed = first_start(consume_from_where=mode, consumer_type="LITE_PULL")
    assert failed == ("QUERY_FAILED", None, None, None, "FAILED")
