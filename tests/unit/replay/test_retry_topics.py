"""Where retry topics lie, and who owns them."""

import pytest

from tests.unit.replay.histories import (
    RETRY,
    column,
    diffs,
    event,
    join,
    leave,
    owners,
    replay,
    topic,
    windows,
)


def test_the_retry_topic_appears_with_the_first_subscription_and_stays_for_ever() -> None:
    tables = replay(
        join(1, "x"),
        topic(9_000, 1, perm=0),
        event(99_000, "TOPIC_DELETED", topic="T"),
        leave(200_000, "x"),
        join(300_000, "y", "U"),
        retry=True,
    )
    assert owners(tables, 0) == {}
    assert column(tables, "status")[0] == "FROZEN"
    assert owners(tables, 1) == {f"{RETRY}/a0": "x"}
    assert owners(tables, 2) == {f"{RETRY}/a0": "-"}
    assert owners(tables, 3) == {f"{RETRY}/a0": "y"}


def test_the_retry_topics_own_configuration_counts() -> None:
    """Brokers create it at any heartbeat of the group, also where none of its topics lies."""
    tables = replay(
        topic(0, 1),
        topic(0, 2, RETRY, broker="b"),
        join(1, "x"),
        join(1, "y"),
        event(100_000, "BROKER_DOWN", broker_name="b"),
        event(200_000, "BROKER_UP", broker_name="b"),
        event(300_000, "TOPIC_DELETED", topic=RETRY, broker_name="b"),
        topic(400_000, 3, RETRY),
        event(500_000, "TOPIC_DELETED", topic=RETRY),
        retry=True,
    )
    assert owners(tables, 0) == {
        f"{RETRY}/a0": "x",
        f"{RETRY}/b0": "x",
        f"{RETRY}/b1": "y",
        "a0": "x",
    }
    assert column(tables, "queues") == [4, 2, 4, 2, 4, 2]
    # on the brokers of its topics the group creates it again
    assert owners(tables, 5) == {f"{RETRY}/a0": "x", "a0": "x"}


def test_a_retry_topic_is_found_on_a_broker_though_no_topic_of_the_group_is_anywhere() -> None:
    tables = replay(topic(0, 1, RETRY, broker="b"), join(1, "x"), retry=True)
    assert owners(tables) == {f"{RETRY}/b0": "x"}


def test_a_change_of_the_retry_topic_has_its_window_for_retry_rows_only() -> None:
    tables = replay(
        topic(0, 1),
        join(1_000, "x"),
        topic(2_000, 1, RETRY, broker="b"),
        join(60_000, "y"),
        retry=True,
    )
    assert column(tables, "causes")[1] == ["TOPIC_CONFIG"]
    assert windows(tables, 1) == {f"ADD {RETRY}/b0": 53_000}
    assert column(tables, "transient") == [True, False, False]


def test_a_retry_queue_is_readable_while_its_broker_is_up() -> None:
    tables = replay(
        topic(0, 1),
        topic(0, 1, broker="b"),
        join(1, "x"),
        event(9, "BROKER_DOWN", broker_name="a"),
        retry=True,
    )
    assert diffs(tables) == [f"DROP {RETRY}/a0 x FORCED", "DROP a0 x FORCED"]


@pytest.mark.parametrize(
    "settings",
    [{"consumer_type": "LITE_PULL"}, {"consumer_type": "PULL"}, {"message_model": "BROADCASTING"}],
)
def test_only_push_clustering_has_a_retry_topic(settings: dict[str, str]) -> None:
    assert owners(replay(topic(0, 1), join(1, "x"), retry=True, **settings)) == {"a0": "x"}
