"""Events of members that one broker alone saw."""

from tests.unit.replay.histories import (
    column,
    event,
    join,
    owners,
    replay,
    topic,
)


def test_a_process_is_there_while_any_broker_has_a_connection() -> None:
    lost = event(90_000, "CONSUMER_LOST", "y", broker_name="b", detail="EXPIRED")
    tables = replay(
        topic(0, 2),
        join(1_000, "x"),
        join(1_000, "y"),
        lost,
        event(95_000, "CONSUMER_JOIN", "y", broker_name="b", subscriptions=()),
    )
    assert column(tables, "from_ms") == [1_000]
    assert owners(tables) == {"a0": "x", "a1": "y"}
    assert tables["rejected"] == []
    gone = replay(
        topic(0, 2), join(1_000, "x"), join(1_000, "y"), lost, event(99_000, "CONSUMER_LOST", "y")
    )
    assert column(gone, "from_ms") == [1_000, 99_000]


def test_who_came_at_one_broker_alone_goes_when_it_loses_it() -> None:
    tables = replay(
        topic(0, 2),
        join(1_000, "x"),
        *(
            event(9_000 + n, "CONSUMER_JOIN", "y", broker_name=broker, subscriptions=("T",))
            for n, broker in enumerate("ab")
        ),
        event(20_000, "CONSUMER_LOST", "y", broker_name="a"),
        event(30_000, "CONSUMER_LOST", "y", broker_name="b"),
    )
    assert column(tables, "from_ms") == [1_000, 9_000, 30_000]
    assert owners(tables) == {"a0": "x", "a1": "x"}


def test_of_who_is_not_there_one_broker_s_word_is_rejected_too() -> None:
    tables = replay(
        topic(0, 2), join(1_000, "x"), event(9_000, "CONSUMER_LOST", "z", broker_name="b")
    )
    assert len(tables["rejected"]) == 1
