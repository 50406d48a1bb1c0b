"""Which clients may take from which queues of a shared topic (rocketmq.md §2.8, §14)."""

from typing import Any

import pytest

from rebalance_core.model.events import Event
from tests.unit.replay.histories import (
    Tables,
    event,
    join,
    leave,
    owners,
    reaches,
    replay,
    topic,
)

WXYZ = [join(0, name) for name in "wxyz"]


def pop(at_ms: int, share: int, name: str = "T") -> Event:
    return event(at_ms, "REQUEST_MODE", topic=name, detail=f"POP(share_queue_num={share})")


def pull(at_ms: int, name: str = "T") -> Event:
    return event(at_ms, "REQUEST_MODE", topic=name, detail="PULL")


def broker(*events: Event, **settings: Any) -> Tables:
    return replay(*events, **{"rebalance_mode": "BROKER"} | settings)


def metrics(tables: Tables, epoch: int = -1) -> list[tuple[object, ...]]:
    """Topic, clients, queues, clients per queue, queues per client, unreached."""
    epoch = epoch % len(tables["epochs"])
    return [tuple(row.values())[3:11] for row in tables["pop_metrics"] if row["epoch"] == epoch]


@pytest.mark.parametrize("share", [-1, 0, 3, 4])
def test_everybody_reaches_every_broker(share: int) -> None:
    tables = broker(topic(0, 2), topic(0, 1, broker="b"), pop(0, share), *WXYZ)
    assert reaches(tables) == dict.fromkeys("wxyz", "a* b*")
    assert metrics(tables) == [("T", 4, 3, 4, 4, 3, 3, 0)]
    assert owners(tables) == {}


def test_the_own_share_and_those_of_the_next() -> None:
    tables = broker(topic(0, 4), topic(0, 4, broker="b"), pop(0, 1), *WXYZ)
    assert reaches(tables) == {
        "w": "a0 a1 a2 a3",
        "x": "a2 a3 b0 b1",
        "y": "b0 b1 b2 b3",
        "z": "a0 a1 b2 b3",
    }
    assert metrics(tables) == [("T", 4, 8, 2, 2, 4, 4, 0)]


def test_the_shares_of_avg_by_circle() -> None:
    tables = broker(topic(0, 5), pop(0, 2), *WXYZ, strategy="AVG_BY_CIRCLE")
    assert reaches(tables)["x"] == "a1 a2 a3"
    assert reaches(tables)["y"] == "a0 a2 a3 a4"


def test_more_clients_than_queues() -> None:
    tables = broker(topic(0, 3), pop(0, 1), *WXYZ)
    assert reaches(tables) == {"w": "a0", "x": "a1", "y": "a2", "z": "a0"}
    assert metrics(tables) == [("T", 4, 3, 1, 2, 1, 1, 0)]


def test_the_processes_of_one_id_are_their_own_neighbours() -> None:
    twins = [join(0, "x", channel_id=channel) for channel in "12"]
    tables = broker(topic(0, 4), pop(0, 1), *twins, *WXYZ[2:])
    assert reaches(tables) == {"x": "a0", "y": "a2 a3", "z": "a0 a3"}
    shared = {row["client_id"]: row["shared_queues"] for row in tables["consumer_load"]}
    assert shared == {"x": 1, "y": 2, "z": 2}
    assert metrics(tables) == [("T", 3, 4, 0, 2, 1, 2, 1)]


def test_who_does_not_subscribe_counts_and_reaches_nothing() -> None:
    tables = broker(topic(0, 4), pop(0, 1), *WXYZ[:3], join(0, "z", "U"))
    assert reaches(tables) == {"w": "a0 a1", "x": "a1 a2", "y": "a2 a3"}
    assert metrics(tables) == [("T", 3, 4, 1, 2, 2, 2, 0)]
    assert tables["consumer_load"][-1]["idle"]


def test_rows_span_the_epochs_in_which_nothing_changes() -> None:
    tables = broker(topic(0, 4), pop(0, 0), *WXYZ[:2], join(9_000, "y"), leave(20_000, "y"))
    assert [
        (row["client_id"], row["from_epoch"], row["to_epoch"], row["from_ms"], row["to_ms"])
        for row in tables["pop_reach"]
    ] == [("y", 1, 2, 9_000, 20_000), ("w", 0, None, 0, None), ("x", 0, None, 0, None)]


def test_an_unknown_strategy_keeps_what_was_pulled() -> None:
    strange = {"strategy": "CONSISTENT_HASH"}
    tables = replay(
        topic(0, 4),
        pop(0, 0),
        join(0, "x", **strange),
        join(5_000, "x", **strange),
        join(9_000, "x", rebalance_mode="BROKER", **strange),
        join(12_000, "y", rebalance_mode="BROKER", **strange),
    )
    assert owners(tables, 0) == {"a0": "x", "a1": "x", "a2": "x", "a3": "x"}
    assert reaches(tables, 1) == {"x": "a0 a1 a2 a3"}
    assert reaches(tables) == {"x": "a0 a1 a2 a3"}  # who is new has nothing to keep
    assert tables["epochs"][-1]["status"] == "FROZEN"
    assert metrics(tables) == [("T", 2, 4, 1, 1, 0, 4, 0)]


