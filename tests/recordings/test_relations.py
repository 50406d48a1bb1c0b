"""Changes of a recording's input tables after which the ledger is the same, or known."""

import json
from collections import Counter
from collections.abc import Callable
from functools import cache
from itertools import pairwise

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.model.events import (
    BROKER_DOWN,
    BROKER_UP,
    CONSUMER_JOIN,
    TOPIC_CONFIG,
    TOPIC_DELETED,
)
from rebalance_core.process.simulate import simulate
from tests.recordings.tables import Row, Tables, ingested_recording

RECORDINGS = ("broker-loss-4.9", "nightly", "pop", "slave-read", "timing")
"""Brokers that go, many groups, shared queues, masters that go, many changes."""
FOREIGN = "foreign"
DAY_MS = 86_400_000

Ledger = dict[str, Counter[str]]


@cache
def ingested(name: str) -> Tables:
    tables = ingested_recording(name).tables
    return {table: tables.get(table, []) for table in INPUT_TABLES}


def ledger_of(tables: Tables, change: Callable[[Row], Row | None] = lambda row: row) -> Ledger:
    """Every row of the ledger, changed; those that become None are left out."""
    arrow = {
        table: pa.Table.from_batches([batch_of_rows(contract, tables[table])])
        for table, contract in INPUT_TABLES.items()
    }
    made = simulate(input_tables_of(arrow)).tables()
    found = {table: map(change, rows.to_pylist()) for table, rows in made.items()}
    return {
        table: Counter(json.dumps(row, sort_keys=True) for row in rows if row is not None)
        for table, rows in found.items()
    }


def with_events(tables: Tables, more: list[Row]) -> Tables:
    """The tables with more events, numbered anew; of one instant the given ones come first."""
    events = sorted(tables["cluster_events"], key=lambda e: (e["event_ms"], e["sequence"]))
    events = sorted([*events, *more], key=lambda event: event["event_ms"])
    return tables | {"cluster_events": [e | {"sequence": i} for i, e in enumerate(events)]}


def repeated(tables: Tables) -> list[Row]:
    """Between any two moments each topic's configuration and each living broker once more."""
    events = sorted(tables["cluster_events"], key=lambda e: (e["event_ms"], e["sequence"]))
    standing: dict[tuple[str, ...], Row] = {}
    more: list[Row] = []
    for event, following in pairwise(events):
        kind, broker, topic = (event.get(n) for n in ("event_type", "broker_name", "topic"))
        if kind == BROKER_UP:
            standing[str(broker),] = event
        elif kind == TOPIC_CONFIG:
            standing[str(broker), str(topic)] = event | {"detail": None}
        elif kind == BROKER_DOWN:
            standing.pop((str(broker),), None)
        elif kind == TOPIC_DELETED:
            for key in [k for k in standing if topic in k[1:] and broker in (None, k[0])]:
                del standing[key]
        middle = (event["event_ms"] + following["event_ms"]) // 2
        if event["event_ms"] < middle:
            more += [row | {"event_ms": middle} for row in standing.values()]
    return more


@pytest.mark.parametrize("name", RECORDINGS)
def test_what_is_said_again_changes_nothing(name: str) -> None:
    more = repeated(ingested(name))
    assert len(more) > len(ingested(name)["cluster_events"])
    assert ledger_of(with_events(ingested(name), more)) == ledger_of(ingested(name))


@pytest.mark.parametrize("name", RECORDINGS)
def test_a_group_of_other_topics_and_brokers_changes_nothing(name: str) -> None:
    tables = ingested(name)
    first, last = (f(e["event_ms"] for e in tables["cluster_events"]) for f in (min, max))
    where = {"cluster": tables["cluster_events"][0]["cluster"], "broker_name": FOREIGN}
    numbers = {"read_queue_nums": 5, "write_queue_nums": 5, "perm": 6}
    more: list[Row] = [
        where | numbers | {"event_type": TOPIC_CONFIG, "event_ms": first, "topic": FOREIGN},
        where | {"event_type": BROKER_DOWN, "event_ms": (first + last) // 2},
        where | {"event_type": BROKER_UP, "event_ms": last},
    ]
    member = {"cluster": where["cluster"], "event_type": CONSUMER_JOIN, "subscriptions": [FOREIGN]}
    more += [
        member | {"consumer_group": FOREIGN, "client_id": f"{n}@x", "event_ms": first + n}
        for n in range(3)
    ]
    others = ledger_of(
        with_events(tables, more), lambda row: None if row["consumer_group"] == FOREIGN else row
    )
    assert others == ledger_of(tables)


def later(row: Row) -> Row:
    return {k: v + DAY_MS if k.endswith("_ms") and v is not None else v for k, v in row.items()}


@pytest.mark.parametrize("name", RECORDINGS)
def test_the_same_a_day_later_is_the_same_ledger_a_day_later(name: str) -> None:
    tables = {table: list(map(later, rows)) for table, rows in ingested(name).items()}
    assert ledger_of(tables) == ledger_of(ingested(name), later)


@pytest.mark.parametrize("name", RECORDINGS)
def test_clusters_with_the_same_names_do_not_meet(name: str) -> None:
    twice = {
        table: rows + [row | {"cluster": FOREIGN} for row in rows]
        for table, rows in ingested(name).items()
    }
    once = ledger_of(twice, lambda row: None if row["cluster"] == FOREIGN else row)
    assert once == ledger_of(ingested(name))
