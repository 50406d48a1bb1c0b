"""The pass of a client, as the ledger of its group has it."""

from typing import Any

import pytest

from rebalance_core.explain.client_pass import client_pass
from rebalance_core.explain.view import GroupRows
from rebalance_core.model.errors import UsageError
from rebalance_core.model.queue import MessageQueue
from rebalance_core.replay.group_replay import replay_group
from tests.recordings.tables import derived_tables, histories, strategy_for

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
