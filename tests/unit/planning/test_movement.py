"""Who holds each queue, what a step moves, and which strategy is best by it."""

import doctest
from importlib import import_module
from typing import Any

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.known_strategies import planning_strategy
from rebalance_core.planning.movement import (
    Holders,
    Movement,
    StepMovement,
    best_of,
    movement,
    owners_of,
    possible,
    previous_owner,
)
from tests.unit.replay.histories import Row, join, leave, replay, topic

# Movement of one step is what group_metrics says of it, and says where it means nothing.

EIGHT = [MessageQueue("T", "a", i) for i in range(8)]


def owned(text: str, name: str = "T") -> dict[MessageQueue, str]:
    """``"xxy"``: queues 0 and 1 are x's, queue 2 is y's; ``-`` is no owner's."""
    return {MessageQueue(name, "a", i): c for i, c in enumerate(text) if c != "-"}


def covers(row: Row, epoch: int) -> bool:
    return row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])


def test_a_third_member_moves_more_than_it_must() -> None:
    step = movement(owned("xxxxyyyy"), "xyz", owned("xxxyyyzz"))
    assert step.group == Movement(
        topic=None, queues=8, members=3, moved=3, voluntary_moves=3, minimum_moves=2,
        amplification=1.5, stickiness=5 / 8, max_queues=3, min_queues=2, peak_ratio=9 / 8,
        idle_members=0,
    )  # fmt: skip
    assert list(step.topics) == ["T"]


def test_the_figures_are_those_of_the_ledger() -> None:
    tables = replay(
        topic(0, 8), topic(0, 5, "U"), join(1, "x", "T", "U"), join(5, "y", "T", "U"),
        join(9, "z", "T", "U"), leave(20, "x"), topic(30, 12), strategy="AVG",
    )  # fmt: skip
    members = {1: "x", 2: "xy", 3: "xyz", 4: "yz", 5: "yz"}
    average = planning_strategy("AVG")
    before: Holders = {}
    epochs = sorted({row["epoch"] for row in tables["group_metrics"]})
    assert len(epochs) == 5
    for epoch in epochs:
        rows = {r["topic"]: r for r in tables["group_metrics"] if r["epoch"] == epoch}
        held = [row for row in tables["ownership"] if covers(row, epoch)]
        queues = [MessageQueue(r["topic"], r["broker_name"], r["queue_id"]) for r in held]
        after = average.assign({}, queues, members[epoch + 1])
        step = movement(before, members[epoch + 1], after)
        for row in (step.group, *step.topics.values()):
            figures = {name: getattr(row, name) for name in Movement.__slots__ if name != "caveat"}
            ledger = {name: rows[row.topic][name] for name in figures}
            assert figures == ledger, epoch
            assert row.caveat is None
        before = after


def test_the_group_adds_its_topics_up() -> None:
    before, after = owned("xx") | owned("xx", "U"), owned("xy") | owned("xy", "U")
    step = movement(before, "xy", after)
    assert (step.group.moved, step.group.minimum_moves, step.group.max_queues) == (2, 2, 2)


def test_holders_that_left_and_queues_that_went_are_no_voluntary_moves() -> None:
    step = movement(owned("xxyy"), "x", owned("xxx")).group
    assert (step.moved, step.voluntary_moves, step.stickiness) == (1, 0, 0.5)


@pytest.mark.parametrize(
    ("step", "reason"),
    [
        (movement({}, "xy", dict.fromkeys(EIGHT, ("x", "y")), message_model="BROADCASTING"),
         "BROADCASTING"),
        (movement({}, "xy", owned("xx-y"), queues=EIGHT[:4]), "without an owner: 1"),
        (movement({}, {"x": ["T"], "y": ["T", "U"]}, owned("xy")), "subscribe differently"),
        (movement({}, "xy", dict.fromkeys(EIGHT, ("x", "y"))), "several members hold: 8"),
        (movement(owned("xy"), [], {}, queues=EIGHT[:2]), "no member"),
    ],
)  # fmt: skip
def test_where_amplification_means_nothing_it_says_so(step: StepMovement, reason: str) -> None:
    assert reason in str(step.group.caveat)
    if reason in ("BROADCASTING", "subscribe differently", "no member"):
        assert step.group.amplification is None


