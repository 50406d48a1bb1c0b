"""What changes cost until they settle: sums over simulated futures, counted by hand where small."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.model import events
from rebalance_core.model.events import Event
from rebalance_core.model.group_settings import BROADCASTING, GroupSettings
from rebalance_core.model.queue import MessageQueue
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.scenario.scenario import Scenario
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.sweep.transitions import (
    CLOCK,
    Row,
    Transitions,
    transitions,
    with_rates_going_on,
)
from rebalance_core.planning.variants import read_strategies, variants_of
from rebalance_core.process.plan import run_plan
from rebalance_core.replay.history import GroupHistory, QueueOffset
from tests.plans import rows_of
from tests.tree import TREE

BEGIN = 1_795_000_000_000
MINUTE = 60_000


def event(number: int, at_ms: int, kind: str, **fields: Any) -> Event:
    return Event(BEGIN + at_ms, number, kind, **fields)


def member(number: int, at_ms: int, kind: str, client: str) -> Event:
    topics = ("T",) if kind == events.CONSUMER_JOIN else None
    return event(
        number, at_ms, kind, client_id=client, channel_id=f"{client}:1", subscriptions=topics
    )


def history(*more: Event, **settings: Any) -> GroupHistory:
    """Two members at rest that read four queues, then what is given."""
    there = [
        event(0, 0, events.BROKER_UP, broker_name="a"),
        event(1, 0, events.TOPIC_CONFIG, topic="T", broker_name="a", read_queue_nums=4,
              write_queue_nums=4, perm=6),
        member(2, 1 * MINUTE, events.CONSUMER_JOIN, "10.0.0.1@1#1"),
        member(3, 1 * MINUTE, events.CONSUMER_JOIN, "10.0.0.2@1#1"),
    ]  # fmt: skip
    offsets = tuple(
        QueueOffset(MessageQueue("T", "a", queue), BEGIN + at_ms, 0, at_ms // 10)
        for queue in range(4)
        for at_ms in (0, 2 * MINUTE)
    )
    return GroupHistory(
        "c",
        "g",
        GroupSettings(**settings),
        (*there, *more),
        offsets,
        (),
    )


def transition(of: GroupHistory, *asked: Any) -> tuple[Row, Any]:
    """The row and the holders of a single history."""
    (made,) = transitions([of], *asked)
    return made


LEAVE = member(4, 20 * MINUTE, events.CONSUMER_LEAVE, "10.0.0.2@1#1")
AFTER = BEGIN + 10 * MINUTE


def test_two_queues_wait_for_the_next_pass_of_the_member_that_stays() -> None:
    row, _ = transition(history(LEAVE), 20, AFTER)
    # told at once, it passes within its minimum interval of 1 s
    assert 0 < row["orphan_queue_seconds"] <= 2 * 1.5
    assert row["double_queue_seconds"] == 0
    assert row["read_again"] == 0
    assert 0 < row["convergence_ms_p99"] < 1_500


def test_who_is_lost_has_committed_all_but_a_message_unless_its_handler_is_behind() -> None:
    lost = replace(LEAVE, event_type=events.CONSUMER_LOST)
    row, _ = transition(history(lost), 50, AFTER)
    # 2 queues of 100 messages a second
    assert row["read_again"] == pytest.approx(2, abs=0.1)
    behind = replace(CLOCK, handler_ms=20)
    row, _ = transition(history(lost, ordered=True), 50, AFTER, behind)
    # 500 at the mean, 1,000 at most, and 2 in work
    assert 300 < row["read_again"] < 700


def test_steps_before_the_first_edit_do_not_count() -> None:
    assert transition(history(LEAVE), 5, BEGIN + 30 * MINUTE)[0]["orphan_queue_seconds"] == 0
    everything = transition(history(LEAVE), 5)[0]["orphan_queue_seconds"]
    assert everything > transition(history(LEAVE), 5, AFTER)[0]["orphan_queue_seconds"]


def test_a_queue_that_no_member_takes_does_not_count() -> None:
    both = member(5, 20 * MINUTE, events.CONSUMER_LEAVE, "10.0.0.1@1#1")
    row, _ = transition(history(LEAVE, both), 5, AFTER)
    assert row["orphan_queue_seconds"] < 0.1  # one stops before the other, and may be succeeded
    back = member(6, 20 * MINUTE + 30_000, events.CONSUMER_JOIN, "10.0.0.3@1#1")
    row, _ = transition(history(LEAVE, both, back), 5, AFTER)
    assert 4 * 29 < row["orphan_queue_seconds"] < 4 * 33


def test_who_broadcasts_hands_nothing_over() -> None:
    row, _ = transition(history(LEAVE, message_model=BROADCASTING), 5, AFTER)
    assert row["orphan_queue_seconds"] == row["double_queue_seconds"] == 0


def test_messages_go_on_coming_at_their_mean_rate() -> None:
    going_on = with_rates_going_on(history(LEAVE))
    last = max(going_on.queue_offsets or (), key=lambda row: row.observed_ms)
    passed_ms = last.observed_ms - BEGIN
    assert last.max_offset == pytest.approx(passed_ms / 10, abs=1)
    unknown = replace(history(LEAVE), queue_offsets=None)
    assert with_rates_going_on(unknown) is unknown
    row, _ = transition(unknown, 5, AFTER)
    assert row["read_again"] is None
    assert row["orphan_queue_seconds"] > 0


def test_which_groups_are_simulated() -> None:
    transitions = Transitions(5, frozenset({("c", "g")}))
    assert transitions.wants("c", "g")
    assert not transitions.wants("c", "h")
    assert not Transitions(0).wants("c", "g")
    ((_, row, _),) = transitions.rows(history(LEAVE), [(7, None)], {"c": AFTER})
    assert row == transition(history(LEAVE), 5, AFTER)[0]


def restart(name: str, **keys: Any) -> Scenario:
    (given,) = read_scenarios([str(TREE / "rebalance_core/bundled/scenarios/rolling-restart.toml")])
    (edit,) = given.edits
    return replace(given, name=name, edits=(replace(edit, **keys),))


def test_the_pace_of_a_restart(tmp_path: Path) -> None:
    scenarios = [
        restart("one", percent=1.0, every=MINUTE),
        restart("halves", percent=50.0, every=MINUTE),
        restart("all", percent=100.0, every=MINUTE),
    ]
    inputs = read_input_tables(str(TREE / "rebalance_core/bundled/demo/steady/tables"))
    variants = variants_of(scenarios, read_strategies(["AVG", "STICKY_BALANCED"], []), (0,))
    run_plan(inputs, variants, tmp_path / "plan", PlanConfig(group="checkout", futures=10))
    rows = {
        (row["scenario"], row["strategy"]): row
        for row in rows_of(tmp_path / "plan", "plan_summary")
    }
    orphan = {name: rows[name, "AVG"]["orphan_queue_seconds"] for name in ("one", "halves", "all")}
    assert orphan["halves"] < orphan["one"] < orphan["all"] / 4
    # 32 queues have nobody for 15 s
    assert 32 * 15 < orphan["all"] < 32 * 18
    assert rows["halves", "STICKY_BALANCED"]["orphan_queue_seconds"] is None
    run_plan(inputs, variants, tmp_path / "none", PlanConfig(group="checkout", futures=0))
    untimed = rows_of(tmp_path / "none", "plan_summary")
    assert {row["orphan_queue_seconds"] for row in untimed} == {None}
