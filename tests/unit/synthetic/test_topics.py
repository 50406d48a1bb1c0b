"""Brokers and topics of a fleet: natural sizes, and every change the trace promises."""

from collections import Counter

import pytest

from rebalance_core.synthetic.clusters import broker_events, cluster_of
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.topics import READ_ONLY, Topic, topic_events, topic_of
from tests.unit.synthetic.fleets import Row, joined, table

PLAN = FleetPlan(2_000, 7, 3)


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    brokers = [row for c in range(PLAN.clusters) for row in joined(broker_events(PLAN, c))]
    return brokers + [row for t in range(PLAN.topics) for row in joined(topic_events(PLAN, t))]


@pytest.fixture(scope="module")
def topics() -> list[Topic]:
    return [topic_of(PLAN, *PLAN.place_of_topic(number)) for number in range(PLAN.topics)]


def test_every_kind_of_broker_event_occurs(rows: list[Row]) -> None:
    found = Counter((row["event_type"], row.get("detail")) for row in rows)
    for kind in (
        ("BROKER_UP", "OBSERVED"),
        ("BROKER_UP", None),
        ("BROKER_DOWN", "STOPPED"),
        ("BROKER_DOWN", "CLOSED"),
        ("BROKER_DOWN", "EXPIRED"),
        ("TOPIC_CONFIG", "OBSERVED"),
        ("TOPIC_CONFIG", None),
        ("TOPIC_DELETED", None),
    ):
        assert found[kind] > 0, kind


def test_what_was_there_is_observed_at_one_instant_and_nothing_later_is(rows: list[Row]) -> None:
    for row in rows:
        assert (row.get("detail") == "OBSERVED") == (row["event_ms"] == PLAN.start_ms)
        assert PLAN.start_ms <= row["event_ms"] < PLAN.end_ms


def test_brokers_go_down_and_up_in_turn(rows: list[Row]) -> None:
    last: dict[tuple[str, str], str] = {}
    for row in sorted(rows, key=lambda row: (row["event_ms"], row["sequence"])):
        if row["event_type"] in ("BROKER_UP", "BROKER_DOWN"):
            broker = (row["cluster"], row["broker_name"])
            assert last.get(broker) != row["event_type"]
            last[broker] = row["event_type"]


def test_some_clusters_have_rooms_and_brokers_named_after_them() -> None:
    clusters = [cluster_of(PLAN, number) for number in range(PLAN.clusters)]
    with_rooms = [cluster for cluster in clusters if cluster.rooms]
    assert 0 < len(with_rooms) < len(clusters)
    for cluster in with_rooms:
        assert {broker.name.split("@")[0] for broker in cluster.brokers} == set(cluster.rooms)
    for cluster in clusters:
        assert 3 <= len(cluster.brokers) <= 17
        assert len({broker.name for broker in cluster.brokers}) == len(cluster.brokers)


def test_names_of_topics_are_unique_in_a_cluster() -> None:
    plan = FleetPlan(3_000, 1, 5, groups_per_cluster=3_000)
    names = {topic_of(plan, 0, number).name for number in range(plan.topics)}
    assert len(names) == plan.topics == 1_200


def test_sizes_of_topics(topics: list[Topic]) -> None:
    first = [topic.configs(topic.history[0].at_ms) for topic in topics]
    read = Counter(next(iter(configs.values())).read for configs in first)
    assert (read[4] + read[8] + read[16]) / len(topics) > 0.75
    assert sum(count for queues, count in read.items() if queues >= 64) > 0
    brokers = Counter(map(len, first))
    assert 0.02 < brokers[1] / len(topics) < 0.15
    assert brokers[2] + brokers[3] > len(topics) / 2


def test_every_kind_of_topic_occurs(topics: list[Topic]) -> None:
    created_late = [t for t in topics if t.history[0].at_ms > PLAN.start_ms]
    unequal = [t for t in topics if t.history[0].read != t.history[0].write]
    silent = [t for t in topics if t.per_kilosecond == 0]
    read_only = [t for t in topics if any(c.perm == READ_ONLY for c in t.history)]
    for kind in (created_late, unequal, silent, read_only):
        assert 0 < len(kind) < 0.1 * len(topics)


def test_topics_grow_and_shrink(topics: list[Topic]) -> None:
    grown, spread, shrunk, drained = 0, 0, 0, 0
    for topic in topics:
        for config in topic.history:
            before = topic.configs(config.at_ms - 1)
            if config.at_ms == topic.history[0].at_ms:
                continue
            now = before.get(config.broker)
            grown += now is not None and config.read > now.read
            spread += now is None and config.read > 0
            shrunk += now is not None and 0 < config.read < now.read
            drained += now is not None and config.read == 0
    assert min(grown, spread, shrunk, drained) > 0, (grown, spread, shrunk, drained)


def test_the_plan_s_numbers_are_those_of_the_rows() -> None:
    plan = FleetPlan(60, 1, 2, groups_per_cluster=25)
    events = table(plan, "cluster_events")
    assert len({row["cluster"] for row in events}) == plan.clusters
    groups = {(row["cluster"], row["consumer_group"]) for row in events if "consumer_group" in row}
    assert len(groups) == plan.groups
    named = {
        (row["cluster"], row["topic"]) for row in events if row["event_type"] == "TOPIC_CONFIG"
    }
    assert len(named) == plan.topics
