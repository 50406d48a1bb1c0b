"""Whole-group replay: epochs, owners and diffs in each special state of the ledger."""

import json
from typing import Any

import pytest

from rebalance_core.model.events import Event
from rebalance_core.replay.group_replay import GroupLedger, replay_group
from rebalance_core.replay.group_state import GroupState
from rebalance_core.replay.history import replay_history
from tests.unit.replay.histories import (
    RETRY,
    Tables,
    diffs,
    event,
    history,
    join,
    leave,
    ledger,
    owners,
    replay,
    strategy_for,
    topic,
    windows,
)  # fmt: skip


def column(tables: Tables, name: str) -> list[object]:
    """One column of epochs."""
    return [row[name] for row in tables["epochs"]]


# --- epochs -----------------------------------------------------------------------------------


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
        {"a0": "x", "a1": "x"}, {"a0": "x", "a1": "y"}, {"a0": "y", "a1": "y"},
    ]  # fmt: skip
    assert tables["rejected"] == []


def test_events_of_one_instant_make_one_epoch_with_all_causes_in_order() -> None:
    tables = replay(
        topic(0, 2), join(1, "x"),
        topic(9, 4), join(9, "y"), topic(9, 3), event(9, "BROKER_UP", broker_name="z"),
    )  # fmt: skip
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
        "DROP a0 x FORCED", "DROP a1 x FORCED", "ADD U/a0 x NEW", "ADD U/a1 x NEW",
    ]  # fmt: skip


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


def test_with_no_member_left_the_queues_are_nobodys() -> None:
    tables = replay(topic(0, 1), join(1, "x"), leave(9, "x"), topic(99, 2), join(200, "y"))
    assert column(tables, "status") == ["SETTLED", "EMPTY", "EMPTY", "SETTLED"]
    assert column(tables, "orphaned") == [0, 1, 2, 0]
    assert owners(tables, 2) == {"a0": "-", "a1": "-"}
    assert diffs(tables, 1) == ["DROP a0 x FORCED"]
    assert diffs(tables, 3) == ["ADD a0 y NEW", "ADD a1 y NEW"]


# --- kinds and other clients ------------------------------------------------------------------


def test_kinds_of_a_join_and_a_leave() -> None:
    tables = replay(topic(0, 4), join(1, "x"), join(9, "y"), leave(99, "x"))
    assert diffs(tables, 0) == [f"ADD a{i} x NEW" for i in range(4)]
    assert diffs(tables, 1) == [
        "ADD a2 y < x VOLUNTARY", "DROP a2 x > y VOLUNTARY",
        "ADD a3 y < x VOLUNTARY", "DROP a3 x > y VOLUNTARY",
    ]  # fmt: skip
    assert diffs(tables, 2) == [
        "ADD a0 y < x FORCED", "DROP a0 x > y FORCED",
        "ADD a1 y < x FORCED", "DROP a1 x > y FORCED",
    ]  # fmt: skip


def test_a_drop_is_forced_when_the_queue_or_the_subscription_is_gone() -> None:
    scaled = replay(topic(0, 2), join(1, "x"), topic(9, 1))
    assert diffs(scaled) == ["DROP a1 x FORCED"]
    left = replay(topic(0, 2), join(1, "x"), join(1, "y"), event(9, "UNSUBSCRIBE", "x", topic="T"))
    # y goes on counting x, whose share has no owner now.
    assert diffs(left) == ["DROP a0 x FORCED"]
    assert owners(left) == {"a0": "-", "a1": "y"}


def test_a_queue_that_comes_back_is_new_again() -> None:
    tables = replay(
        topic(0, 1), topic(0, 1, broker="b"), join(1, "x"),
        event(9, "BROKER_DOWN", broker_name="b"), event(99, "BROKER_UP", broker_name="b"),
    )  # fmt: skip
    assert diffs(tables, 1) == ["DROP b0 x FORCED"]
    assert diffs(tables, 2) == ["ADD b0 x NEW"]


# --- OBSERVED ---------------------------------------------------------------------------------


def test_what_was_there_before_the_log_is_initial_and_starts_nowhere() -> None:
    tables = replay(
        topic(1, 2, detail="OBSERVED"), join(1, "x", detail="OBSERVED"),
        join(1, "y", detail="OBSERVED"), leave(9, "y"), commits=[],
    )  # fmt: skip
    assert diffs(tables, 0) == ["ADD a0 x INITIAL", "ADD a1 y INITIAL"]
    assert [row["epoch"] for row in tables["pull_starts"]] == [1]


