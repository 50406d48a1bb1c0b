"""Hypothetical strategies, epoch by epoch: the replay's pass, and the proven minimum."""

import random
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from rebalance_core.model.events import Event
from rebalance_core.planning.hypothetical_groups import (
    OWNERSHIP,
    STEPS,
    HypotheticalStrategies,
    allocated_epochs,
    step_row,
    unallocated_replay,
)
from rebalance_core.planning.known_strategies import planning_strategy
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import GroupHistory
from tests.unit.replay.histories import event, history, join, leave, strategy_for, topic
from tests.unit.replay.test_random_histories import histories

RANDOM = settings(
    max_examples=100, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck)
)
OF_METRICS = ("members", "queues", "moved", "voluntary_moves", "minimum_moves", "amplification",
              "stickiness", "max_queues", "min_queues", "peak_ratio", "idle_members")  # fmt: skip
OF_EPOCHS = ("epoch", "causes", "status", "orphaned", "shared", "pop_queues")


def expected_steps(given_history: GroupHistory, strategy: str) -> list[dict[str, Any]]:
    """Steps from the ledger of a whole replay under the strategy."""
    tables = replay_group(given_history, strategy_for, strategy_override=strategy)
    whole = [row for row in tables["group_metrics"] if row["topic"] is None]
    return [
        {name: epoch[name] for name in OF_EPOCHS}
        | {"change_ms": epoch["from_ms"]}
        | {name: metrics[name] for name in OF_METRICS}
        | everyone(epoch, metrics)
        | of_shared_topics([row for row in tables["pop_metrics"] if row["epoch"] == epoch["epoch"]])
        for epoch, metrics in zip(tables["epochs"], whole, strict=True)
    ]


def everyone(epoch: dict[str, Any], metrics: dict[str, Any]) -> dict[str, Any]:
    """Where members share all queues, all are counted: metrics are of owned queues."""
    if epoch["pop_queues"] and not metrics["queues"]:
        return {"members": epoch["distinct_members"]}
    return {}


def of_shared_topics(rows: list[dict[str, Any]]) -> dict[str, Any]:
    read = [row for row in rows if row["queues"]]
    return {
        "min_clients_per_queue": min([row["min_clients_per_queue"] for row in read], default=None),
        "max_clients_per_queue": max([row["max_clients_per_queue"] for row in read], default=None),
        "unreached": sum(row["unreached"] for row in read) if read else None,
    }


@RANDOM
@given(histories(), st.sampled_from(("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH")))
def test_a_strategy_of_rocketmq_gives_its_own_ledger(
    given_history: GroupHistory, name: str
) -> None:
    steps = allocated_epochs(unallocated_replay(given_history), planning_strategy(name))
    assert [step_row(epoch) for epoch in steps] == expected_steps(given_history, name)


def changes(rng: random.Random) -> list[Event]:
    """A topic on two brokers, members that come and go, brokers that fail, queues that grow."""
    made = [topic(0, rng.randint(1, 9)), topic(0, rng.randint(1, 9), broker="b")]
    live: list[str] = []
    for number in range(30):
        at_ms, choice = 1_000 * (number + 1), rng.random()
        if choice < 0.5 or not live:
            live.append(f"10.0.0.{number}")
            made.append(join(at_ms, live[-1]))
        elif choice < 0.8:
            made.append(leave(at_ms, live.pop(rng.randrange(len(live)))))
        elif choice < 0.9:
            made.append(topic(at_ms, rng.randint(1, 12), broker=rng.choice("ab")))
        else:
            kind = rng.choice(("BROKER_DOWN", "BROKER_UP"))
            made.append(event(at_ms, kind, broker_name="b"))
    return made


def test_sticky_balanced_moves_the_minimum_in_every_step(seed: int) -> None:
    rng, strategy, steps = random.Random(seed), planning_strategy("STICKY_BALANCED"), 0
    for number in range(40):
        base = unallocated_replay(history(*changes(rng)))
        for row in map(step_row, allocated_epochs(base, strategy)):
            steps += 1
            if row["minimum_moves"] is not None:
                assert row["moved"] == row["minimum_moves"], (seed, number, row)
                assert row["max_queues"] - row["min_queues"] <= 1, (seed, number, row)
    assert steps > 500


def test_bounded_hash_keeps_its_bound(seed: int) -> None:
    rng = random.Random(seed)
    strategy = planning_strategy("CONSISTENT_HASH_BOUNDED(epsilon=0.25)")
    for number in range(10):
        base = unallocated_replay(history(*changes(rng)))
        for row in map(step_row, allocated_epochs(base, strategy)):
            if row["status"] == "SETTLED" and row["queues"]:
                most = -(-5 * row["queues"] // (4 * row["members"]))
                assert row["max_queues"] <= most, (seed, number, row)


def test_every_strategy_gets_its_number_and_the_group_s_names() -> None:
    given_history = history(topic(0, 4), join(1, "x"), join(2, "y"))
    numbered = [(3, planning_strategy("STICKY_BALANCED"))]
    asked = HypotheticalStrategies(numbered, include_retry_topics=False)
    [(number, made)] = asked.tables((STEPS, OWNERSHIP), given_history)
    steps, held = made[STEPS], made[OWNERSHIP]
    assert (number, [row["moved"] for row in steps]) == (3, [4, 2])
    assert {(row["cluster"], row["consumer_group"]) for row in steps} == {("c", "g")}
    last = {row["queue_id"]: row["client_id"] for row in held if row["to_epoch"] is None}
    assert last == {0: "x", 1: "x", 2: "y", 3: "y"}


def test_broadcasting_and_frozen_topics_are_rocketmqs_business() -> None:
    everywhere = history(topic(0, 4), join(1, "x"), join(2, "y"), message_model="BROADCASTING")
    strategy = planning_strategy("STICKY_BALANCED")
    last = step_row(allocated_epochs(unallocated_replay(everywhere), strategy)[-1])
    assert (last["max_queues"], last["min_queues"], last["minimum_moves"]) == (4, 4, None)
    lost = history(topic(0, 4), join(1, "x"), event(2, "BROKER_DOWN", broker_name="a"))
    last = step_row(allocated_epochs(unallocated_replay(lost), strategy)[-1])
    assert (last["status"], last["moved"]) == ("FROZEN", 0)


def test_what_is_popped_has_no_owner() -> None:
    mode = event(1_000, "REQUEST_MODE", topic="T", detail="POP(share_queue_num=0)")
    given_history = history(
        topic(0, 3),
        topic(0, 2, "U"),
        join(0, "x"),
        join(0, "y"),
        mode,
        subscriptions=("T", "U"),
        rebalance_mode="BROKER",
    )
    steps = allocated_epochs(unallocated_replay(given_history, False), planning_strategy("AVG"))
    held = {queue.topic for queues in steps[-1].holdings.values() for queue in queues}
    assert held == {"U"}
    assert step_row(steps[-1])["queues"] == 2
