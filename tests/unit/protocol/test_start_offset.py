"""Start offsets row by row of rocketmq.md §5.1; the complete grid is in tests/conformance."""

from typing import Any

import pytest

from rebalance_core.model.errors import StartOffsetError, UsageError
from rebalance_core.protocol.start_offset import (
    MAX_OFFSET_FAILED,
    SEARCH_OFFSET_FAILED,
    compute_pull_from_where,
    compute_pull_from_where_no_exception,
)

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
