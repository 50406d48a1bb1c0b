"""Movement of a step as group_metrics has it, and where it has no meaning."""

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.known_strategies import planning_strategy
from rebalance_core.planning.movement import Holders, Movement, StepMovement, movement
from tests.unit.replay.histories import Row, join, leave, replay, topic

EIGHT = [MessageQueue("T", "a", i) for i in range(8)]


def owned(text: str, name: str = "T") -> dict[MessageQueue, str]:
    """``"xxy"``: queues 0 and 1 are x's, queue 2 is y's; ``-`` is no owner's."""
    return {MessageQueue(name, "a", i): c for i, c in enumerate(text) if c != "-"}


def covers(row: Row, epoch: int) -> bool:
    return row["from_epoch"] <= epoch and (row["to_epoch"] is None or epoch < row["to_epoch"])


def test_a_third_member_moves_more_than_it_must() -> None:
    step = movement(owned("xxxxyyyy"), "xyz", owned("xxxyyyzz"))
    assert step.group == Movement(
        topic=None,
        queues=8,
        members=3,
        moved=3,
        voluntary_moves=3,
        minimum_moves=2,
        amplification=1.5,
        stickiness=5 / 8,
        max_queues=3,
        min_queues=2,
        peak_ratio=9 / 8,
        idle_members=0,
    )
    assert list(step.topics) == ["T"]


def test_the_figures_are_those_of_the_ledger() -> None:
    tables = replay(
        topic(0, 8),
        topic(0, 5, "U"),
        join(1, "x", "T", "U"),
        join(5, "y", "T", "U"),
        join(9, "z", "T", "U"),
        leave(20, "x"),
        topic(30, 12),
        strategy="AVG",
    )
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
        (
            movement({}, "xy", dict.fromkeys(EIGHT, ("x", "y")), message_model="BROADCASTING"),
            "BROADCASTING",
        ),
        (movement({}, "xy", owned("xx-y"), queues=EIGHT[:4]), "without an owner: 1"),
        (movement({}, {"x": ["T"], "y": ["T", "U"]}, owned("xy")), "subscribe differently"),
        (movement({}, "xy", dict.fromkeys(EIGHT, ("x", "y"))), "several members hold: 8"),
        (movement(owned("xy"), [], {}, queues=EIGHT[:2]), "no member"),
    ],
)
def test_where_amplification_means_nothing_it_has_a_caveat(step: StepMovement, reason: str) -> None:
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
