"""The league of strategies: steps that say nothing of a strategy stay out of its means."""

from typing import Any

import pyarrow as pa

from rebalance_core.contracts.planning import PLAN_STEPS
from rebalance_core.process.plan_summary import SoundSteps, plan_league, plan_summary

Row = dict[str, Any]


def league_step(group: str, **figures: Any) -> Row:
    """A counted step that moves 4 of 8 queues to end with 4 and 2, 2 on three members."""
    row: Row = {
        "cluster": "c",
        "consumer_group": group,
        "scenario": "s",
        "strategy": "AVG",
        "of_rocketmq": True,
        "seed": 0,
        "epoch": 1,
        "change_ms": 1,
        "causes": [],
        "status": "SETTLED",
        "counted": True,
        "members": 3,
        "queues": 8,
        "moved": 4,
        "voluntary_moves": 4,
        "minimum_moves": 2,
        "amplification": 2.0,
        "stickiness": 0.5,
        "max_queues": 4,
        "min_queues": 2,
        "peak_ratio": 1.5,
        "idle_members": 0,
        "orphaned": 0,
        "shared": 0,
        "pop_queues": 0,
    }
    return row | figures


EVEN = league_step("even")
EVERYBODY_HAS_ALL = league_step(
    "broadcast",
    moved=8,
    minimum_moves=None,
    amplification=None,
    stickiness=1.0,
    max_queues=8,
    min_queues=8,
    peak_ratio=3.0,
)
NOBODY_HAS_SOME = league_step(
    "orphans",
    moved=1,
    amplification=None,
    stickiness=0.9,
    max_queues=2,
    min_queues=0,
    peak_ratio=0.75,
    idle_members=1,
    orphaned=4,
)
FROZEN = league_step(
    "frozen",
    status="FROZEN",
    moved=0,
    minimum_moves=None,
    amplification=None,
    stickiness=1.0,
    max_queues=8,
    min_queues=0,
    peak_ratio=3.0,
    idle_members=2,
)
EMPTY = league_step(
    "even",
    epoch=2,
    status="EMPTY",
    members=0,
    moved=0,
    minimum_moves=None,
    amplification=None,
    stickiness=0.0,
    max_queues=0,
    min_queues=0,
    peak_ratio=None,
    orphaned=8,
)
MEANS = (
    "moved_per_rebalance",
    "amplification",
    "stickiness",
    "mean_peak_ratio",
    "worst_peak_ratio",
)


def league(*rows: Row, parts: int = 1) -> Row:
    """The league of one strategy; the steps come group by group, and are counted in some parts."""
    schema, summaries = PLAN_STEPS.arrow_schema(), []
    sounds = [SoundSteps() for _ in range(parts)]
    for number, group in enumerate(dict.fromkeys(row["consumer_group"] for row in rows)):
        own = [row for row in rows if row["consumer_group"] == group]
        steps = pa.Table.from_pylist(own, schema)
        sounds[number % parts].add(steps)
        summaries.append(plan_summary(steps))
    sound = SoundSteps()
    for part in sounds:
        sound.merge(part)
    [found] = plan_league(pa.concat_tables(summaries), sound).to_pylist()
    return dict(found)


def test_means_are_of_steps_that_say_something_of_the_strategy() -> None:
    alone = league(EVEN)
    assert [alone[name] for name in MEANS] == [4.0, 2.0, 0.5, 1.5, 1.5]
    assert alone["caveat"] is None
    total = league(EVEN, EVERYBODY_HAS_ALL, NOBODY_HAS_SOME, FROZEN)
    assert league(EVEN, EVERYBODY_HAS_ALL, NOBODY_HAS_SOME, FROZEN, parts=3) == total
    assert {name: total[name] for name in MEANS} == {name: alone[name] for name in MEANS}
    sums = [total[name] for name in ("groups", "rebalances", "moved", "idle_members", "orphaned")]
    assert sums == [4, 4, 13, 3, 4]
    assert total["caveat"].startswith(
        "amplification leaves out 3 of 4 groups (per variant), the means 3 of 4 steps: "
    )
    assert "members broadcast" in total["caveat"]


def test_a_step_that_leaves_no_member_there_has_no_balance() -> None:
    found = league(EVEN, EMPTY)
    assert (found["stickiness"], found["mean_peak_ratio"], found["caveat"]) == (0.5, 1.5, None)


def test_of_broadcasting_alone_there_is_no_mean() -> None:
    found = league(EVERYBODY_HAS_ALL)
    assert {found[name] for name in MEANS} == {None}
    assert (found["rebalances"], found["moved"]) == (1, 8)
