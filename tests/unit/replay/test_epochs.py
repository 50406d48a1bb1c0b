"""Epochs of a whole group: when they begin, which events cause them, who owns what."""

import json

import pytest

from rebalance_core.model.events import Event
from rebalance_core.replay.group_state import GroupState
from rebalance_core.replay.history import replay_history
from tests.unit.replay.histories import (
    column,
    diffs,
    event,
    history,
    join,
    leave,
    owners,
    replay,
    strategy_for,
    topic,
)


def test_the_state_after_an_event_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    looked, signature = list[GroupState](), GroupState.signature

    def looked_at(state: GroupState) -> tuple[object, ...]:
        looked.append(state)
        return signature(state)

    monkeypatch.setattr(GroupState, "signature", looked_at)
    events = topic(0, 2), join(1_000, "x"), join(90_000, "y"), leave(200_000, "x")
    replay_history(history(*events), strategy_for)
    assert len(looked) == len(events) + 1


def test_epochs_begin_with_the_first_join_and_touch() -> None:
    tables = replay(topic(0, 2), join(1_000, "x"), join(90_000, "y"), leave(200_000, "x"))
    assert column(tables, "epoch") == [0, 1, 2]
    assert column(tables, "from_ms") == [1_000, 90_000, 200_000]
    assert column(tables, "to_ms") == [90_000, 200_000, None]
    assert column(tables, "causes") == [["CONSUMER_JOIN"], ["CONSUMER_JOIN"], ["CONSUMER_LEAVE"]]
    assert [owners(tables, n) for n in range(3)] == [
        {"a0": "x", "a1": "x"},
        {"a0": "x", "a1": "y"},
        {"a0": "y", "a1": "y"},
    ]
    assert tables["rejected"] == []


def test_events_of_one_instant_make_one_epoch_with_all_causes_in_order() -> None:
    tables = replay(
        topic(0, 2),
        join(1, "x"),
        topic(9, 4),
        join(9, "y"),
        topic(9, 3),
        event(9, "BROKER_UP", broker_name="z"),
    )
    assert column(tables, "causes") == [["CONSUMER_JOIN"], ["TOPIC_CONFIG", "CONSUMER_JOIN"]]
    assert owners(tables) == {"a0": "x", "a1": "x", "a2": "y"}
    assert {row["cause"] for row in tables["diffs"] if row["epoch"] == 1} == {"TOPIC_CONFIG"}


@pytest.mark.parametrize(
    "nothing",
    [
        [topic(9, 2)],
        [topic(9, 4, "U")],
        [join(9, "x")],
        [event(9, "SUBSCRIBE", "x", topic="T")],
        [event(9, "UNSUBSCRIBE", "x", topic="U")],
        [event(9, "CONSUMER_RESUME", "x")],
        [event(9, "BROKER_UP", broker_name="a")],
        [event(9, "BROKER_DOWN", broker_name="b")],
        [leave(9, "x"), join(9, "x")],  # gone and back at one instant
        [topic(9, 5), topic(9, 2)],
    ],
)
def test_what_changes_nothing_makes_no_epoch(nothing: list[Event]) -> None:
    assert len(replay(topic(0, 2), join(1, "x"), *nothing)["epochs"]) == 1


def test_a_second_join_replaces_subscriptions_and_strategy() -> None:
    tables = replay(
        topic(0, 2),
        topic(0, 2, "U"),
        join(1, "x", "T"),
        join(9, "x", "U", strategy="AVG_BY_CIRCLE"),
    )
    assert owners(tables) == {"U/a0": "x", "U/a1": "x"}
    assert column(tables, "members") == [1, 1]
    rows = [(r["subscriptions"], r["strategy"], r["to_epoch"]) for r in tables["memberships"]]
    assert rows == [(["T"], "AVG", 1), (["U"], "AVG_BY_CIRCLE", None)]
    assert diffs(tables) == [
        "DROP a0 x FORCED",
        "DROP a1 x FORCED",
        "ADD U/a0 x NEW",
        "ADD U/a1 x NEW",
    ]


@pytest.mark.parametrize(
    "event_type",
    ["CONSUMER_LEAVE", "CONSUMER_LOST", "CONSUMER_SUSPEND", "CONSUMER_RESUME", "SUBSCRIBE"],
)
def test_an_event_of_an_unknown_member_is_rejected(event_type: str) -> None:
    stray = event(9, event_type, "x", channel_id="other", topic="T", source="log:7", raw="{}")
    tables = replay(topic(0, 2), join(1, "x"), stray)
    (row,) = tables["rejected"]
    assert (row["table_name"], row["source"], row["raw"]) == ("cluster_events", "log:7", "{}")
    assert [issue["code"] for issue in row["issues"]] == ["UNKNOWN_MEMBER"]
    assert len(tables["epochs"]) == 1


def test_a_rejected_event_without_its_text_is_named_by_its_key() -> None:
    (row,) = replay(leave(9, "x"))["rejected"]
    assert json.loads(row["raw"]) == {"event_ms": 9, "sequence": 0}


def test_with_no_member_left_the_queues_have_no_owner() -> None:
    tables = replay(topic(0, 1), join(1, "x"), leave(9, "x"), topic(99, 2), join(200, "y"))
    assert column(tables, "status") == ["SETTLED", "EMPTY", "EMPTY", "SETTLED"]
    assert column(tables, "orphaned") == [0, 1, 2, 0]
    assert owners(tables, 2) == {"a0": "-", "a1": "-"}
    assert diffs(tables, 1) == ["DROP a0 x FORCED"]
    assert diffs(tables, 3) == ["ADD a0 y NEW", "ADD a1 y NEW"]
