"""Topics whose members keep what they hold."""

from typing import Any

import pytest

from tests.unit.replay.histories import (
    column,
    diffs,
    event,
    join,
    leave,
    owners,
    replay,
    topic,
)


def test_without_a_readable_queue_members_keep_joiners_get_nothing_the_departed_leave() -> None:
    tables = replay(
        topic(0, 2),
        join(1, "x"),
        join(1, "y"),
        event(9, "BROKER_DOWN", broker_name="a"),
        join(99, "z"),
        leave(200, "x"),
        event(300, "BROKER_UP", broker_name="a"),
    )
    assert column(tables, "status") == ["SETTLED", "FROZEN", "FROZEN", "FROZEN", "SETTLED"]
    assert [diffs(tables, n) for n in (1, 2)] == [[], []]
    assert owners(tables, 2) == {"a0": "x", "a1": "y"}
    assert diffs(tables, 3) == ["DROP a0 x FORCED"]
    assert owners(tables, 3) == {
        "a1": "y"
    }  # a0 is not readable, so it does not even count as unowned
    assert owners(tables, 4) == {"a0": "y", "a1": "z"}


def test_one_members_strategy_that_throws_freezes_that_member_only() -> None:
    # y has no room, which MACHINE_ROOM_NEARBY refuses to allocate for.
    broken = "MACHINE_ROOM_NEARBY-AVG(client_rooms=x:r1, broker_rooms=a:r1)"
    tables = replay(topic(0, 4), join(1, "x"), join(9, "y", strategy=broken))
    assert column(tables, "status") == ["SETTLED", "FROZEN"]
    assert owners(tables, 1) == {"a0": "x", "a1": "x", "a2": "-", "a3": "-"}


def test_broker_rebalance_knows_two_strategies_and_freezes_on_any_other() -> None:
    def status(strategy: str) -> object:
        given = replay(topic(0, 2), join(1, "x"), strategy=strategy, rebalance_mode="BROKER")
        return column(given, "status")[0], owners(given)

    assert status("AVG") == ("SETTLED", {"a0": "x", "a1": "x"})
    assert status("AVG_BY_CIRCLE") == ("SETTLED", {"a0": "x", "a1": "x"})
    for other in ("CONSISTENT_HASH", "CONFIG(queues=T/a/0)", "MACHINE_ROOM_NEARBY-AVG"):
        assert status(other) == ("FROZEN", {"a0": "-", "a1": "-"})


@pytest.mark.parametrize(
    ("own", "settings"),
    [
        ({}, {"ordered": True}),
        ({}, {"message_model": "BROADCASTING"}),
        ({}, {"consumer_type": "PULL"}),
        ({}, {"consumer_type": "LITE_PULL"}),
        ({}, {"client_version": "4.9"}),
        ({"version": "4.9.7"}, {}),
        ({"message_model": "BROADCASTING"}, {}),
    ],
)
def test_who_never_asks_a_broker_divides_by_any_strategy(
    own: dict[str, Any], settings: dict[str, Any]
) -> None:
    tables = replay(
        topic(0, 2),
        join(1, "x", **own),
        strategy="CONSISTENT_HASH",
        rebalance_mode="BROKER",
        **settings,
    )
    assert column(tables, "status") == ["SETTLED"]
    assert owners(tables) == {"a0": "x", "a1": "x"}


def test_of_one_group_only_those_are_frozen_that_ask_the_broker() -> None:
    tables = replay(
        topic(0, 4),
        join(1, "x", version="4.9.7"),
        join(9, "y"),
        strategy="CONSISTENT_HASH",
        rebalance_mode="BROKER",
    )
    assert column(tables, "status") == ["SETTLED", "FROZEN"]
    free = replay(topic(0, 4), join(1, "x"), join(9, "y"), strategy="CONSISTENT_HASH")
    assert set(owners(free).values()) == {"x", "y"}
    assert owners(tables) == {q: "x" if c == "x" else "-" for q, c in owners(free).items()}
    settings: list[tuple[dict[str, Any], dict[str, Any]]] = [
        ({"version": "5.0.0"}, {"client_version": "4.9"}),
        ({"message_model": "CLUSTERING"}, {"message_model": "BROADCASTING"}),
    ]
    for own, others in settings:
        asks = replay(
            topic(0, 4),
            join(1, "x", **own),
            strategy="CONSISTENT_HASH",
            rebalance_mode="BROKER",
            **others,
        )
        assert column(asks, "status") == ["FROZEN"]
