"""Groups with the strategy CONFIG."""

from tests.unit.replay.histories import (
    RETRY,
    column,
    join,
    owners,
    replay,
    topic,
)


def test_config_holds_the_listed_queues_of_subscribed_topics_existing_or_not() -> None:
    listed = "CONFIG(queues=T/a/0|T/z/9|U/a/0)"
    tables = replay(topic(0, 2), join(1, "x", strategy=listed), commits=[], offsets=[], retry=True)
    assert owners(tables) == {f"{RETRY}/a0": "-", "a0": "x", "a1": "-", "z9": "x"}
    assert column(tables, "status") == ["SETTLED"]
    missing = next(row for row in tables["pull_starts"] if row["broker_name"] == "z")
    assert (missing["rule"], missing["status"]) == ("QUERY_FAILED", "FAILED")
    assert missing["start_offset"] is missing["start_offset_low"] is None


def test_config_never_freezes_and_takes_a_retry_queue_only_if_listed() -> None:
    listed = "CONFIG(queues=T/a/0|%25RETRY%25g/a/0)"
    tables = replay(topic(0, 1), join(1, "x", strategy=listed), topic(9, 0), retry=True)
    assert column(tables, "status") == ["SETTLED", "SETTLED"]
    assert owners(tables) == {f"{RETRY}/a0": "x", "a0": "x"}
    assert column(tables, "queues") == [2, 1]
