"""The offsets of a fleet fit each other and the events."""

from collections import defaultdict
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from rebalance_core.model.group_settings import BROADCASTING, PULL
from rebalance_core.model.queue import is_retry_topic
from rebalance_core.model.times import DAY_MS, HOUR_MS
from rebalance_core.synthetic.clusters import Downtime, cluster_of
from rebalance_core.synthetic.fleet import RANGES, FleetPlan
from rebalance_core.synthetic.groups import group_of
from rebalance_core.synthetic.message_counts import away_ms, messages, weighted_ms
from rebalance_core.synthetic.queue_table import UNEVEN
from rebalance_core.synthetic.topics import AGE_MS, MOST_PER_KILOSECOND
from tests.unit.synthetic.fleets import Row, table

PLAN = FleetPlan(400, 5, 21, groups_per_cluster=200)
QUEUE = ("cluster", "topic", "broker_name", "queue_id")


def queue_of(row: Row) -> tuple[Any, ...]:
    return tuple(row[name] for name in QUEUE)


@pytest.fixture(scope="module")
def observations() -> dict[tuple[Any, ...], list[Row]]:
    """The rows of queue_offsets by queue, oldest first."""
    found = defaultdict(list)
    for row in sorted(table(PLAN, "queue_offsets"), key=lambda row: row["observed_ms"]):
        found[queue_of(row)].append(row)
    return found


@pytest.fixture(scope="module")
def commits() -> list[Row]:
    return sorted(table(PLAN, "committed_offsets"), key=lambda row: row["observed_ms"])


def test_offsets_never_go_back_and_the_minimum_follows(
    observations: dict[tuple[Any, ...], list[Row]],
) -> None:
    expired = grown = 0
    for rows in observations.values():
        for row in rows:
            assert 0 <= row["min_offset"] <= row["max_offset"]
        for before, after in pairwise(rows):
            assert before["min_offset"] <= after["min_offset"]
            assert before["max_offset"] <= after["max_offset"]
        grown += rows[0]["max_offset"] < rows[-1]["max_offset"]
        expired += rows[-1]["min_offset"] > 0
    assert grown > 0.6 * len(observations)
    assert (
        0.3 * len(observations) < expired < len(observations)
    )  # and young or silent queues begin at 0


def test_looks_are_at_the_plan_s_moments(observations: dict[tuple[Any, ...], list[Row]]) -> None:
    seen = {row["observed_ms"] for rows in observations.values() for row in rows}
    assert seen == set(PLAN.moments)
    assert any(is_retry_topic(topic) for _, topic, _, _ in observations)


def test_commits_lie_between_the_offsets_of_their_moment(
    observations: dict[tuple[Any, ...], list[Row]], commits: list[Row]
) -> None:
    offsets = {
        (*queue, row["observed_ms"]): (row["min_offset"], row["max_offset"])
        for queue, rows in observations.items()
        for row in rows
    }
    behind = 0
    for row in commits:
        low, high = offsets[(*queue_of(row), row["observed_ms"])]
        assert 0 <= row["committed_offset"] <= high
        behind += row["committed_offset"] < low
    assert 0 < behind < 0.05 * len(commits)


def test_commits_never_go_back(commits: list[Row]) -> None:
    last: dict[tuple[Any, ...], int] = {}
    for row in commits:
        key = (row["consumer_group"], row["client_id"], *queue_of(row))
        assert row["committed_offset"] >= last.get(key, 0)
        last[key] = row["committed_offset"]


def test_a_night_batch_commits_by_night_only(commits: list[Row]) -> None:
    batches = {
        (group.cluster.name, group.name)
        for group in (group_of(PLAN, number) for number in range(PLAN.groups))
        if group.batch_hour is not None
    }
    by_day, moved = defaultdict(set), 0
    for row in commits:
        hour = (row["observed_ms"] - PLAN.start_ms) // HOUR_MS
        if (row["cluster"], row["consumer_group"]) in batches and hour % 24:
            by_day[(*queue_of(row), row["consumer_group"]), hour // 24].add(row["committed_offset"])
    assert by_day
    for (key, day), offsets in by_day.items():
        assert len(offsets) == 1
        moved += by_day.get((key, day + 1), offsets) != offsets
    assert moved > len(by_day) / 4


def test_who_commits(commits: list[Row]) -> None:
    groups = {
        (group.cluster.name, group.name): group
        for group in (group_of(PLAN, number) for number in range(PLAN.groups))
    }
    joined = defaultdict(set)
    for row in table(PLAN, "cluster_events"):
        if row["event_type"] == "CONSUMER_JOIN":
            joined[row["cluster"], row["consumer_group"]].add(row["client_id"])
    seen = defaultdict(set)
    for row in commits:
        seen[row["cluster"], row["consumer_group"]].add(row["client_id"])
    for key, group in groups.items():
        if group.lag_ms is None or group.settings.consumer_type == PULL:
            assert key not in seen
        elif group.settings.message_model == BROADCASTING:
            assert seen[key] <= joined[key]
        elif key in seen:
            assert seen[key] == {None}
    assert 0.85 * len(groups) < len(seen) < len(groups)


def test_a_broker_that_is_away_is_not_asked_and_gets_no_messages() -> None:
    cluster = cluster_of(PLAN, 0)
    outages = [Downtime(10 * HOUR_MS, 12 * HOUR_MS, "CLOSED")]
    at_ms = np.array([9, 10, 11, 12, 13], np.int64) * HOUR_MS
    away = away_ms(cluster, outages, at_ms)
    flow = weighted_ms(cluster, at_ms) - away
    assert away[0] == away[1] == 0 < away[2] < away[3] == away[4]
    assert flow[0] < flow[1] == flow[2] == flow[3] < flow[4]
    clusters = [cluster_of(PLAN, number) for number in range(PLAN.clusters)]
    brokers = {(c.name, broker.name): broker for c in clusters for broker in c.brokers}
    assert any(broker.outages for broker in brokers.values())
    for row in table(PLAN, "queue_offsets"):
        assert brokers[row["cluster"], row["broker_name"]].is_up(row["observed_ms"])


def test_a_mean_day_has_the_mean_rate_whatever_its_hours() -> None:
    cluster = cluster_of(PLAN, 1)
    noon = np.array([PLAN.start_ms + 12 * HOUR_MS], np.int64)
    day = weighted_ms(cluster, noon + DAY_MS) - weighted_ms(cluster, noon)
    assert messages(np.array([5_000], np.int64), day).tolist() == [5 * 86_400]
    assert messages(np.array([5_000], np.int64), -day).tolist() == [0]


def test_counts_do_not_overflow_after_years() -> None:
    cluster = cluster_of(PLAN, 1)
    longest = RANGES["days"][1] + int(AGE_MS[1] / DAY_MS)
    end_ms = np.array([PLAN.start_ms + RANGES["days"][1] * DAY_MS], np.int64)
    flow = weighted_ms(cluster, end_ms) - weighted_ms(cluster, end_ms - longest * DAY_MS)
    busiest = int(MOST_PER_KILOSECOND * (1 + UNEVEN))
    expected = busiest * 86_400 * longest // 1_000
    assert messages(np.array([busiest], np.int64), flow).tolist() == [expected]


def test_tables_are_of_the_order_of_the_events() -> None:
    plan = FleetPlan(600, 1, 4, groups_per_cluster=200)
    events = len(table(plan, "cluster_events"))
    for name in ("queue_offsets", "committed_offsets"):
        assert 0.2 * events < len(table(plan, name)) < 5 * events
    for name, expected in plan.expected_rows().items():
        assert 0.5 < len(table(plan, name)) / expected < 2
