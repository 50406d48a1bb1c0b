"""Causes of epochs with the clients that came, went or changed."""

import time
from collections.abc import Sequence
from typing import Any

from rebalance_core.report.audit_report import group_timelines

SECONDS = 5
"""Naming the causes of 20,000 epochs takes a tenth of one; a cost that grows with the square of
their number takes 16 times the 1.6 of 5,000."""


def epoch(number: int, *causes: str) -> Any:
    return {
        "cluster": "c",
        "consumer_group": "g",
        "epoch": number,
        "from_ms": number,
        "causes": [*causes],
    }


def membership(client_id: str, from_epoch: int, to_epoch: int | None = None) -> Any:
    return {
        "cluster": "c",
        "consumer_group": "g",
        "client_id": client_id,
        "from_epoch": from_epoch,
        "to_epoch": to_epoch,
        "message_model": "CLUSTERING",
    }


def causes(epochs: Sequence[Any], memberships: Sequence[Any]) -> list[str]:
    tables: Any = {"epochs": epochs, "memberships": memberships}
    (timeline,) = group_timelines([("c", "g")], tables)
    return [cause.text for cause in timeline.causes]


def test_a_cause_names_its_clients_and_counts_the_others() -> None:
    of_epochs = [
        epoch(1, "CONSUMER_JOIN"),
        epoch(2, "CONSUMER_LEAVE"),
        epoch(3, "TOPIC_CONFIG"),
        epoch(4, "CONSUMER_LOST"),
    ]
    of_members = [membership(name, 1) for name in "wzx"] + [membership("y", 1, 2)]
    assert causes(of_epochs, of_members) == [
        "CONSUMER_JOIN of w, x and 2 more",
        "CONSUMER_LEAVE of y",
        "TOPIC_CONFIG",
        "CONSUMER_LOST",
    ]


def test_many_epochs_cost_as_much_each_as_few() -> None:
    number = 20_000
    epochs = [epoch(at, "CONSUMER_JOIN") for at in range(number)]
    memberships = [membership(f"c{at}", at, at + 1) for at in range(number)]
    started = time.process_time()
    named = causes(epochs, memberships)
    assert time.process_time() - started < SECONDS
    assert named[:2] == ["CONSUMER_JOIN of c0", "CONSUMER_JOIN of c0, c1"]