@pytest.mark.parametrize(
    "text", ["CONFIG(queues=T/a/0|T/a/1)", "MACHINE_ROOM(consumer_idcs=room1)"]
)
def test_strategies_that_leave_queues_unowned_have_the_caveat(text: str) -> None:
    after = planning_strategy(text).assign({}, EIGHT, ["x", "y"])
    assert "without an owner" in str(movement({}, ["x", "y"], after).group.caveat)


def test_processes_of_one_id_are_one_member() -> None:
    assert movement({}, ["x", "x"], owned("xx")).group.members == 1


def test_owners_must_be_members() -> None:
    with pytest.raises(UsageError, match="not members: y"):
        movement({}, "x", owned("xy"))


# Who holds each queue, out of the holdings of processes.

ONE, TWO, THREE = (MessageQueue("T", "a", number) for number in range(3))
HOLDINGS = {
    ("z", None): frozenset({ONE, TWO}),
    ("x", None): frozenset({ONE, THREE}),
    ("z", "2"): frozenset({ONE}),
}


def test_owners_are_there_once_each_in_the_order_of_the_holdings() -> None:
    assert owners_of(HOLDINGS) == {ONE: ("z", "x"), TWO: ("z",), THREE: ("x",)}


def test_of_several_owners_before_the_first_that_is_still_there_counts() -> None:
    assert previous_owner(HOLDINGS, {"x", "z"}) == {ONE: "z", TWO: "z", THREE: "x"}
    assert previous_owner(HOLDINGS, {"x"}) == {ONE: "x", THREE: "x"}
    assert previous_owner(HOLDINGS, set()) == {}


# Which strategy is best, and the words for it.


def row(strategy: str, **figures: Any) -> dict[str, Any]:
    of_rocketmq = not strategy.startswith("STICKY")
    none = {"moved": 5, "orphaned": 0, "idle": 0, "frozen": 0, "mean_peak_ratio": 1.0}
    return {"strategy": strategy, "of_rocketmq": of_rocketmq} | none | figures


def test_queues_that_nobody_reads_weigh_more_than_moves() -> None:
    best = best_of([row("MACHINE_ROOM", moved=0, orphaned=3), row("AVG", moved=9)])
    assert best is not None
    assert best.strategy == "AVG"
    assert best.reason == "0 queues without an owner (MACHINE_ROOM: 3)"


def test_of_even_ones_the_one_that_moves_least_wins() -> None:
    rows = [row("AVG", moved=9), row("CIRCLE", moved=20), row("HASH", moved=1, mean_peak_ratio=2.0),
            row("HASH2", moved=7, mean_peak_ratio=1.04)]  # fmt: skip
    best = best_of(rows)
    assert best is not None
    assert best.strategy == "HASH2"
    assert "HASH: 2.00" in best.reason
    assert "moves the fewest, 7 queues (AVG: 9)" in best.reason


def test_equal_ones_are_called_equal_and_no_group_at_all_is_no_failure() -> None:
    best = best_of([row("AVG"), row("recorded")])
    assert best is not None
    assert (best.strategy, best.reason) == ("AVG", "no other strategy does better or worse")
    empty = best_of([row("AVG", mean_peak_ratio=None), row("HASH", mean_peak_ratio=None)])
    assert empty is not None
    assert best_of([row("STICKY_BALANCED")]) is None


def test_what_rocketmq_lacks_is_never_best_but_told() -> None:
    rows = [row("AVG", moved=9), row("STICKY_BALANCED", moved=4)]
    best = best_of(rows)
    assert best is not None
    assert best.strategy == "AVG"
    told = possible(rows, best)
    assert told is not None
    assert "which RocketMQ lacks, would move 4: 5 fewer" in told
    assert possible([rows[0], row("STICKY_BALANCED", moved=4, orphaned=1)], best) is None


def test_the_examples_are_true() -> None:
    assert doctest.testmod(import_module("rebalance_core.planning.movement")) == (0, 6)
