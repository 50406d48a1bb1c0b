"""Start offsets: answers of the broker, the search by time, and corrections of the first pull."""

import bisect
import random
from typing import Any

import pytest

from rebalance_core.model.errors import StartOffsetError, UsageError
from rebalance_core.protocol.broker_offset_reply import broker_offset_reply
from rebalance_core.protocol.first_pull import first_pull_correction
from rebalance_core.protocol.start_offset import (
    MAX_OFFSET_FAILED,
    SEARCH_OFFSET_FAILED,
    compute_pull_from_where,
    compute_pull_from_where_no_exception,
)
from rebalance_core.protocol.timestamp_search import timestamp_search_bounds

# Start offsets row by row of rocketmq.md §5.1; the complete grid is in tests/conformance.

DEFAULTS: dict[str, Any] = {
    "consumer_type": "PUSH",
    "consume_from_where": "CONSUME_FROM_LAST_OFFSET",
    "topic": "T",
    "stored_offset": -1,
    "max_offset": 123,
    "timestamp_offset": 45,
    "version": "5.3.3",
}


def start(**changes: Any) -> int:
    return compute_pull_from_where(**{**DEFAULTS, **changes})


@pytest.mark.parametrize(
    ("mode", "normal", "retry"),
    [
        ("CONSUME_FROM_LAST_OFFSET", 123, 0),
        ("CONSUME_FROM_LAST_OFFSET_AND_FROM_MIN_WHEN_BOOT_FIRST", 123, 0),
        ("CONSUME_FROM_MIN_OFFSET", 123, 0),
        ("CONSUME_FROM_MAX_OFFSET", 123, 0),
        ("CONSUME_FROM_FIRST_OFFSET", 0, 0),
        ("CONSUME_FROM_TIMESTAMP", 45, 123),
    ],
)
def test_nothing_stored_the_mode_decides(mode: str, normal: int, retry: int) -> None:
    assert start(consume_from_where=mode) == normal
    assert start(consume_from_where=mode, topic="%RETRY%G") == retry
    assert start(consume_from_where=mode, stored_offset=77) == 77
    assert start(consume_from_where=mode, stored_offset=0) == 0


def test_a_pull_consumer_always_starts_at_zero() -> None:
    assert start(consumer_type="PULL", stored_offset=77) == 0
    assert start(consumer_type="PULL", stored_offset=-2) == 0


@pytest.mark.parametrize(
    ("mode", "message"),
    [
        ("CONSUME_FROM_LAST_OFFSET", "Failed to query consume offset from offset store"),
        ("CONSUME_FROM_MAX_OFFSET", "Failed to query consume offset from offset store"),
        ("CONSUME_FROM_FIRST_OFFSET", "Failed to query offset from offset store"),
        ("CONSUME_FROM_TIMESTAMP", "Failed to query offset from offset store"),
    ],
)
def test_an_unreadable_store_throws_in_push_of_5x_only(mode: str, message: str) -> None:
    failing = {"consume_from_where": mode, "stored_offset": -2}
    with pytest.raises(StartOffsetError) as raised:
        start(**failing)
    assert str(raised.value) == message
    assert start(**failing, version="4.9.7") == -1
    if mode != "CONSUME_FROM_MAX_OFFSET":
        assert start(**failing, consumer_type="LITE_PULL") == -1


@pytest.mark.parametrize("version", ["4.9.7", "5.3.3"])
@pytest.mark.parametrize("consumer_type", ["PUSH", "LITE_PULL"])
def test_a_failed_look_up_throws_only_where_it_is_needed(version: str, consumer_type: str) -> None:
    who = {"version": version, "consumer_type": consumer_type}
    with pytest.raises(StartOffsetError, match=MAX_OFFSET_FAILED):
        start(**who, max_offset=None)
    with pytest.raises(StartOffsetError, match=SEARCH_OFFSET_FAILED):
        start(**who, consume_from_where="CONSUME_FROM_TIMESTAMP", timestamp_offset=None)
    assert start(**who, max_offset=None, stored_offset=5) == 5
    assert start(**who, max_offset=None, topic="%RETRY%G") == 0


def test_lite_pull_refuses_deprecated_modes_before_it_looks_at_anything() -> None:
    refused = {"consumer_type": "LITE_PULL", "consume_from_where": "CONSUME_FROM_MIN_OFFSET"}
    with pytest.raises(StartOffsetError, match="Invalid ConsumeFromWhere Value"):
        start(**refused, stored_offset=77)
    with pytest.raises(StartOffsetError, match="Invalid ConsumeFromWhere Value"):
        compute_pull_from_where_no_exception(**{**DEFAULTS, **refused})


def test_without_exceptions_a_failure_is_minus_one() -> None:
    assert compute_pull_from_where_no_exception(**{**DEFAULTS, "stored_offset": -2}) == -1
    assert compute_pull_from_where_no_exception(**{**DEFAULTS, "max_offset": None}) == -1
    assert compute_pull_from_where_no_exception(**DEFAULTS) == 123


def test_a_negative_answer_throws_in_push_of_5x() -> None:
    with pytest.raises(StartOffsetError, match="Found unexpected result -1"):
        start(max_offset=-1)
    assert start(max_offset=-1, version="4.9") == -1


@pytest.mark.parametrize(
    "wrong", [{"consumer_type": "push"}, {"consume_from_where": "LAST"}, {"version": "latest"}]
)
def test_unknown_names_are_usage_errors(wrong: dict[str, str]) -> None:
    with pytest.raises(UsageError, match="expected"):
        start(**wrong)


# The broker's answer for an offset never committed (rocketmq.md §5.3).

OLD, NEW = "5.0.0", "5.1.0"