def test_one_event_that_really_happened_makes_the_instant_real() -> None:
    tables = replay(topic(0, 2), join(1, "x", detail="OBSERVED"), join(1, "y"), commits=[])
    assert diffs(tables, 0) == ["ADD a0 x NEW", "ADD a1 y NEW"]
    assert len(tables["pull_starts"]) == 2


# --- duplicates and members that do not take part ------------------------------------------------


def test_two_processes_of_one_id_hold_the_same_queues_and_leave_the_rest_to_nobody() -> None:
    tables = replay(topic(0, 4), join(1, "x"), join(9, "x", channel_id="2"), leave(99, "x"))
    assert owners(tables, 1) == {"a0": "x x2", "a1": "x x2", "a2": "-", "a3": "-"}
    assert column(tables, "members") == [1, 2, 1]
    assert column(tables, "distinct_members") == [1, 1, 1]
    assert column(tables, "shared") == [0, 2, 0]
    assert column(tables, "orphaned") == [0, 2, 0]
    assert diffs(tables, 1) == [
        "ADD a0 x VOLUNTARY", "ADD a1 x VOLUNTARY", "DROP a2 x VOLUNTARY", "DROP a3 x VOLUNTARY",
    ]  # fmt: skip
    # The process that leaves is a departed member: its drops are over at once.
    assert diffs(tables, 2) == [
        "DROP a0 x FORCED", "DROP a1 x FORCED", "ADD a2 x NEW", "ADD a3 x NEW",
    ]  # fmt: skip
    assert windows(tables, 2) == {"DROP a0": 0, "DROP a1": 0, "ADD a2": 3_000, "ADD a3": 3_000}


def test_a_suspended_member_keeps_what_it_held_and_goes_on_counting() -> None:
    tables = replay(
        topic(0, 4), join(1, "x"), event(9, "CONSUMER_SUSPEND", "x"), join(99, "y"),
        event(200, "CONSUMER_RESUME", "x"),
    )  # fmt: skip
    assert diffs(tables, 1) == []
    assert owners(tables, 2) == {"a0": "x", "a1": "x", "a2": "x, y", "a3": "x, y"}
    assert column(tables, "shared") == [0, 0, 2, 0]
    assert diffs(tables, 2) == ["ADD a2 y VOLUNTARY", "ADD a3 y VOLUNTARY"]
    assert diffs(tables, 3) == ["DROP a2 x VOLUNTARY", "DROP a3 x VOLUNTARY"]
    assert [r["suspended"] for r in tables["memberships"] if r["client_id"] == "x"] == [
        False, True, False,
    ]  # fmt: skip


def test_a_suspended_member_keeps_a_queue_that_is_gone() -> None:
    tables = replay(topic(0, 2), join(1, "x"), event(9, "CONSUMER_SUSPEND", "x"), topic(99, 1))
    assert owners(tables) == {"a0": "x", "a1": "x"}
    assert column(tables, "queues") == [2, 2, 1]


def test_what_a_suspended_member_still_held_goes_with_it() -> None:
    tables = replay(
        topic(0, 2), join(1, "x"), event(9, "CONSUMER_SUSPEND", "x"), topic(99, 1), leave(200, "x")
    )
    assert diffs(tables) == ["DROP a0 x FORCED", "DROP a1 x FORCED"]
    assert owners(tables) == {"a0": "-"}


def test_the_share_of_a_member_that_does_not_subscribe_a_topic_is_nobodys() -> None:
    tables = replay(topic(0, 2), topic(0, 2, "U"), join(1, "x", "T"), join(1, "y", "U"))
    assert owners(tables) == {"U/a0": "-", "U/a1": "y", "a0": "x", "a1": "-"}
    assert column(tables, "orphaned") == [2]


def test_a_topic_of_departed_members_is_no_longer_the_groups() -> None:
    tables = replay(
        topic(0, 1), topic(0, 1, "U"), join(1, "x", "T"), join(1, "y", "U"), leave(9, "y")
    )
    assert owners(tables) == {"a0": "x"}
    assert column(tables, "queues") == [2, 1]


# --- BROADCASTING -----------------------------------------------------------------------------


