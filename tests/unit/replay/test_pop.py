"""Topics that members pop: while one does, nobody owns a queue of them (rocketmq.md §14)."""

from collections.abc import Sequence
from typing import Any

import pytest

from rebalance_core.model.events import Event
from rebalance_core.replay.history import CommittedOffset
from tests.unit.replay.histories import (
    Tables,
    commit,
    diffs,
    event,
    history,
    join,
    leave,
    ledger,
    owners,
    replay,
    seen,
    topic,
    windows,
)

POP, PULL = "POP(share_queue_num=0)", "PULL"
TWO = (topic(0, 2), join(0, "x"), join(0, "y"))
HALVES = {"a0": "x", "a1": "y"}
OWN_PASS_MS = 23_000


def mode(at_ms: int, detail: str = POP, name: str = "T") -> Event:
    return event(at_ms, "REQUEST_MODE", topic=name, detail=detail)


def popped(*events: Event, **settings: Any) -> Tables:
    """The group asks the broker unless a test says otherwise."""
    return replay(*events, **{"rebalance_mode": "BROKER"} | settings)


def test_a_switch_ends_the_holdings_and_the_switch_back_begins_them() -> None:
    tables = popped(*TWO, mode(1_000), mode(60_000, PULL))
    assert [owners(tables, epoch) for epoch in range(3)] == [HALVES, {}, HALVES]
    assert diffs(tables, 1) == ["DROP a0 x FORCED", "DROP a1 y FORCED"]
    assert diffs(tables, 2) == ["ADD a0 x NEW", "ADD a1 y NEW"]
    assert set(windows(tables, 2).values()) == {OWN_PASS_MS}
    assert [row["causes"] for row in tables["epochs"][1:]] == [["REQUEST_MODE"]] * 2


def test_shared_queues_are_in_no_count() -> None:
    tables = popped(*TWO, mode(1_000))
    last = tables["epochs"][-1]
    assert (last["queues"], last["orphaned"], last["shared"], last["status"]) == (
        0,
        0,
        0,
        "SETTLED",
    )
    assert last["members"] == 2
    metrics = [row for row in tables["group_metrics"] if row["epoch"] == 1]
    assert [(row["topic"], row["queues"], row["idle_members"]) for row in metrics] == [(None, 0, 0)]


@pytest.mark.parametrize(
    "settings",
    [
        {"rebalance_mode": "CLIENT"},
        {"ordered": True},
        {"message_model": "BROADCASTING"},
        {"consumer_type": "LITE_PULL"},
        {"consumer_type": "PULL"},
        {"client_version": "4.9"},
    ],
)
def test_the_mode_is_nothing_to_members_that_do_not_ask(settings: dict[str, object]) -> None:
    with_mode, without = popped(*TWO, mode(1_000), **settings), popped(*TWO, **settings)
    assert with_mode == without


def test_one_member_that_asks_makes_the_topic_shared() -> None:
    tables = replay(
        *TWO, mode(1_000), join(9_000, "z", rebalance_mode="BROKER"), leave(20_000, "z")
    )
    assert [owners(tables, epoch) for epoch in range(3)] == [HALVES, {}, HALVES]


def test_a_member_s_own_mode_goes_before_the_group_s() -> None:
    own = [join(0, name, rebalance_mode="CLIENT") for name in "xy"]
    assert owners(popped(TWO[0], *own, mode(1_000))) == HALVES


def test_coming_back_with_another_mode_begins_an_epoch() -> None:
    tables = popped(*TWO, mode(1_000), *(join(9_000, c, rebalance_mode="CLIENT") for c in "xy"))
    assert owners(tables) == HALVES
    assert tables["epochs"][-1]["causes"] == ["CONSUMER_JOIN"]


def test_other_topics_of_the_group_have_owners() -> None:
    tables = popped(*TWO, topic(0, 1, "U", "b"), mode(1_000), subscriptions=("T", "U"))
    assert owners(tables) == {"U/b0": "x"}


def test_the_retry_topic_is_pulled_whatever_was_set() -> None:
    tables = popped(*TWO, mode(1_000), mode(1_000, POP, "%RETRY%g"), retry=True)
    assert owners(tables) == {"%RETRY%g/a0": "x"}


