"""Kernels and replay agree where a queue has several holders and its broker loses the master.

The histories are those that hold the bounds of starts (`tests.unit.replay.role_switch_truth`):
clients commit all the time, masters go and come back.
Something is added that makes several processes take from a queue.
"""

import random
from collections import Counter
from dataclasses import replace

import pytest

from rebalance_core.model.events import Event
from rebalance_core.replay.history import GroupHistory
from tests.unit.kernels.fleets import (
    assert_equal,
    build,
    kernel_rows,
    name_of,
    reasons_of,
    replay_rows,
)
from tests.unit.replay.histories import commit, event, history, join, leave, numbered, seen, topic
from tests.unit.replay.role_switch_truth import ReplicatedCluster

HISTORIES = 60
TWIN, SUSPENDED, MODEL, STRATEGY, POP = "twin", "suspended", "model", "strategy", "pop"


def held_by_several(given: GroupHistory, how: str, rng: random.Random) -> GroupHistory:
    """The history, and at random moments what makes several processes take from its queues."""
    end_ms = max(e.event_ms for e in given.events) + 60_000
    joins = [e for e in given.events if e.event_type == "CONSUMER_JOIN"]
    more: list[Event] = []
    for number in range(rng.randrange(1, 4)):
        at_ms = rng.randrange(1, end_ms)
        over_ms = at_ms + rng.randrange(1, end_ms)
        member, lasts = rng.choice(joins), rng.random() < 0.3
        newcomer = replace(member, event_ms=at_ms, detail=None, channel_id=None)
        name = f"{how}{number}"
        match how:
            case "twin":
                more.append(replace(newcomer, channel_id=name))
                end = event(over_ms, "CONSUMER_LEAVE", member.client_id, channel_id=name)
            case "suspended":
                who = {"client_id": member.client_id, "channel_id": member.channel_id}
                more.append(event(at_ms, "CONSUMER_SUSPEND", **who))
                end = event(over_ms, "CONSUMER_RESUME", **who)
            case "model":
                more.append(replace(newcomer, client_id=name, message_model="BROADCASTING"))
                end = leave(over_ms, name)
            case "strategy":
                more.append(replace(newcomer, client_id=name, strategy="AVG_BY_CIRCLE"))
                end = leave(over_ms, name)
            case _:
                detail = f"POP(share_queue_num={number})"
                more.append(event(at_ms, "REQUEST_MODE", topic="T", detail=detail))
                end = event(over_ms, "REQUEST_MODE", topic="T", detail="PULL")
        more += [] if lasts else [end]
    events = numbered(sorted([*given.events, *more], key=lambda e: e.event_ms))
    settings = given.settings
    if how == POP:
        settings = replace(
            settings,
            rebalance_mode="BROKER",
            consumer_type="PUSH",
            message_model="CLUSTERING",
            client_version="5.3",
            broker_version="5.3",
        )
    return replace(given, events=events, settings=settings)


DOWN = event(400_000, "MASTER_DOWN", broker_name="a", detail="SLAVE_READ")
UP = event(500_000, "MASTER_UP", broker_name="a")
X2 = join(2_000, "x", channel_id="2")
COMMITS = [
    commit("a0", 300_000, 16, "x"), commit("a0", 399_000, 20, "x"), commit("a0", 460_000, 42, "x"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("between", "low"),
    [
        pytest.param([DOWN], 16, id="one process, which alone wrote"),
        pytest.param([X2, DOWN], 0, id="two processes: each may go back to where it started"),
        pytest.param(
            [X2, leave(30_000, "x", channel_id="2"), DOWN], 16, id="two, one of them long ago"
        ),
        pytest.param([X2, DOWN, UP], 0, id="two, and the master is back"),
        pytest.param(
            [X2, DOWN, leave(450_000, "x", channel_id="2"), UP], 0, id="two when the master went"
        ),
        pytest.param(
            [event(3_000, "CONSUMER_SUSPEND", "x"), join(4_000, "w"), leave(9_000, "w"), DOWN], 16,
            id="a suspended member's queue, once another's too",
        ),
    ],
)  # fmt: skip
def test_the_lowest_start_after_a_loss(between: list[Event], low: int) -> None:
    """y takes a0 when x leaves, 95 s after the master went, or later."""
    left_ms = 600_000
    ends = [leave(left_ms, "x"), leave(left_ms, "x", channel_id="2")][: 1 + (X2 in between)]
    given = history(
        topic(0, 1),
        join(1_000, "x"),
        *between,
        join(left_ms - 90_000, "y"),
        *ends,
        commits=COMMITS,
        offsets=[seen("a0", 100, 10, 90), seen("a0", 1_000_000, 10, 95)],
    )
    prepared = build([given])
    assert reasons_of(prepared)[name_of(given)] == "REGULAR"
    rows = kernel_rows(prepared)
    assert_equal(rows, replay_rows([given]))
    assert rows["pull_starts"][-1]["client_id"] == "y"
    assert rows["pull_starts"][-1]["start_offset_low"] == low


def test_starts_are_those_of_the_replay(seed: int) -> None:
    tally: Counter[str] = Counter()
    for number in range(HISTORIES):
        rng = random.Random(f"{seed}/{number}")
        how = rng.choice((TWIN, SUSPENDED, MODEL, STRATEGY, POP))
        given = held_by_several(ReplicatedCluster(rng).run().history, how, rng)
        prepared = build([given])
        if reasons_of(prepared)[name_of(given)] != "REGULAR":
            continue
        tally[how] += bool(prepared.shared.any()) or prepared.popped is not None
        assert_equal(kernel_rows(prepared), replay_rows([given]))
    assert min(tally[how] for how in (TWIN, MODEL, STRATEGY, POP)) > HISTORIES / 20