def test_broadcasting_every_member_owns_every_queue() -> None:
    tables = replay(
        topic(0, 2), join(1, "x"), join(9, "y"), leave(99, "x"),
        message_model="BROADCASTING", retry=True,
    )  # fmt: skip
    assert owners(tables, 1) == {"a0": "x, y", "a1": "x, y"}
    assert column(tables, "shared") == [0, 2, 0]
    assert diffs(tables, 1) == ["ADD a0 y VOLUNTARY", "ADD a1 y VOLUNTARY"]
    assert diffs(tables, 2) == ["DROP a0 x FORCED", "DROP a1 x FORCED"]


def test_broadcasting_keeps_a_topic_that_has_no_queue_left() -> None:
    tables = replay(
        topic(0, 1), join(1, "x"), topic(9, 0), join(99, "y"), message_model="BROADCASTING"
    )
    assert column(tables, "status") == ["SETTLED", "FROZEN", "FROZEN"]
    assert owners(tables) == {"a0": "x"}


# --- frozen -----------------------------------------------------------------------------------


def test_without_a_readable_queue_members_keep_joiners_get_nothing_the_departed_leave() -> None:
    tables = replay(
        topic(0, 2), join(1, "x"), join(1, "y"), event(9, "BROKER_DOWN", broker_name="a"),
        join(99, "z"), leave(200, "x"), event(300, "BROKER_UP", broker_name="a"),
    )  # fmt: skip
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
        topic(0, 2), join(1, "x", **own), strategy="CONSISTENT_HASH", rebalance_mode="BROKER",
        **settings,
    )  # fmt: skip
    assert column(tables, "status") == ["SETTLED"]
    assert owners(tables) == {"a0": "x", "a1": "x"}


def test_of_one_group_only_those_are_frozen_that_ask_the_broker() -> None:
    tables = replay(
        topic(0, 4), join(1, "x", version="4.9.7"), join(9, "y"), strategy="CONSISTENT_HASH",
        rebalance_mode="BROKER",
    )  # fmt: skip
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
            topic(0, 4), join(1, "x", **own), strategy="CONSISTENT_HASH", rebalance_mode="BROKER",
            **others,
        )  # fmt: skip
        assert column(asks, "status") == ["FROZEN"]


# --- retry topics that are no longer read ----------------------------------------------------


def test_who_comes_back_as_broadcasting_was_forced_to_drop_its_retry_queue() -> None:
    tables = replay(
        topic(0, 2), join(1, "x"), join(2, "y"),
        join(99_000, "x", message_model="BROADCASTING"), retry=True,
    )  # fmt: skip
    assert owners(tables, 1)[f"{RETRY}/a0"] == "x"
    assert [line for line in diffs(tables) if RETRY in line] == [f"DROP {RETRY}/a0 x FORCED"]


@pytest.mark.parametrize("retry", [True, False])
def test_another_groups_retry_topic_is_dropped_by_force_once_it_is_not_subscribed(
    retry: bool,
) -> None:
    other = "%RETRY%other"
    tables = replay(
        topic(0, 2, other), join(1, "x", other), join(2, "y", other),
        event(99_000, "UNSUBSCRIBE", "x", topic=other), retry=retry,
    )  # fmt: skip
    assert diffs(tables) == [f"DROP {other}/a0 x FORCED"]


def test_a_retry_queue_that_passes_on_was_given_up_freely() -> None:
    tables = replay(topic(0, 1), join(2, "y"), join(99_000, "x"), retry=True)
    assert diffs(tables) == [
        f"ADD {RETRY}/a0 x < y VOLUNTARY", f"DROP {RETRY}/a0 y > x VOLUNTARY",
        "ADD a0 x < y VOLUNTARY", "DROP a0 y > x VOLUNTARY",
    ]  # fmt: skip


# --- topics without a member --------------------------------------------------------------------


@pytest.mark.parametrize("order", [("x", "y"), ("y", "x")])
def test_the_last_members_leave_all_their_topics_in_whatever_order_they_go(
    order: tuple[str, str],
) -> None:
    tables = replay(
        topic(0, 1), topic(0, 1, "U"), join(1, "x", "T"), join(1, "y", "U"),
        *(leave(99_000, client) for client in order),
    )  # fmt: skip
    assert owners(tables) == {"a0": "-", "U/a0": "-"}


def test_one_after_the_other_they_leave_what_the_last_one_read() -> None:
    tables = replay(
        topic(0, 1), topic(0, 1, "U"), join(1, "x", "T"), join(1, "y", "U"), leave(99_000, "x"),
        leave(99_001, "y"),
    )  # fmt: skip
    assert owners(tables) == {"U/a0": "-"}


