"""What concerns clusters as a whole, of tables and of any parts of them."""

import pickle
import random
from collections.abc import Iterable, Mapping
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.audit.cluster_snapshot import CLUSTER_KINDS
from rebalance_core.contracts.snapshot_tables import BROKER_EVENTS
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.model import events
from rebalance_core.process.cluster_tables import (
    ClusterTables,
    cluster_tables_of,
    read_cluster_tables,
)
from tests.recordings.fleets import FLEET, ingested_fleet


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


def test_no_row_at_all() -> None:
    empty = {name: rows.schema.empty_table() for name, rows in ingested_fleet().items()}
    assert read_cluster_tables(empty).by_cluster() == {}
    assert cluster_tables_of("queue_offsets", pa.table({"cluster": ["c"]})) is None
