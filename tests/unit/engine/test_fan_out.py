"""The fan-out against its rule, stated plainly, on random tables."""

import random
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import RAW, SOURCE
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.model import events
from rebalance_core.model.queue import retry_topic

Row = dict[str, Any]
EVERY_GROUP = 4
"""A seed whose tables have events of every group."""
CLUSTERS, GROUPS = ("c1", "c2"), ("a", "b_1", "b%", "z")
TOPICS = ("T", "U", "V", "%RETRY%a", "%RETRY%z")
BROKERS = ("x", "y")


def some(draw: random.Random, *values: str | None) -> str | None:
    return draw.choice(values)


def random_tables(seed: int) -> dict[str, list[Row]]:
    draw = random.Random(seed)
    cluster_events = []
    for number in range(draw.randrange(40)):
        kind = draw.choice(events.EVENT_TYPES)
        row: Row = {"cluster": draw.choice(CLUSTERS), "event_ms": number, "sequence": number}
        row |= {"event_type": kind, "topic": draw.choice(TOPICS), "broker_name": None}
        if kind in events.GROUP_EVENTS:
            row["consumer_group"] = draw.choice(GROUPS)
        if kind == events.CONSUMER_JOIN:
            row["topic"] = None
            if draw.random() < 0.6:
                row["subscriptions"] = draw.sample(TOPICS, draw.randrange(3))
        if kind in (*events.BROKER_EVENTS, events.TOPIC_CONFIG):
            row["broker_name"] = draw.choice(BROKERS)
        if kind in events.BROKER_EVENTS:
            row["topic"] = None
        cluster_events.append(row)
    groups = [
        {"cluster": cluster, "consumer_group": group, "subscriptions": draw.sample(TOPICS, 1)}
        for cluster in CLUSTERS
        for group in GROUPS
        if draw.random() < 0.4
    ]
    queues = [
        {"cluster": c, "topic": t, "broker_name": "x", "queue_id": 0, "observed_ms": 1}
        for c in CLUSTERS
        for t in TOPICS
        if draw.random() < 0.7
    ]
    commits = [row | {"consumer_group": draw.choice(GROUPS)} for row in queues]
    return {
        "cluster_events": cluster_events,
        "consumer_groups": groups,
        "queue_offsets": queues,
        "committed_offsets": commits,
    }


def arrow_tables(tables: dict[str, list[Row]]) -> dict[str, pa.Table]:
    made = {}
    for name, rows in tables.items():
        table = pa.Table.from_pylist(rows, INPUT_TABLES[name].arrow_schema())
        number = pa.array([f"{name}:{i}" for i in range(len(rows))], pa.string())
        made[name] = table.append_column(SOURCE, number).append_column(RAW, number)
    return made


def rule(tables: dict[str, list[Row]], cluster: str, group: str) -> dict[str, list[Row]] | None:
    """The rows that concern one group; None: it has no event of a consumer."""
    rows = {n: [r for r in found if r["cluster"] == cluster] for n, found in tables.items()}
    own = [r for r in rows["cluster_events"] if r.get("consumer_group") == group]
    if not any(row["event_type"] in events.CONSUMER_EVENTS for row in own):
        return None
    topics: set[Any] = set()
    for row in own:
        if row["event_type"] in (events.CONSUMER_JOIN, events.SUBSCRIBE):
            listed = row.get("subscriptions")
            topics.update([row["topic"]] if listed is None else listed)
    settings = [r for r in rows["consumer_groups"] if r["consumer_group"] == group]
    for row in settings:
        topics.update(row["subscriptions"])
    topics -= {None}  # of a join that states nothing
    read = topics | ({retry_topic(group)} if topics else set())
    brokers = {
        row["broker_name"]
        for row in rows["cluster_events"]
        if row["event_type"] == events.TOPIC_CONFIG and row["topic"] in read
    }
    shared = [
        row
        for row in rows["cluster_events"]
        if (row["event_type"] in events.TOPIC_EVENTS and row["topic"] in read)
        or (row["event_type"] in events.BROKER_EVENTS and row["broker_name"] in brokers)
    ]
    return {
        "cluster_events": own + [row | {"consumer_group": group} for row in shared],
        "consumer_groups": settings,
        "queue_offsets": [
            row | {"consumer_group": group} for row in rows["queue_offsets"] if row["topic"] in read
        ],
        "committed_offsets": [r for r in rows["committed_offsets"] if r["consumer_group"] == group],
    }


def by_text(rows: list[Row]) -> list[str]:
    return sorted(str(sorted((k, v) for k, v in row.items() if v is not None)) for row in rows)


@pytest.mark.parametrize("seed", range(150))
def test_every_row_reaches_the_groups_it_concerns(seed: int) -> None:
    tables = random_tables(seed)
    grouped = fan_out(arrow_tables(tables))
    names = list(zip(grouped.clusters.to_pylist(), grouped.groups.to_pylist(), strict=True))
    expected = {(c, g): rule(tables, c, g) for c in CLUSTERS for g in GROUPS}
    assert sorted(names) == sorted(name for name, rows in expected.items() if rows is not None)
    for number, name in enumerate(names):
        rows = expected[name]
        assert rows is not None
        for table, found in grouped.tables_of(number, number + 1).items():
            bare = [
                {k: v for k, v in r.items() if k not in (SOURCE, RAW)} for r in found.to_pylist()
            ]
            assert by_text(bare) == by_text(rows[table]), (name, table)


def test_a_pattern_leaves_the_other_groups_out() -> None:
    tables = arrow_tables(random_tables(EVERY_GROUP))
    assert set(fan_out(tables).groups.to_pylist()) == set(GROUPS)
    assert set(fan_out(tables, r"b\_%").groups.to_pylist()) == {"b_1"}
    assert len(fan_out(tables, "nobody")) == 0


def test_chunks_are_whole_groups_and_all_of_them() -> None:
    grouped = fan_out(arrow_tables(random_tables(EVERY_GROUP)))
    for rows_per_chunk in (1, 10, 10_000):
        ranges = list(grouped.chunks(rows_per_chunk))
        assert [begin for begin, _ in ranges] == [0, *(end for _, end in ranges[:-1])]
        assert ranges[-1][1] == len(grouped)
    assert list(fan_out(arrow_tables(random_tables(EVERY_GROUP)), "nobody").chunks(10)) == []