def test_without_a_readable_queue_clients_keep_what_they_popped() -> None:
    tables = broker(
        topic(0, 2),
        pop(0, 0),
        *WXYZ[:2],
        event(9_000, "BROKER_DOWN", broker_name="a"),
        join(15_000, "y"),
    )
    assert reaches(tables) == {"w": "a*", "x": "a*"}
    assert metrics(tables) == [("T", 3, 0, 0, 0, 0, 0, 0)]
    assert tables["epochs"][-1]["status"] == "FROZEN"
    assert all(row["idle"] for row in tables["consumer_load"] if row["to_epoch"] is None)


def test_a_suspended_member_keeps_what_it_pulled_and_pulls_it_again_after() -> None:
    tables = broker(
        topic(0, 2),
        *WXYZ[:2],
        event(500, "CONSUMER_SUSPEND", "w"),
        pop(9_000, 0),
        join(20_000, "y"),
        pull(60_000),
    )
    assert reaches(tables, 3) == {"w": "a0", "x": "a*", "y": "a*"}
    assert owners(tables) == {"a0": "w", "a1": "x"}


def test_a_suspended_member_that_popped_owns_nothing_after() -> None:
    tables = broker(
        topic(0, 4),
        pop(0, 1),
        *WXYZ,
        event(9_000, "CONSUMER_SUSPEND", "w"),
        leave(20_000, "z"),
        pull(60_000),
    )
    assert reaches(tables, 2) == {"w": "a0 a1", "x": "a2 a3", "y": "a0 a1 a3"}
    assert owners(tables) == {"a0": "-", "a1": "-", "a2": "x", "a3": "y"}


def test_who_pulls_among_those_who_pop_has_its_share_over_all() -> None:
    tables = broker(topic(0, 4), pop(0, 0), join(0, "w", rebalance_mode="CLIENT"), *WXYZ[1:])
    assert reaches(tables) == {"w": "a0", "x": "a*", "y": "a*", "z": "a*"}
    assert metrics(tables) == [("T", 4, 4, 3, 4, 1, 4, 0)]


def test_a_broadcasting_member_reads_every_queue() -> None:
    tables = broker(
        topic(0, 2), pop(0, 0), join(0, "w", message_model="BROADCASTING"), join(0, "x")
    )
    assert reaches(tables) == {"w": "a0 a1", "x": "a*"}


def test_clients_behind_a_proxy_reach_every_readable_broker() -> None:
    tables = replay(
        topic(0, 2),
        topic(0, 2, broker="b"),
        *WXYZ[:2],
        leave(9_000, "w"),
        topic(20_000, 2, broker="b", perm=2),
        rebalance_mode="PROXY",
        retry=True,
    )
    assert [reaches(tables, epoch) for epoch in range(3)] == [
        {"w": "a* b*", "x": "a* b*"},
        {"x": "a* b*"},
        {"x": "a*"},
    ]
    assert tables["ownership"] == []  # no plain retry topic either
    assert [row["pop_queues"] for row in tables["epochs"]] == [4, 4, 2]


def test_an_ordered_group_behind_a_proxy_reaches_single_queues() -> None:
    tables = replay(topic(0, 2), pop(0, 1), *WXYZ[:2], rebalance_mode="PROXY", ordered=True)
    assert reaches(tables) == {"w": "a0 a1", "x": "a0 a1"}


def test_one_member_behind_a_proxy_shares_the_topic_of_those_who_pull() -> None:
    tables = replay(
        topic(0, 4),
        *WXYZ[:2],
        join(9_000, "x0", rebalance_mode="PROXY"),
        leave(20_000, "x0"),
        retry=True,
    )
    assert owners(tables, 1) == {"%RETRY%g/a0": "w"}
    assert reaches(tables, 1) == {"w": "a0 a1", "x": "a2", "x0": "a*"}
    assert owners(tables) == owners(tables, 0)


def test_members_that_ask_pull_while_the_mode_is_pull() -> None:
    tables = broker(topic(0, 4), join(0, "w", rebalance_mode="PROXY"), *WXYZ[1:3], pop(9_000, 1))
    assert reaches(tables, 0) == {"w": "a*", "x": "a2", "y": "a3"}
    assert reaches(tables, 1) == {"w": "a*", "x": "a2 a3", "y": "a0 a1 a3"}


def test_one_id_in_two_modes_has_no_single_queues_beside_the_broker() -> None:
    behind_a_proxy = join(0, "x", channel_id="2", rebalance_mode="PROXY")
    tables = replay(topic(0, 4), join(0, "x", channel_id="1"), behind_a_proxy)
    assert reaches(tables) == {"x": "a*"}
    (load,) = tables["consumer_load"]
    assert (load["shared_queues"], load["idle"]) == (2, False)  # that of the first channel
