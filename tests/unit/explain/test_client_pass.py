"""The pass of a client, as the ledger of its group has it, of several languages too."""

import random
from typing import Any

import pytest

from rebalance_core.explain.client_pass import client_pass
from rebalance_core.explain.view import GroupRows
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.replay.history import GroupHistory
from tests.recordings.tables import derived_tables, histories, strategy_for
from tests.unit.explain.ledgers import group_rows
from tests.unit.explain.test_random_groups import check
from tests.unit.replay.histories import GROUP, history, join, leave, ledger, topic

# The pass of a client, as the ledger of its group has it.

QUEUE = ("topic", "broker_name", "queue_id")

Tables = dict[str, list[Any]]


def rows_of(ledger: Tables) -> GroupRows:
    rows: Any = {name: ledger[name] for name in GroupRows.__dataclass_fields__ if name in ledger}
    return GroupRows(**rows)


@pytest.mark.parametrize("name", ["join-leave", "orderly", "strategies", "start-offsets"])
def test_every_pass_ends_with_what_the_ledger_has(name: str) -> None:
    passes = agreeing = 0
    for group in histories(derived_tables(name)):
        ledger = replay_group(group, strategy_for)
        rows = rows_of(ledger)
        loads: list[Any] = ledger["consumer_load"]
        for member in ledger["memberships"]:
            until = float("inf") if member["to_epoch"] is None else member["to_epoch"]
            since = member["from_epoch"]
            epochs = [e for e in ledger["epochs"] if since <= e["epoch"] < until]
            for epoch in epochs:
                done = client_pass(rows, loads, member["client_id"], epoch["from_ms"])
                assert done.done is not None
                passes += 1
                agreeing += done.agrees is True
                starts = {
                    MessageQueue(row["topic"], row["broker_name"], row["queue_id"]): row[
                        "start_offset"
                    ]
                    for row in ledger["pull_starts"]
                    if row["epoch"] == epoch["epoch"] and row["client_id"] == member["client_id"]
                }
                told = {s.queue: s.values["offset"] for s in done.done.steps if s.what == "start"}
                for queue, offset in starts.items():
                    assert told[queue] == ("UNKNOWN" if offset is None else offset)
    assert passes > 5
    assert agreeing == passes


def test_a_stranger_and_another_time_are_named() -> None:
    group = next(histories(derived_tables("join-leave")))
    ledger = replay_group(group, strategy_for)
    first, member = ledger["epochs"][0], ledger["memberships"][0]["client_id"]
    with pytest.raises(UsageError, match=r"--client .* is not a member"):
        client_pass(rows_of(ledger), [], member + "x", first["from_ms"])
    with pytest.raises(UsageError, match="outside the ledger"):
        client_pass(rows_of(ledger), [], member, first["from_ms"] - 1)


# Random groups of clients of several languages: explanations are those of the replay.

IDS = ("x", "y", "z", "\uffee", "\U0001f600", "10.0.0.1@5", "10.0.0.10@5")
"""Two of them are in another order by bytes than by UTF-16."""
LANGUAGES = ("JAVA", "GO", "CPP", "RUST", "NODE", None)
STRATEGIES = ("AVG", "CONSISTENT_HASH(virtual_nodes=3)", "AVG_BY_CIRCLE")


def mixed_group(seed: int) -> GroupHistory:
    draw = random.Random(seed)
    events = [topic(0, draw.randint(1, 6)), topic(0, draw.randint(1, 4), broker="b")]
    events.append(topic(0, draw.randint(1, 3), "U"))
    at_ms, live = 1_000, list[str]()
    for _ in range(draw.randint(3, 8)):
        at_ms += draw.choice([1_000, 30_000, 200_000])
        free = [one for one in IDS if one not in live]
        what = draw.random()
        if what < 0.65 and free:
            live.append(draw.choice(free))
            topics = draw.choice([("T",), ("T", "U"), ("U",)])
            events.append(join(at_ms, live[-1], *topics, language=draw.choice(LANGUAGES)))
        elif what < 0.8 and live:
            events.append(leave(at_ms, live.pop(draw.randrange(len(live)))))
        else:
            events.append(
                topic(at_ms, draw.randint(1, 6), broker=draw.choice("ab"), perm=draw.choice([6, 2]))
            )
    return history(*events, strategy=draw.choice(STRATEGIES), ordered=draw.random() < 0.3)


@pytest.mark.parametrize("block", range(6))
def test_owners_and_lists_are_the_replay_s(block: int) -> None:
    for seed in range(block * 20, block * 20 + 20):
        print("seed", seed)
        assert "UNKNOWN" not in check(mixed_group(seed))


def test_the_pass_of_a_go_member_is_noted_as_java_s_steps() -> None:
    members = join(1_000, "x"), join(1_000, "y", language="GO", version="2.1.2")
    rows = group_rows(ledger(history(topic(0, 4), *members)), GROUP)
    for client_id, noted in (("x", False), ("y", True)):
        done = client_pass(rows, [], client_id, 2_000)
        assert done.agrees
        assert any("this client is written in GO" in note for note in done.notes) == noted