def test_what_is_read_within_the_last_instant_only_is_not_left_behind() -> None:
    before = (topic(0, 1), topic(0, 1, "U"), join(1, "x", "T"))
    for within in (
        [join(99_000, "y", "U"), leave(99_000, "x"), leave(99_000, "y")],
        [leave(99_000, "x"), join(99_000, "y", "U"), leave(99_000, "y")],
        [event(99_000, "SUBSCRIBE", "x", topic="U"), leave(99_000, "x")],
        [event(99_000, "UNSUBSCRIBE", "x", topic="T"), leave(99_000, "x")],
        [leave(99_000, "x"), join(500_000, "y", "U"), leave(500_000, "y")],
    ):
        assert owners(replay(*before, *within)) == {"a0": "-"}


# --- CONFIG -----------------------------------------------------------------------------------


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


# --- retry topics -----------------------------------------------------------------------------


def test_the_retry_topic_appears_with_the_first_subscription_and_stays_for_ever() -> None:
    tables = replay(
        join(1, "x"), topic(9_000, 1, perm=0), event(99_000, "TOPIC_DELETED", topic="T"),
        leave(200_000, "x"), join(300_000, "y", "U"), retry=True,
    )  # fmt: skip
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
        topic(0, 1), topic(0, 1, broker="b"), join(1, "x"),
        event(9, "BROKER_DOWN", broker_name="a"), retry=True,
    )  # fmt: skip
    assert diffs(tables) == [f"DROP {RETRY}/a0 x FORCED", "DROP a0 x FORCED"]


@pytest.mark.parametrize(
    "settings",
    [{"consumer_type": "LITE_PULL"}, {"consumer_type": "PULL"}, {"message_model": "BROADCASTING"}],
)
def test_only_push_clustering_has_a_retry_topic(settings: dict[str, str]) -> None:
    assert owners(replay(topic(0, 1), join(1, "x"), retry=True, **settings)) == {"a0": "x"}


# --- windows ----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("last", "expected"),
    [
        ([join(100_000, "a")], dict.fromkeys(["ADD a0", "DROP a0", "ADD a1", "DROP a1"], 3_000)),
        ([leave(100_000, "y")], {"ADD a1": 3_000, "DROP a1": 0}),
        ([event(100_000, "CONSUMER_LOST", "y")], {"ADD a1": 3_000, "DROP a1": 0}),
        (
            [event(100_000, "CONSUMER_LOST", "y", detail="EXPIRED")],
            {"ADD a1": 33_000, "DROP a1": 0},
        ),
        ([event(100_000, "UNSUBSCRIBE", "x", topic="T")], {"DROP a0": 23_000}),
        ([topic(100_000, 3)], {"ADD a1": 53_000, "DROP a1": 53_000, "ADD a2": 53_000}),
        ([event(100_000, "CONSUMER_SUSPEND", "x")], {}),
    ],
)  # fmt: skip
def test_the_window_of_each_event(last: list[Event], expected: dict[str, int]) -> None:
    tables = replay(topic(0, 2), join(1, "x"), join(1, "y"), *last)
    assert windows(tables) == expected


def test_a_window_that_is_still_open_extends_the_next_ones() -> None:
    tables = replay(
        topic(0, 1), join(1, "x"), topic(100_000, 2), join(110_000, "y"), join(160_000, "z"),
        leave(190_000, "x"),
    )  # fmt: skip
    assert windows(tables, 1) == {"ADD a1": 53_000}
    assert windows(tables, 2) == {"ADD a1": 43_000, "DROP a1": 43_000}
    assert column(tables, "transient") == [False, True, False, False, False]
    assert windows(tables, 4)["ADD a0"] == 3_000


def test_orderly_adds_wait_for_the_lock() -> None:
    tables = replay(topic(0, 2), join(1, "x"), join(100_000, "y"), ordered=True)
    assert windows(tables) == {"ADD a1": 64_000, "DROP a1": 3_000}


def test_the_retry_topics_first_appearance_has_a_window_of_its_own() -> None:
    tables = replay(topic(0, 1), join(1_000, "x"), join(9_000, "y"), leave(90_000, "x"), retry=True)
    assert windows(tables, 0) == {f"ADD {RETRY}/a0": 53_000, "ADD a0": 3_000}
    # Not transient after 8 s, though the retry topic may come after 53 s.
    assert column(tables, "transient") == [False, False, False]
    assert windows(tables, 2)[f"ADD {RETRY}/a0"] == 3_000