def test_a_mode_that_was_there_before_the_members_begins_nothing() -> None:
    given = (event(0, "CONSUMER_JOIN", "x", subscriptions=("T",), detail="OBSERVED"),)
    tables = popped(topic(0, 2), mode(0), *given)
    assert [row["causes"] for row in tables["epochs"]] == [["CONSUMER_JOIN"]]
    assert owners(tables) == {}


def test_another_share_begins_an_epoch_if_a_member_pops() -> None:
    events = (*TWO, mode(1_000), mode(2_000, "POP(share_queue_num=1)"))
    causes = [row["causes"] for row in popped(*events)["epochs"]]
    assert causes == [["CONSUMER_JOIN"], ["REQUEST_MODE"], ["REQUEST_MODE"]]
    assert len(popped(*events, rebalance_mode="PROXY")["epochs"]) == 1


def test_a_suspended_member_gives_up_what_others_pop() -> None:
    tables = popped(*TWO, event(500, "CONSUMER_SUSPEND", "x"), mode(1_000))
    assert owners(tables) == {}


def test_with_no_member_left_the_queues_have_no_owner() -> None:
    tables = popped(*TWO, mode(1_000), leave(9_000, "x"), leave(9_500, "y"))
    assert owners(tables) == {"a0": "-", "a1": "-"}


def test_topics_that_grow_while_they_are_popped() -> None:
    tables = popped(*TWO, mode(1_000), topic(9_000, 3), mode(60_000, PULL))
    assert [row["pop_queues"] for row in tables["epochs"]] == [0, 2, 3, 0]
    assert owners(tables) == {"a0": "x", "a1": "x", "a2": "y"}


def start_of(tables: Tables, queue_id: int = 0) -> tuple[object, ...]:
    (row,) = (
        row for row in tables["pull_starts"] if row["epoch"] == 2 and row["queue_id"] == queue_id
    )
    return (
        row["rule"],
        row["start_offset_low"],
        row["start_offset"],
        row["start_offset_high"],
        row["status"],
    )


def switched(commits: Sequence[CommittedOffset]) -> Tables:
    offsets = [seen("a0", 0, 0, 5), seen("a0", 90_000, 0, 40)]
    return ledger(
        history(
            *TWO,
            mode(10_000),
            mode(60_000, PULL),
            rebalance_mode="BROKER",
            offsets=offsets,
            commits=commits,
        )
    )


def test_who_takes_over_goes_on_anywhere_up_to_the_end() -> None:
    """Brokers commit what is popped, up to the switch and whenever they were looked at."""
    commits = [commit("a0", 9_000, 7, "x"), commit("a0", 50_000, 30)]
    assert start_of(switched(commits)) == ("STORED", 7, 30, 40, "OK")


def test_who_takes_over_without_a_commit_in_sight() -> None:
    assert start_of(switched([])) == ("STORED", 0, None, 40, "UNKNOWN")


def test_a_queue_that_moves_later_is_an_ordinary_one() -> None:
    commits = [commit("a1", 50_000, 30), commit("a1", 100_000, 33), commit("a1", 300_000, 35)]
    tables = ledger(
        history(
            *TWO,
            mode(10_000),
            mode(60_000, PULL),
            leave(200_000, "y"),
            rebalance_mode="BROKER",
            offsets=[seen("a1", 400_000, 0, 99)],
            commits=commits,
        )
    )
    (row,) = (row for row in tables["pull_starts"] if row["epoch"] == 3)
    assert row["start_offset_low"] >= 30


def test_a_member_that_only_shares_is_not_idle() -> None:
    """T is popped, of U there is one queue: y has none of it, and pops T."""
    both = ("T", "U")
    events = [topic(0, 2), topic(0, 1, name="U"), join(0, "x", *both),
              join(0, "y", *both)]  # fmt: skip
    tables = popped(*events, mode(1_000), mode(60_000, PULL))
    idle = [(row["epoch"], row["topic"], row["idle_members"]) for row in tables["group_metrics"]]
    assert idle == [
        (0, "T", 0),
        (0, "U", 1),
        (0, None, 0),
        (1, "U", 1),
        (1, None, 0),
        (2, "T", 0),
        (2, "U", 1),
        (2, None, 0),
    ]
