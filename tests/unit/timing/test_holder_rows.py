"""From when to when processes hold queues, out of logs made by hand."""

from typing import Any

from rebalance_core.contracts.propagation import HOLDERS
from rebalance_core.model.group_settings import BROADCASTING, GroupSettings
from rebalance_core.timing.holder_rows import held_from
from rebalance_core.timing.measured import Measured
from rebalance_core.timing.ownership_log import ownership_log
from tests.unit.timing.hand_made import T0, two_members


def rows(made: Measured, queue: int) -> list[tuple[Any, ...]]:
    """(seed, client, from, to) of a queue, times after T0."""
    assert made.holders.schema == HOLDERS.arrow_schema()
    return [
        (
            row["seed"],
            row["client_id"],
            *(None if row[name] is None else row[name] - T0 for name in ("from_ms", "to_ms")),
        )
        for row in made.holders.to_pylist()
        if row["queue_id"] == queue
    ]


def test_each_holding_is_an_interval_in_each_future() -> None:
    made = two_members().measured(
        (0, "c1", 2, 7, -1),
        (0, "c2", 2, 715, 1),
        (1, "c2", 2, 300, 1),
        (1, "c1", 2, 900, -1),
        (1, "c2", 2, 950, -1),
        (1, "c1", 2, 990, 1),
        seeds=2,
    )
    assert rows(made, 2) == [
        (0, "c1", None, 7),
        (0, "c2", 715, None),
        (1, "c1", None, 900),
        (1, "c2", 300, 950),
        (1, "c1", 990, None),
    ]
    assert rows(made, 3) == [(0, "c1", None, None), (1, "c1", None, None)]
    (row, *_) = made.holders.to_pylist()
    assert [row[name] for name in ("cluster", "consumer_group", "topic", "broker_name")] == [
        "c",
        "g",
        "T",
        "a",
    ]
    assert row["channel_id"] == "c1"
    later = held_from(made.holders, T0 + 900).to_pylist()
    assert [row["to_ms"] for row in later if row["queue_id"] == 2] == [None, T0 + 950, None]


def test_rows_are_of_the_first_seeds() -> None:
    group = two_members()
    log = group.log((0, "c1", 2, 7, -1), (0, "c2", 2, 715, 1), (1, "c1", 2, 9, -1))
    made = group.measured_log(log, 2, first_seed=5, kept=6)
    assert {row["seed"] for row in made.holders.to_pylist()} == {5}
    assert group.measured_log(log, 2, first_seed=5, kept=5).holders.num_rows == 0


def test_a_holding_of_no_millisecond_is_none() -> None:
    group = two_members()
    (newcomer,) = (each.index for each in group.timeline().lifetimes if each.client_id == "c2")
    at_us = (T0 + 7) * 1_000
    log = ownership_log([(0, newcomer, 2, at_us, 1), (0, newcomer, 2, at_us + 400, -1)])
    made = group.measured_log(log, 1)
    assert rows(made, 2) == [(0, "c1", None, None)]


def test_every_member_that_broadcasts_holds_every_queue() -> None:
    group = two_members()
    group.settings = GroupSettings(subscriptions=("T",), message_model=BROADCASTING)
    made = group.measured(*((0, "c2", queue, 700, 1) for queue in range(4)))
    for queue in range(4):
        assert rows(made, queue) == [(0, "c1", None, None), (0, "c2", 700, None)]
