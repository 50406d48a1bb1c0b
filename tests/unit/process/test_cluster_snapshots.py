"""What concerns clusters as a whole, of tables and of any parts of them."""

import pickle
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.cluster_snapshot import CLUSTER_KINDS
from rebalance_core.contracts import ALL_TABLES
from rebalance_core.contracts.snapshot_tables import BROKER_EVENTS
from rebalance_core.contracts.table import batch_of_rows, rows_of_arrow
from rebalance_core.model import events
from rebalance_core.process import cluster_tables
from rebalance_core.process.cluster_tables import (
    ClusterTables,
    cluster_tables_of,
    read_cluster_tables,
)
from tests.recordings.fleets import FLEET, ingested_fleet
from tests.unit.audit.snapshots import fact, ms


def plain(tables: Mapping[str, list[dict[str, Any]]]) -> dict[str, list[str]]:
    """The rules, stated row by row."""
    history, facts = tables["cluster_events"], tables["observed_facts"]
    spans = {
        cluster: {"cluster": cluster, "first_ms": min(times), "last_ms": max(times)}
        for cluster in FLEET
        if (times := [row["event_ms"] for row in history if row["cluster"] == cluster])
    }
    seen: dict[tuple[Any, ...], list[int]] = {}
    for row in facts:
        if row["kind"] == "DUMP":
            key = (row["cluster"], row["broker_name"], row["details"]["command"])
            seen.setdefault(key, []).append(row["last_ms"])
    for row in tables["observed_ownership"]:
        key = (row["cluster"], None, "consumerStatus")
        seen.setdefault(key, []).append(row["observed_ms"])
    for row in tables["observed_members"]:
        key = (row["cluster"], row["asked_broker"], "consumerConnection")
        seen.setdefault(key, []).append(row["observed_ms"])
    names = ("cluster", "broker_name", "command", "first_ms", "last_ms")
    of_brokers = (*events.BROKER_EVENTS, *events.MASTER_EVENTS)
    return {
        "coverage": texts(tables["coverage"]),
        "spans": texts(spans.values()),
        "facts": texts(row for row in facts if row["kind"] in CLUSTER_KINDS),
        "dumps": texts(
            dict(zip(names, (*key, min(times), max(times)), strict=True))
            for key, times in seen.items()
        ),
        "broker_events": texts(
            {name: row[name] for name in BROKER_EVENTS.column_names}
            for row in history
            if row["event_type"] in of_brokers
        ),
        "findings": texts(row for row in tables["findings"] if row["consumer_group"] is None),
    }


def texts(rows: Iterable[Mapping[str, Any]]) -> list[str]:
    return sorted(str(sorted(row.items())) for row in rows)


def shown(found: ClusterTables) -> dict[str, list[str]]:
    return {name: texts(rows_of_arrow(rows)) for name, rows in vars(found).items()}


@pytest.fixture(scope="module")
def expected() -> dict[str, list[str]]:
    return plain({name: rows_of_arrow(rows) for name, rows in ingested_fleet().items()})


def test_the_rows_of_every_cluster(expected: dict[str, list[str]]) -> None:
    found = read_cluster_tables(ingested_fleet())
    assert shown(found) == expected
    assert all(expected.values())
    assert found.by_cluster().keys() == set(FLEET)


def test_parts_in_any_order_are_merged(expected: dict[str, list[str]]) -> None:
    draw = random.Random(3)
    parts = []
    for name, rows in ingested_fleet().items():
        cuts = sorted(draw.choices(range(len(rows) + 1), k=3))
        for begin, end in zip([0, *cuts], [*cuts, len(rows)], strict=True):
            parts.append(cluster_tables_of(name, rows.slice(begin, end - begin)))
    noted = [part for part in parts if part is not None]
    draw.shuffle(noted)
    halves = [ClusterTables.merged(noted[:5]), ClusterTables.merged(noted[5:])]
    sent = [pickle.loads(pickle.dumps(half)) for half in halves]
    assert shown(ClusterTables.merged(sent)) == expected


def test_of_messages_expired_in_any_group_the_newest_of_each_cluster_are_kept(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(cluster_tables, "MOST_EXPIRED", 3)
    place: dict[str, Any] = {
        "topic": "T",
        "queue_id": 0,
        "address": "a:1",
        "lowest": 1,
        "highest": 2,
        "log": "x",
    }
    rows = [fact("MESSAGES_OF_ANY_EXPIRED", at, **place) for at in (5, 1, 4, 2, 3)]
    rows += [rows[1] | {"cluster": "d"}, fact("BROKER_STARTED", 0, broker_name="a")]
    batch = batch_of_rows(ALL_TABLES["observed_facts"], rows)
    parts = [cluster_tables_of("observed_facts", pa.table(batch).slice(n, 2)) for n in (0, 2, 4, 6)]
    found = ClusterTables.merged(part for part in parts if part is not None).by_cluster()
    kept = {name: [row["last_ms"] for row in found[name].facts] for name in found}
    assert {name: sorted(times) for name, times in kept.items()} == {
        "c": [ms(0), ms(3), ms(4), ms(5)],
        "d": [ms(1)],
    }


def test_no_row_at_all() -> None:
    empty = {name: rows.schema.empty_table() for name, rows in ingested_fleet().items()}
    assert read_cluster_tables(empty).by_cluster() == {}
    assert cluster_tables_of("queue_offsets", pa.table({"cluster": ["c"]})) is None
