"""Offsets of a topic that many groups read are handled once, and each group starts as alone."""

import random
from collections import Counter
from collections.abc import Mapping
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.fan_out import OffsetsByTopic, fan_out
from rebalance_core.engine.ledger_pass import bucket_pass, ledger_pass, reference_pass
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.model.events import (
    CONSUMER_JOIN,
    CONSUMER_LEAVE,
    TOPIC_CONFIG,
    TOPIC_DELETED,
)

ENGINE = EngineOptions(queue_offsets_given=True, committed_offsets_given=True)
BOTH, TOPICS, BROKERS = ("c", "d"), ("t", "u"), ("a", "b")
START_MS = 1_795_000_000_000
GROUPS = ("g", "h", "i", "j")
SETTINGS: tuple[dict[str, str], ...] = (
    {},
    {"broker_version": "4.9"},  # answers 0 for an empty queue that 5.3 knows nothing of
    {"consume_from_where": "CONSUME_FROM_FIRST_OFFSET"},
    {"message_model": "BROADCASTING"},
    {"strategy": "CONSISTENT_HASH(virtual_nodes=3)"},
)


def drawn(seed: int) -> Mapping[str, pa.Table]:
    """Used rows of groups that share topics; some topics are deleted, or configured again."""
    draw = random.Random(seed)
    events: list[dict[str, Any]] = []

    def add(at_ms: int, kind: str, **more: Any) -> None:
        row = {"event_ms": START_MS + at_ms, "sequence": len(events), "event_type": kind}
        events.append(row | more)

    for cluster in BOTH:
        for topic in TOPICS:
            for broker in BROKERS:
                place = {"cluster": cluster, "topic": topic, "broker_name": broker}
                add(0, TOPIC_CONFIG, read_queue_nums=2, write_queue_nums=2, **place)
                if draw.random() < 0.2:
                    add(at := draw.randrange(40_000, 200_000), TOPIC_DELETED, **place)
                    add(at + 5_000, TOPIC_CONFIG, read_queue_nums=2, write_queue_nums=2, **place)
        for group in GROUPS:
            of_group = {"cluster": cluster, "consumer_group": group}
            mine = draw.sample(TOPICS, draw.randint(1, 2))
            for client in ("x", "y", "z"):
                member = of_group | {"client_id": client, "channel_id": client}
                at = draw.randrange(1, 100_000)
                while at < 300_000:
                    add(at, CONSUMER_JOIN, subscriptions=mine, **member)
                    add(at + draw.randrange(1, 60_000), CONSUMER_LEAVE, **member)
                    at += draw.randrange(60_000, 200_000)
    settings = [
        {"cluster": cluster, "consumer_group": group, **draw.choice(SETTINGS)}
        for cluster in BOTH
        for group in GROUPS
    ]
    queues = [
        {"cluster": cluster, "topic": topic, "broker_name": broker, "queue_id": queue}
        for cluster in BOTH
        for topic in (*TOPICS, "%RETRY%g", "nobody reads it")
        for broker in BROKERS
        for queue in range(2)
    ]
    offsets = [
        queue
        | {
            "observed_ms": START_MS + at,
            "min_offset": draw.choice((0, 0, 5)),
            "max_offset": draw.choice((0, 0, 50, at // 1000)),
            "head_cached": draw.choice((None, True, False)),
        }
        for queue in queues
        for at in draw.sample(range(400_000), draw.randrange(6))
    ]
    commits = [
        queue
        | {
            "consumer_group": draw.choice(GROUPS),
            "observed_ms": START_MS + at,
            "committed_offset": draw.randrange(60),
        }
        for queue in queues
        for at in draw.sample(range(400_000), draw.randrange(4))
    ]
    rows = {
        "cluster_events": events,
        "consumer_groups": settings,
        "queue_offsets": offsets,
        "committed_offsets": commits,
    }
    tables = {
        name: pa.Table.from_pylist(some, INPUT_TABLES[name].arrow_schema())
        for name, some in rows.items()
    }
    checked = check_tables(input_tables_of(tables)).tables
    assert all(len(table) for table in checked.values())
    return checked


def ledger(rows: Any) -> Counter[tuple[str, str]]:
    return Counter((name, repr(row)) for name, batch in rows for row in batch.to_pylist())


@pytest.mark.parametrize("seed", range(30))
def test_the_ledger_is_that_of_each_group_with_its_own_copy(seed: int) -> None:
    tables = drawn(seed)
    grouped = fan_out(tables)
    one_copy = ledger(bucket_pass(tables, {}, ENGINE, SimulationOptions(), names_encoded=False))
    assert one_copy == ledger(ledger_pass(grouped.tables_of(0, len(grouped)), ENGINE))
    if seed < 6:
        replayed: Counter[tuple[str, str]] = Counter()
        for group in range(len(grouped)):
            replayed += ledger(reference_pass(grouped.tables_of(group, group + 1), ENGINE))
        both = (
            Counter({k: n for k, n in rows.items() if k[0] == "pull_starts"})
            for rows in (one_copy, replayed)
        )
        assert next(both) == next(both)


def test_a_row_is_there_once_however_many_groups_read_its_topic() -> None:
    tables = drawn(1)
    grouped, offsets = fan_out(tables), OffsetsByTopic(tables["queue_offsets"])
    whole = offsets.of(grouped.tables_of(0, len(grouped)))
    read = [row for row in tables["queue_offsets"].to_pylist() if "nobody" not in row["topic"]]
    assert sorted(map(repr, whole.to_pylist())) == sorted(
        repr({name: row[name] for name in whole.column_names}) for row in read
    )
    copies = grouped.tables_of(0, len(grouped))["queue_offsets"]
    assert len(copies) > 2 * len(whole)
