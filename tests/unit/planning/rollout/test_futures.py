"""Groups at rest, and the futures of a plan: as the plain loop has them, from any history."""

from dataclasses import replace

import numpy as np
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.model import events
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.rollout.futures import (
    Rollouts,
    Slice,
    at_rest,
    chained,
    deployed_group,
    figures_of,
)
from rebalance_core.planning.rollout.search import RolloutPlan, Search
from rebalance_core.process.propagate import group_histories
from rebalance_core.process.rollouts import deployable
from rebalance_core.replay.history import GroupHistory
from rebalance_core.timing.measured import measured
from rebalance_core.timing.reference.play import play_seeds_one_by_one
from rebalance_core.timing.ticks import Ticks
from tests.tree import TREE
from tests.unit.replay.histories import event, history, topic
from tests.unit.timing.futures import happens, joins, two_brokers

STEADY = TREE / "rebalance_core/bundled/demo/steady/tables"
PLANS = (
    RolloutPlan("25%", "25%", down_ms=5_000, spread_ms=0),
    RolloutPlan(1, 0, pause_ms=2_000, down_ms=5_000, ready=1_000, order="last_first", spread_ms=0),
    RolloutPlan(0, "50%", down_ms=5_000, graceful=False, address="kept", spread_ms=0),
    RolloutPlan("50%", 0, down_ms=5_000, spread_ms=2_000, ready="container"),
    RolloutPlan(1, 1, down_ms=5_000, spread_ms=0, suspend_ms=4_000),
)
SEARCH = Search("restart", "*")


def demo() -> list[GroupHistory]:
    inputs = read_input_tables(str(STEADY))
    return group_histories(inputs)


def test_a_group_at_rest_has_what_is_there_at_the_end() -> None:
    its = history(
        *two_brokers(4),
        event(0, "BROKER_UP", broker_name="a"),
        event(0, "BROKER_UP", broker_name="b"),
        joins(1_000, "one"),
        joins(1_000, "two"),
        joins(1_000, "three"),
        topic(2_000, 2, "T", "a"),
        happens(3_000, events.CONSUMER_LEAVE, "two"),
        happens(4_000, events.SUBSCRIBE, "one", topic="U"),
        event(5_000, "BROKER_DOWN", broker_name="b"),
        joins(6_000, "three"),
        happens(7_000, events.CONSUMER_LOST, "one", broker_name="a"),
    )
    rest = at_rest(its)
    told = [(e.event_type, e.client_id or e.broker_name, e.read_queue_nums) for e in rest.events]
    assert told == [
        ("BROKER_UP", "a", None),
        ("TOPIC_CONFIG", "a", 2),
        ("CONSUMER_JOIN", "one", None),
        ("SUBSCRIBE", "one", None),
        ("CONSUMER_JOIN", "three", None),
    ]
    last_ms = max(e.event_ms for e in its.events)
    assert {e.event_ms for e in rest.events} == {last_ms}


def test_what_cannot_be_deployed_states_why() -> None:
    nobody = history(*two_brokers(4), joins(1, "one"), happens(2, events.CONSUMER_LEAVE, "one"))
    assert deployed_group(nobody).trouble == "has no member"
    no_queue = history(joins(1, "one"))
    assert deployed_group(no_queue).trouble == "has no queue to read"
    assert deployed_group(history(*two_brokers(4), joins(1, "one"))).trouble is None


@pytest.mark.parametrize("consumer_type", ["LITE_PULL", "PULL"])
def test_what_has_no_suspend_is_in_no_search_of_suspensions(consumer_type: str) -> None:
    its = history(*two_brokers(4), joins(1, "one"), consumer_type=consumer_type)
    group = deployed_group(its)
    assert group.trouble_in(SEARCH) is None
    suspending = Search("restart", "*", suspend=(0, 2_000))
    assert group.trouble_in(suspending) == (
        f"has {consumer_type} consumers, which have no suspend()"
    )
    with pytest.raises(InputRefused, match=f"has {consumer_type} consumers, which have no suspend"):
        deployable(suspending, [group])
    assert deployable(SEARCH, [group]) == ((group,), ())
    # what no search can simulate comes first
    queueless = deployed_group(history(joins(1, "one"), consumer_type=consumer_type))
    assert queueless.trouble_in(suspending) == queueless.trouble == "has no queue to read"
    push = deployed_group(history(*two_brokers(4), joins(1, "one")))
    assert push.trouble_in(suspending) is None


@pytest.mark.parametrize(
    ("of_member", "of_group", "refused"),
    [
        ("PROXY", "CLIENT", True),
        (None, "PROXY", True),
        ("CLIENT", "PROXY", False),
        (None, "BROKER", False),
    ],
)
def test_members_behind_a_proxy_are_in_no_search_of_suspensions(
    of_member: str | None, of_group: str, refused: bool
) -> None:
    clients = joins(1, "one", rebalance_mode="CLIENT"), joins(1, "two", rebalance_mode=of_member)
    group = deployed_group(history(*two_brokers(4), *clients, rebalance_mode=of_group))
    trouble = "has members behind a proxy, which have no suspend()" if refused else None
    assert group.trouble_in(Search("restart", "*", suspend=(0, 2_000))) == trouble
    assert group.trouble_in(SEARCH) is None


