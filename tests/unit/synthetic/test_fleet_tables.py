"""Rows of a fleet as tables: keys, columns, and what they may not depend on."""

import hashlib
import json

import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.times import DAY_MS
from rebalance_core.synthetic import clusters, queue_table, retry_table, topics
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.table_parts import PARTS
from tests.unit.synthetic.fleets import Row, joined, table

TWO_DAYS = FleetPlan(90, 2, 13, groups_per_cluster=40)
# Made by this test; whoever changes what a seed gives does it knowingly, and the changelog says so.
DIGEST = "bc0c5eaaba2b5708"


def texts(rows: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def forget() -> None:
    """As in a fresh worker."""
    for cache in (
        clusters.cluster_of,
        topics.topic_of,
        queue_table.queue_table,
        retry_table.retry_table,
    ):
        cache.cache_clear()


@pytest.mark.parametrize("name", PARTS)
def test_workers_and_their_order_change_nothing(name: str) -> None:
    found = []
    for worker in (4, 1, 0, 3, 2):
        forget()
        for part in PARTS[name]:
            for number in reversed(range(worker, part.entities(TWO_DAYS), 5)):
                found += joined(part.rows(TWO_DAYS, number))
    assert texts(found) == texts(table(TWO_DAYS, name))


@pytest.mark.parametrize("name", PARTS)
def test_columns_and_keys_are_the_contract_s(name: str) -> None:
    contract, rows = INPUT_TABLES[name], table(TWO_DAYS, name)
    needed = {column.name for column in contract.columns if not column.nullable}
    assert rows
    for row in rows:
        assert set(row) <= set(contract.column_names)
        assert all(row.get(column) is not None for column in needed)
    keys = {tuple(row.get(column) for column in contract.key) for row in rows}
    assert len(keys) == len(rows)


def test_another_seed_gives_other_rows() -> None:
    other = FleetPlan(90, 2, 14, groups_per_cluster=40)
    for name in PARTS:
        mine, theirs = set(texts(table(TWO_DAYS, name))), set(texts(table(other, name)))
        assert len(mine & theirs) < 0.05 * len(mine)


def test_a_longer_trace_begins_with_the_shorter_one() -> None:
    longer = FleetPlan(90, 4, 13, groups_per_cluster=40)
    end_ms = TWO_DAYS.start_ms + 2 * DAY_MS
    first = [row for row in table(longer, "cluster_events") if row["event_ms"] < end_ms]
    assert texts(first) == texts(table(TWO_DAYS, "cluster_events"))
    assert texts(table(longer, "consumer_groups")) == texts(table(TWO_DAYS, "consumer_groups"))


def test_full_clusters_keep_their_rows_when_groups_are_added() -> None:
    larger = FleetPlan(130, 2, 13, groups_per_cluster=40)
    full = {clusters.cluster_of(TWO_DAYS, number).name for number in range(2)}
    for name in PARTS:
        mine = [row for row in table(TWO_DAYS, name) if row["cluster"] in full]
        theirs = [row for row in table(larger, name) if row["cluster"] in full]
        assert texts(mine) == texts(theirs)


def test_a_seed_gives_what_it_always_gave() -> None:
    fleet = "\n".join(text for name in PARTS for text in texts(table(TWO_DAYS, name)))
    assert hashlib.sha256(fleet.encode()).hexdigest()[:16] == DIGEST
