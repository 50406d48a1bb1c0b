"""Members whose subscriptions no row states: they count, and their share is not known."""

from typing import Any

from rebalance_core.model.events import Event
from rebalance_core.replay.history import GroupHistory
from rebalance_core.replay.invariants import check_ledger
from tests.unit.replay.histories import (
    Tables,
    commit,
    event,
    history,
    join,
    leave,
    ledger,
    seen,
    topic,
)


def unstated(*events: Event, **settings: Any) -> GroupHistory:
    """A group of which no row states the subscriptions."""
    return history(topic(0, 4), *events, **{"subscriptions": None} | settings)


def checked(given: GroupHistory) -> Tables:
    made = ledger(given)
    assert check_ledger(made) == []
    return made


def held(made: Tables, epoch: int = -1) -> dict[int, str | None]:
    """Owner by queue id in an epoch; queues without a row are missing."""
    number = epoch % len(made["epochs"])
    return {
        row["queue_id"]: row["client_id"]
        for row in made["ownership"]
        if row["from_epoch"] <= number and (row["to_epoch"] is None or number < row["to_epoch"])
    }


def test_its_share_has_no_row_while_the_others_keep_theirs() -> None:
    made = checked(unstated(join(0, "x", "T"), join(9_000, "y")))
    assert held(made) == {0: "x", 1: "x"}
    (_, last) = made["epochs"]
    assert (last["members"], last["queues"], last["orphaned"]) == (2, 4, 0)
    topics = {row["client_id"]: row["subscriptions"] for row in made["memberships"]}
    assert topics == {"x": ["T"], "y": None}
    assert {row["client_id"] for row in made["consumer_load"]} == {"x"}


def test_what_it_states_as_nothing_is_nothing() -> None:
    made = checked(
        unstated(join(0, "x", "T"), event(9_000, "CONSUMER_JOIN", "y", subscriptions=()))
    )
    assert held(made) == {0: "x", 1: "x", 2: None, 3: None}
    assert made["epochs"][-1]["orphaned"] == 2


def test_what_it_states_as_the_groups_is_known() -> None:
    made = checked(unstated(join(0, "x", "T"), join(9_000, "y"), subscriptions=("T",)))
    assert held(made) == {0: "x", 1: "x", 2: "y", 3: "y"}


def test_who_is_known_not_to_subscribe_leaves_its_share_unowned_all_the_same() -> None:
    made = checked(unstated(join(0, "x", "T"), join(0, "y"), join(0, "z", "U"), topic(0, 3, "U")))
    assert held(made) == {0: "x", 1: "x", 3: None} | {0: None, 2: "z"}
    of_t = {r["queue_id"]: r["client_id"] for r in made["ownership"] if r["topic"] == "T"}
    assert of_t == {0: "x", 1: "x", 3: None}


def test_it_freezes_no_topic() -> None:
    throws = join(9_000, "y", strategy="MACHINE_ROOM")  # as the broker has a room
    made = checked(
        history(topic(0, 4, broker="r@a"), join(0, "x", "T"), throws, subscriptions=None)
    )
    assert made["epochs"][-1]["status"] == "SETTLED"
    assert held(made) == {0: "x", 1: "x"}


def test_a_suspended_one_may_hold_whatever_no_other_member_does() -> None:
    suspended = event(20_000, "CONSUMER_SUSPEND", "y")
    made = checked(unstated(join(0, "x", "T"), join(9_000, "y"), suspended))
    assert held(made) == {0: "x", 1: "x"}


def test_a_group_of_which_nothing_is_known_has_no_queues() -> None:
    made = checked(unstated(join(0, "x")))
    (epoch,) = made["epochs"]
    assert (epoch["status"], epoch["queues"], epoch["orphaned"]) == ("SETTLED", 0, 0)


def test_a_subscription_makes_it_known() -> None:
    subscribed = event(20_000, "SUBSCRIBE", "y", topic="T")
    made = checked(unstated(join(0, "x", "T"), join(9_000, "y"), subscribed))
    assert held(made) == {0: "x", 1: "x", 2: "y", 3: "y"}
    unsubscribed = event(20_000, "UNSUBSCRIBE", "y", topic="T")
    made = checked(unstated(join(0, "x", "T"), join(9_000, "y"), unsubscribed))
    assert held(made) == {0: "x", 1: "x"}


def test_who_takes_over_from_it_is_not_the_first_and_its_start_is_unknown() -> None:
    offsets, commits = [seen("a2", 0, 0, 5)], [commit("a2", 500, 3)]
    given = unstated(
        join(0, "x", "T"), join(9_000, "y"), leave(99_000, "y"), offsets=offsets, commits=commits
    )
    made = checked(given)
    kinds = {row["kind"] for row in made["diffs"] if row["epoch"] == 2}
    assert kinds == {"FORCED"}
    assert {row["status"] for row in made["pull_starts"] if row["epoch"] == 2} == {"UNKNOWN"}


def test_figures_that_its_queues_would_change_are_null() -> None:
    made = checked(unstated(join(0, "x", "T"), join(9_000, "y")))
    for row in made["group_metrics"]:
        if row["epoch"] == 1:
            assert row["members"] == 1
            assert row["minimum_moves"] is row["peak_ratio"] is row["stickiness"] is None