def reply(
    version: str,
    *,
    committed: int | None = None,
    minimum: int | None = 0,
    maximum: int | None = 10,
    cached: bool | None = True,
    zero: bool = True,
) -> int | None:
    return broker_offset_reply(
        committed_offset=committed,
        min_offset=minimum,
        max_offset=maximum,
        head_cached=cached,
        set_zero_if_not_found=zero,
        version=version,
    )


@pytest.mark.parametrize("version", ["4.9.7", OLD, NEW, "5.3.3"])
class TestEveryVersion:
    def test_a_commit_is_the_answer_even_zero(self, version: str) -> None:
        assert reply(version, committed=7, minimum=9, zero=False) == 7
        assert reply(version, committed=0, minimum=9) == 0

    def test_a_queue_with_deleted_messages_is_not_found(self, version: str) -> None:
        assert reply(version, minimum=1) is None

    def test_a_request_that_forbids_zero_gets_not_found(self, version: str) -> None:
        assert reply(version, zero=False) is None

    def test_a_young_queue_in_memory_answers_zero(self, version: str) -> None:
        assert reply(version) == 0
        assert reply(version, cached=None) == 0

    def test_a_head_out_of_memory_is_not_found(self, version: str) -> None:
        assert reply(version, cached=False) is None


@pytest.mark.parametrize(
    ("version", "answer"), [("4.9.7", 0), (OLD, 0), (NEW, None), ("5.3", None)]
)
@pytest.mark.parametrize("cached", [True, False, None])
def test_an_empty_queue_answered_zero_until_5_1_0(
    version: str, answer: int | None, cached: bool | None
) -> None:
    assert reply(version, maximum=0, cached=cached) == answer
    assert reply(version, minimum=None, maximum=None, cached=cached) == answer


# Corrections of the first pull (rocketmq.md §5.5).


@pytest.mark.parametrize("version", ["4.9.3", "4.9.4", "5.3.3"])
@pytest.mark.parametrize(
    ("offset", "minimum", "maximum", "corrected"),
    [
        (10, 10, 20, None),
        (20, 10, 20, None),  # at the end: waits
        (9, 10, 20, 10),
        (0, 10, 20, 10),
        (21, 10, 20, 20),
        (10, 10, 10, None),  # everything deleted
        (11, 10, 10, 10),
        (0, 0, 0, None),
        (5, 0, 0, 0),
    ],
)
def test_an_offset_outside_goes_to_the_nearer_end(
    version: str, offset: int, minimum: int, maximum: int, corrected: int | None
) -> None:
    assert (
        first_pull_correction(
            offset=offset, min_offset=minimum, max_offset=maximum, version=version
        )
        == corrected
    )


@pytest.mark.parametrize(
    ("version", "corrected"), [("4.9.0", 0), ("4.9.3", 0), ("4.9.4", 20), ("5.3.3", 20)]
)
def test_an_overflow_of_a_queue_with_min_zero_replayed_it_until_4_9_3(
    version: str, corrected: int
) -> None:
    assert (
        first_pull_correction(offset=21, min_offset=0, max_offset=20, version=version) == corrected
    )


# Bounds of the timestamp search, also against a broker written down message by message.

# (observed_ms, min_offset, max_offset)
SEEN = [(300, 5, 30), (100, 0, 10), (200, 5, 20)]


@pytest.mark.parametrize(
    ("timestamp", "old", "new"),
    [
        (50, (5, 10), (5, 10)),  # before everything: from min on
        (150, (9, 20), (10, 20)),
        (200, (9, 20), (10, 20)),  # an observation at the timestamp bounds from above
        (250, (19, 30), (20, 30)),
        (301, (29, None), (30, None)),  # the future: max - 1 before 5.1.1, max since
    ],
)
def test_observations_before_and_after_enclose_the_answer(
    timestamp: int, old: tuple[int, int | None], new: tuple[int, int | None]
) -> None:
    assert timestamp_search_bounds(SEEN, timestamp, searched_ms=999, version="5.1.0") == old
    assert timestamp_search_bounds(SEEN, timestamp, searched_ms=999, version="5.1.1") == new


def test_both_bounds_are_at_least_the_newest_min_known_at_the_search() -> None:
    seen = [(100, 0, 10), (200, 0, 20), (900, 40, 50)]
    assert timestamp_search_bounds(seen, 150, searched_ms=950, version="5.3") == (40, 40)
    assert timestamp_search_bounds(seen, 150, searched_ms=899, version="5.3") == (10, 20)
    assert timestamp_search_bounds([(900, 3, 9)], 150, searched_ms=200, version="5.3") == (3, 9)


def test_nothing_seen_bounds_nothing() -> None:
    assert timestamp_search_bounds([], 150, searched_ms=200, version="5.3") == (0, None)


def lower_bound(stored: list[int], timestamp: int) -> int:
    return bisect.bisect_left(stored, timestamp)


def nearest(stored: list[int], timestamp: int) -> int:
    if not stored:
        return 0
    return min(range(len(stored)), key=lambda i: (abs(stored[i] - timestamp), i))


@pytest.mark.parametrize("seed", range(200))
def test_the_answer_of_a_broker_lies_between_the_bounds(seed: int) -> None:
    draw = random.Random(seed)
    stored = sorted(draw.randrange(1000) for _ in range(draw.randrange(60)))
    moments = sorted(draw.sample(range(1001), draw.randrange(1, 8)))
    seen = [(moment, 0, bisect.bisect_right(stored, moment)) for moment in moments]
    timestamp = draw.randrange(1001)
    for version, search in (("4.9.7", nearest), ("5.3.3", lower_bound)):
        low, high = timestamp_search_bounds(seen, timestamp, searched_ms=2000, version=version)
        answer = search(stored, timestamp)
        assert low <= answer, (seed, version)
        assert high is None or answer <= high, (seed, version)