@pytest.mark.parametrize("plan", range(len(PLANS)))
def test_figures_are_those_of_the_plain_loop(plan: int) -> None:
    groups = tuple(map(deployed_group, demo()))
    rollouts = Rollouts(SEARCH, PLANS, groups)
    for group in range(len(groups)):
        piece = Slice(plan, group, range(18, 22))
        ours = rollouts.play(piece)
        parts = []
        # of the plan with a spread the first two futures belong to another draw of starts
        for draw, numbers in ((1, [18, 19]), (2, [20, 21])):
            draw = draw if PLANS[plan].spread_ms else 0
            its, begin_ms, timeline = rollouts._timeline(piece, draw)
            seeds = np.array(numbers, np.int64)
            log = play_seeds_one_by_one(timeline, seeds.tolist(), rollouts.clock)
            ticks = Ticks(timeline, seeds, rollouts.clock)
            made = measured(its, ticks, log, 0, (begin_ms, None))
            parts += [figures_of([made], begin_ms, groups[group].rate)]
        plain = chained(parts)
        assert ours.moves == plain.moves > 0
        assert ours.read_again_milli is not None
        assert ours.late_milli is not None
        assert plain.late_milli is not None
        assert ours.late_milli.tolist() == plain.late_milli.tolist()
        assert (ours.late_milli == 100 * ours.unread_ms).all()  # at 100 a second
        suspended = PLANS[plan].suspend_ms  # of each queue, each time
        assert (ours.unread_ms - ours.orphan_ms >= suspended * groups[group].members).all()
        assert (ours.unread_ms - ours.orphan_ms <= suspended * 3 * 32).all()
        for name in ("finish_ms", "orphan_ms", "unread_ms", "double_ms", "read_again_milli"):
            assert getattr(ours, name).tolist() == getattr(plain, name).tolist(), name
            assert len(getattr(ours, name)) == 4


def test_what_was_before_makes_no_difference() -> None:
    """The demo's joins, once played before the rollout and once the group is at rest."""
    for its in demo():
        group = deployed_group(its)
        whole = replace(group, history=replace(its, events=tuple(its.events)))
        found = [
            Rollouts(SEARCH, PLANS[:1], (each,)).play(Slice(0, 0, range(200)))
            for each in (group, whole)
        ]
        for name in ("orphan_ms", "read_again_milli", "finish_ms"):
            rest, played = (getattr(each, name) for each in found)
            error = np.sqrt(rest.var() / len(rest) + played.var() / len(played))
            assert abs(rest.mean() - played.mean()) <= 4 * error, name


def test_parts_of_seeds_are_those_of_the_whole() -> None:
    rollouts = Rollouts(SEARCH, PLANS, (deployed_group(demo()[0]),))
    whole = rollouts.play(Slice(1, 0, range(6)))
    parts = [rollouts.play(Slice(1, 0, seeds)) for seeds in (range(2), range(2, 6))]
    assert whole.orphan_ms.tolist() == [*parts[0].orphan_ms, *parts[1].orphan_ms]
    assert whole.moves == parts[0].moves + parts[1].moves


def test_hand_overs_are_of_the_rollout_alone() -> None:
    rollouts = Rollouts(SEARCH, PLANS, tuple(map(deployed_group, demo())))
    rows = rollouts.handovers(0, 3).to_pylist()
    assert {row["seed"] for row in rows} == {0, 1, 2}
    assert {row["consumer_group"] for row in rows} == {"checkout", "ledger"}
    begin_ms = rollouts._timeline(Slice(0, 0, range(1)))[1]
    assert min(row["change_ms"] for row in rows) >= begin_ms


def test_draws_start_pods_differently_and_a_piece_may_take_another_spread() -> None:
    rollouts = Rollouts(SEARCH, PLANS, (deployed_group(demo()[0]),))
    turns = [rollouts.turns(3, draw)[0] for draw in (0, 1)]
    assert turns[0] != turns[1]
    piece = Slice(3, 0, range(1))
    starts = {e.event_ms for e in rollouts._timeline(piece)[0].events}
    others = {e.event_ms for e in rollouts._timeline(piece, 1)[0].events}
    assert starts != others
    # what is played joins when `turns` has it
    history, begin_ms, _ = rollouts._timeline(piece)
    joins = {
        e.event_ms - begin_ms
        for e in history.events
        if e.event_ms > begin_ms and e.event_type == events.CONSUMER_JOIN
    }
    assert joins == {turn.join_ms for turn in turns[0]}
    assert rollouts.draws(3, 20) == 2
    assert rollouts.draws(0, 20) == 1
    assert rollouts.plan_of(replace(piece, spread_ms=0, ready=0)) == replace(
        PLANS[3], spread_ms=0, ready=0
    )
