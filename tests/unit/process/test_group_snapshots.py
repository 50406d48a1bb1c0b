"""The snapshots of groups against their rules, stated plainly, on random tables."""

import random
from collections import defaultdict
from collections.abc import Iterable
from itertools import groupby
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.contracts import ALL_TABLES, OBSERVED_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.model import events
from rebalance_core.model.queue import retry_topic
from rebalance_core.process import group_snapshots as module
from rebalance_core.process.group_snapshots import (
    by_group,
    group_tables,
    missing_routes,
    snapshots_of,
    thinned_commits,
    thinned_queue_offsets,
)
from rebalance_core.process.topic_states import topic_states

Row = dict[str, Any]

CLUSTERS, GROUPS, BROKERS = ("c1", "c2"), ("a", "b", "\U0001f600"), ("x", "y")
TOPICS = ("T", "U", *map(retry_topic, GROUPS))
EVERY_KIND = 4
"""A seed whose tables have rows of every kind."""


def table_of(name: str, rows: Iterable[Row]) -> pa.Table:
    return pa.Table.from_batches([batch_of_rows(ALL_TABLES[name], list(rows))])


def random_events(draw: random.Random) -> list[Row]:
    rows = []
    for number in range(draw.randrange(60)):
        kind = draw.choice(events.EVENT_TYPES)
        row: Row = {"cluster": draw.choice(CLUSTERS), "event_ms": number // 3, "sequence": number}
        row |= {"event_type": kind, "source": f"log:{number}"}
        if kind in events.GROUP_EVENTS:
            row["consumer_group"] = draw.choice(GROUPS)
        if kind in (*events.TOPIC_EVENTS, events.SUBSCRIBE, events.UNSUBSCRIBE):
            row["topic"] = draw.choice(TOPICS)
        if kind == events.CONSUMER_JOIN and draw.random() < 0.7:
            row["subscriptions"] = draw.sample(TOPICS, draw.randrange(3))
        whole = kind == events.TOPIC_DELETED and draw.random() < 0.5
        of_broker = (*events.BROKER_EVENTS, *events.MASTER_EVENTS, *events.TOPIC_EVENTS)
        if kind in of_broker and not whole:
            row["broker_name"] = draw.choice(BROKERS)
        if kind == events.TOPIC_CONFIG:
            row |= {"read_queue_nums": number, "perm": draw.choice((None, 6))}
        rows.append(row)
    return draw.sample(rows, len(rows))


def random_tables(seed: int) -> dict[str, list[Row]]:
    draw = random.Random(seed)
    queues = [
        {"cluster": c, "topic": t, "broker_name": "x", "queue_id": q}
        for c in CLUSTERS
        for t in TOPICS
        for q in range(2)
        if draw.random() < 0.7
    ]
    seen = [
        q | {"observed_ms": ms, "min_offset": 0, "max_offset": ms}
        for q in queues
        for ms in draw.sample(range(9), draw.randrange(1, 4))
    ]
    commits = [
        q | {"consumer_group": draw.choice(GROUPS), "observed_ms": ms, "committed_offset": offset}
        for q in queues
        for ms in range(6)
        for offset in [draw.randrange(4)]
    ]
    found: dict[str, list[Row]] = {
        name: [] for name in (*SIMULATED_TABLES, *OBSERVED_TABLES, "findings")
    }
    found["findings"] = [
        {"cluster": draw.choice(CLUSTERS), "consumer_group": group, "evidence": {"k": "v"}}
        for group in (None, *GROUPS)
        if draw.random() < 0.5
    ]
    return found | {
        "cluster_events": random_events(draw),
        "consumer_groups": [
            {"cluster": "c1", "consumer_group": g, "subscriptions": ["T"]} for g in GROUPS[:1]
        ],
        "queue_offsets": seen,
        "committed_offsets": draw.sample(commits, len(commits)),
    }


@pytest.fixture(params=range(30))
def tables(request: pytest.FixtureRequest) -> dict[str, list[Row]]:
    return random_tables(request.param)


def by_text(rows: Iterable[Row]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def plain_states(rows: list[Row]) -> list[Row]:
    """Of each broker that an event of the topic names: the last of its events and all brokers'."""
    names = ("cluster", "topic", "broker_name", "event_ms", "event_type", "read_queue_nums",
             "write_queue_nums", "perm", "source", "deleted_ms")  # fmt: skip
    of_topics = [row for row in rows if row["event_type"] in events.TOPIC_EVENTS]
    of_topics.sort(key=lambda row: (row["event_ms"], row["sequence"]))
    places = {tuple(row.get(name) for name in names[:3]) for row in of_topics}
    states = []
    for cluster, topic, broker in places:
        if broker is None:
            continue
        both = [
            row
            for row in of_topics
            if (row["cluster"], row["topic"]) == (cluster, topic)
            and row.get("broker_name") in (broker, None)
        ]
        own = [row for row in both if row.get("broker_name") == broker]
        deletions = [row["event_ms"] for row in both if row["event_type"] == events.TOPIC_DELETED]
        state = own[-1] | {name: both[-1][name] for name in ("event_ms", "event_type")}
        if both[-1].get("broker_name") is None:
            state["source"] = None  # the last event is another one's
        state["deleted_ms"] = max(deletions, default=None)
        states.append({name: state.get(name) for name in names})
    return states


def test_the_last_state_of_every_topic(tables: dict[str, list[Row]]) -> None:
    cluster_events = tables["cluster_events"]
    found: list[Row] = rows_of_arrow(topic_states(table_of("cluster_events", cluster_events)))
    assert by_text(found) == by_text(plain_states(cluster_events))


def test_the_ends_of_every_queue(tables: dict[str, list[Row]]) -> None:
    by_queue = defaultdict(list)
    for row in tables["queue_offsets"]:
        by_queue[row["cluster"], row["topic"], row["queue_id"]].append(row["observed_ms"])
    expected = [(queue, ms) for queue, seen in by_queue.items() for ms in {min(seen), max(seen)}]
    found = thinned_queue_offsets(table_of("queue_offsets", tables["queue_offsets"])).to_pylist()
    assert sorted(expected) == sorted(
        ((row["cluster"], row["topic"], row["queue_id"]), row["observed_ms"]) for row in found
    )
    assert all(row["max_offset"] == row["observed_ms"] for row in found)


def test_commits_are_kept_where_the_offset_falls(tables: dict[str, list[Row]]) -> None:
    def queue(row: Row) -> tuple[Any, ...]:
        return tuple(row[n] for n in ("cluster", "consumer_group", "topic", "queue_id"))

    expected = []
    rows = sorted(tables["committed_offsets"], key=lambda row: (*queue(row), row["observed_ms"]))
    for _, of_queue in groupby(rows, queue):
        some = list(of_queue)
        offsets = [row["committed_offset"] for row in some]
        for at, row in enumerate(some):
            falls_next = at + 1 == len(some) or offsets[at + 1] < offsets[at]
            if at < 2 or falls_next or (at and offsets[at] < offsets[at - 1]):
                expected.append(row)
    found = thinned_commits(table_of("committed_offsets", tables["committed_offsets"]))
    assert by_text(found.drop_columns("client_id").to_pylist()) == by_text(expected)


def test_a_missing_route_of_a_pop_retry_topic_goes_to_its_group() -> None:
    """The client's line names no group, and names with an underscore fit several."""
    topics = [("g", "T"), ("g", "%RETRY%g"), ("g_a", "T"), ("g", "a_T"), ("h", "T")]
    names = ("cluster", "consumer_group", "topic")
    of_groups = pa.Table.from_pylist([dict(zip(names, ("c", *row), strict=True)) for row in topics])

    def fact(kind: str, topic: str, group: str | None = None, cluster: str = "c") -> Row:
        return {"cluster": cluster, "kind": kind, "consumer_group": group, "topic": topic,
                "first_ms": 1, "last_ms": 2, "times": 1, "details": {"log": "x"},
                "source": topic}  # fmt: skip

    facts = [
        fact("MISSING_ROUTE", "%RETRY%g_T"),
        fact("MISSING_ROUTE", "%RETRY%h+T"),
        fact("MISSING_ROUTE", "%RETRY%g_a_T"),
        fact("MISSING_ROUTE", "%RETRY%g"),
        fact("MISSING_ROUTE", "%RETRY%g_T", cluster="other"),
        fact("POP_FORBIDDEN", "%RETRY%g_T"),
        fact("MISSING_ROUTE", "%RETRY%g_T", group="g"),  # it names one already
    ]
    table = table_of("observed_facts", facts)
    found = missing_routes(table, of_groups)
    assert found.schema == table.schema
    assert sorted((row["consumer_group"], row["topic"]) for row in found.to_pylist()) == [
        ("g", "%RETRY%g_T"),
        ("g", "%RETRY%g_a_T"),
        ("g_a", "%RETRY%g_a_T"),
        ("h", "%RETRY%h+T"),
    ]
    assert dict(found["details"].to_pylist()[0]) == {"log": "x"}


def plain_topics(tables: dict[str, list[Row]], cluster: str, group: str) -> set[str]:
    own = [
        row
        for name in ("cluster_events", "consumer_groups", "committed_offsets")
        for row in tables[name]
        if (row["cluster"], row.get("consumer_group")) == (cluster, group)
    ]
    topics = {topic for row in own for topic in row.get("subscriptions") or ()}
    joins = (events.CONSUMER_JOIN, events.SUBSCRIBE, None)
    topics |= {
        row["topic"]
        for row in own
        if row.get("topic") and row.get("event_type") in joins and row.get("subscriptions") is None
    }
    return topics | {retry_topic(group)} if topics else set()


@pytest.mark.parametrize("rows_at_once", [1, 10_000])
def test_every_group_gets_its_rows(
    tables: dict[str, list[Row]], rows_at_once: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "ROWS_PER_CHUNK", rows_at_once)
    arrow = {name: table_of(name, rows) for name, rows in tables.items()}
    states: list[Row] = rows_of_arrow(topic_states(arrow["cluster_events"]))
    ends = thinned_queue_offsets(arrow["queue_offsets"]).to_pylist()
    named = {
        (row["cluster"], row["consumer_group"])
        for name in ("cluster_events", "consumer_groups", "committed_offsets", "findings")
        for row in tables[name]
        if row.get("consumer_group")
    }
    snapshots = snapshots_of(by_group(group_tables(arrow)))
    found: dict[tuple[str, str], Any] = {
        (cluster, group): rows for cluster, group, rows in snapshots
    }
    assert found.keys() == named
    for (cluster, group), rows in found.items():
        place = {"cluster": cluster, "consumer_group": group}
        topics = plain_topics(tables, cluster, group)
        for name, shared in (("topics", states), ("queue_offsets", ends)):
            assert by_text(rows[name]) == by_text(
                row | place
                for row in shared
                if row["cluster"] == cluster and row["topic"] in topics
            )
        for name in ("cluster_events", "findings"):
            assert by_text(rows[name]) == by_text(
                dict.fromkeys(ALL_TABLES[name].column_names) | row
                for row in tables[name]
                if place.items() <= row.items()
            )


def test_the_random_tables_have_what_is_tested() -> None:
    tables = random_tables(EVERY_KIND)
    kinds = {row["event_type"] for row in tables["cluster_events"]}
    assert {events.TOPIC_DELETED, events.TOPIC_CONFIG, events.CONSUMER_JOIN} <= kinds
    states = plain_states(tables["cluster_events"])
    assert any(row["deleted_ms"] for row in states)
    assert tables["findings"]


def test_no_row_at_all() -> None:
    tables = {name: table_of(name, []) for name in random_tables(0)}
    assert list(snapshots_of(by_group(group_tables(tables)))) == []


def test_an_end_that_went_back_is_kept_with_the_one_before() -> None:
    where: Row = {"cluster": "c", "topic": "T", "broker_name": "b", "queue_id": 0}
    ends = enumerate((0, 50, 90, 7, 8, 9))
    rows = [where | {"observed_ms": ms, "min_offset": 0, "max_offset": high} for ms, high in ends]
    found = thinned_queue_offsets(table_of("queue_offsets", rows)).to_pylist()
    assert sorted(row["observed_ms"] for row in found) == [0, 2, 3, 5]


def test_the_last_commit_of_each_client_is_kept() -> None:
    where: Row = {"cluster": "c", "consumer_group": "g", "topic": "T", "broker_name": "b"}
    clients = ("x", None, "x", "y", "y", "y")
    rows = [
        where | {"queue_id": 0, "client_id": one, "observed_ms": ms, "committed_offset": 10 + ms}
        for ms, one in enumerate(clients)
    ]
    found = thinned_commits(table_of("committed_offsets", rows)).to_pylist()
    assert sorted(row["observed_ms"] for row in found) == [0, 1, 2, 5]