def test_an_epoch_that_ends_at_its_latest_moment_is_settled() -> None:
    tables = replay(topic(0, 2), join(1_000, "x"), join(4_000, "y"), join(6_999, "z"))
    assert column(tables, "transient") == [False, True, False]


# --- load and options ---------------------------------------------------------------------------


def test_load_is_that_of_one_process_with_its_share_of_the_topics_threshold() -> None:
    tables = replay(
        topic(0, 3), join(1, "x"), join(9, "y"), join(9, "z"), join(9, "zz"),
        pull_threshold_for_topic=10, pull_threshold_size_for_topic=2, retry=True,
    )  # fmt: skip
    rows = {(r["client_id"], r["from_epoch"]): r for r in tables["consumer_load"]}
    first = rows["x", 0]
    assert (first["topics"], first["queues"], first["retry_queues"]) == (1, 3, 1)
    assert first["pull_threshold_for_queue"] == 10 // 4
    assert first["pull_threshold_size_for_queue"] == 1  # at least 1
    nothing = rows["zz", 1]
    assert (nothing["idle"], nothing["pull_threshold_for_queue"]) == (True, 1000)


def test_an_override_replaces_the_strategy_of_the_group_and_of_members() -> None:
    given = history(topic(0, 4), join(1, "x", strategy="CONFIG(queues=T/a/3)"), join(1, "y"))
    tables = replay_group(
        given, strategy_for, include_retry_topics=False, strategy_override="AVG_BY_CIRCLE"
    )
    assert owners(tables) == {"a0": "x", "a1": "y", "a2": "x", "a3": "y"}
    assert {row["strategy"] for row in tables["memberships"]} == {"AVG_BY_CIRCLE"}


def test_every_row_names_its_cluster_and_group() -> None:
    tables = ledger(history(topic(0, 1), join(1, "x")))
    for name, rows in tables.items():
        assert all((r["cluster"], r["consumer_group"]) == ("c", "g") for r in rows), name


def test_retry_topics_are_replayed_unless_they_are_left_out() -> None:
    given = history(topic(0, 1), join(1, "x"))
    default = replay_group(given, strategy_for)
    assert {row["topic"] for row in default["ownership"]} == {"T", RETRY}
    assert GroupLedger(given, strategy_for).rows("ownership") == default["ownership"]
    held = replay_history(given, strategy_for).epochs[-1].holdings
    assert {queue.topic for queues in held.values() for queue in queues} == {"T", RETRY}


# --- what one broker alone saw ----------------------------------------------------------------


def test_a_process_is_there_while_any_broker_has_a_connection() -> None:
    lost = event(90_000, "CONSUMER_LOST", "y", broker_name="b", detail="EXPIRED")
    tables = replay(
        topic(0, 2), join(1_000, "x"), join(1_000, "y"), lost,
        event(95_000, "CONSUMER_JOIN", "y", broker_name="b", subscriptions=()),
    )  # fmt: skip
    assert column(tables, "from_ms") == [1_000]
    assert owners(tables) == {"a0": "x", "a1": "y"}
    assert tables["rejected"] == []
    gone = replay(topic(0, 2), join(1_000, "x"), join(1_000, "y"), lost,
                  event(99_000, "CONSUMER_LOST", "y"))  # fmt: skip
    assert column(gone, "from_ms") == [1_000, 99_000]


def test_who_came_at_one_broker_alone_goes_when_it_loses_it() -> None:
    tables = replay(
        topic(0, 2), join(1_000, "x"),
        *(event(9_000 + n, "CONSUMER_JOIN", "y", broker_name=broker, subscriptions=("T",))
          for n, broker in enumerate("ab")),
        event(20_000, "CONSUMER_LOST", "y", broker_name="a"),
        event(30_000, "CONSUMER_LOST", "y", broker_name="b"),
    )  # fmt: skip
    assert column(tables, "from_ms") == [1_000, 9_000, 30_000]
    assert owners(tables) == {"a0": "x", "a1": "x"}


def test_of_who_is_not_there_one_broker_s_word_is_rejected_too() -> None:
    tables = replay(topic(0, 2), join(1_000, "x"),
                    event(9_000, "CONSUMER_LOST", "z", broker_name="b"))  # fmt: skip
    assert len(tables["rejected"]) == 1
