"""Totals of rollouts: sums over changes in each future, means and quantiles over the futures."""

from typing import Any

import pytest

from rebalance_core.contracts.propagation import PROPAGATION_TOTALS
from rebalance_core.model import events
from rebalance_core.model.group_settings import GroupSettings
from rebalance_core.timing.totals import propagation_totals
from tests.unit.timing.hand_made import T0, Group, two_members, written


def rows(*parts: Any) -> list[dict[str, Any]]:
    made = propagation_totals(parts)
    assert made.schema == PROPAGATION_TOTALS.arrow_schema()
    return list(made.to_pylist())


def three_changes() -> Group:
    """Two joins 5 s apart, and one a quarter of an hour later."""
    group = two_members()
    group.settings = GroupSettings(subscriptions=("T",), ordered=True)
    group.consumer(5_000, events.CONSUMER_JOIN, "c3")
    group.consumer(900_000, events.CONSUMER_JOIN, "c4")
    group.queue_offsets = tuple(
        written(queue, at, (at + 50_000) // 100)
        for queue in range(4)
        for at in (-50_000, 2_000_000)
    )
    return group


LOG = [
    (0, "c1", 2, 100, -1),
    (0, "c2", 2, 700, 1),
    (0, "c2", 2, 5_100, -1),
    (0, "c3", 2, 5_500, 1),
    (0, "c4", 3, 900_700, 1),
    (0, "c1", 3, 901_000, -1),
    (1, "c1", 2, 100, -1),
    (1, "c3", 2, 7_100, 1),
]


def test_changes_that_run_into_each_other_are_one_rollout() -> None:
    first, second = rows(three_changes().measured(*LOG, seeds=2).totals)
    assert (first["from_ms"], first["to_ms"]) == (T0, T0 + 245_000)
    assert (second["from_ms"], second["seeds"]) == (T0 + 900_000, 2)
    assert [first[f"finish_ms_{name}"] for name in ("mean", "p50", "p95")] == [6_300, 5_500, 7_100]
    assert first["orphan_queue_seconds_p50"] == pytest.approx(0.6 + 0.4)
    assert first["orphan_queue_seconds_p99"] == pytest.approx(7.0)
    assert first["orphan_queue_seconds_mean"] == pytest.approx(4.0)
    assert (first["double_queue_seconds_p99"], second["double_queue_seconds_p99"]) == (0.0, 0.3)
    # 600 and 400 ms and half a second are less than a second or just over; 7.5 s are late
    assert first["late_queue_seconds_p99"] == pytest.approx(6.45)
    assert second["read_again_p99"] >= 3


def test_parts_of_the_seeds_give_the_whole_in_any_order() -> None:
    group = three_changes()
    whole = rows(group.measured(*LOG, seeds=2).totals)
    parts = [
        group.measured_log(group.log(*((0, *row[1:]) for row in LOG if row[0] == seed)), 1, seed)
        for seed in range(2)
    ]
    assert rows(*(each.totals for each in reversed(parts))) == whole


def test_totals_of_the_changes_in_a_time() -> None:
    group = three_changes()
    group.counted_ms = T0 + 5_000, T0 + 900_000
    (only,) = rows(group.measured(*LOG, seeds=2).totals)
    assert (only["from_ms"], only["finish_ms_p50"]) == (T0 + 5_000, 500)
    assert only["orphan_queue_seconds_p99"] == pytest.approx(2.1)
    group.counted_ms = T0 + 901_000, None
    assert rows(group.measured(*LOG, seeds=2).totals) == []


def test_without_rates_there_are_no_messages() -> None:
    group = three_changes()
    group.queue_offsets = ()
    first, second = rows(group.measured(*LOG, seeds=2).totals)
    assert first["read_again_mean"] is first["read_again_p99"] is None
    assert first["late_queue_seconds_mean"] is None
    assert second["late_queue_seconds_mean"] == 0  # nothing was without an owner
    assert first["orphan_queue_seconds_mean"] == pytest.approx(4.0)
