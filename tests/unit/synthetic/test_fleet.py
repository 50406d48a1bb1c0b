"""The plan of a fleet and its tables, part by part."""

import hashlib
import json

import pytest

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.errors import UsageError
from rebalance_core.model.times import DAY_MS, HOUR_MS
from rebalance_core.synthetic import clusters, queue_table, retry_table, topics
from rebalance_core.synthetic.fleet import RANGES, FleetPlan
from rebalance_core.synthetic.fleet_batches import arrow_batch, arrow_batches
from rebalance_core.synthetic.table_parts import PARTS
from tests.unit.synthetic.fleets import Row, joined, table

# The plan of a fleet: its numbers, its limits and its places.


def test_every_wrong_number_is_named_at_once() -> None:
    with pytest.raises(UsageError) as caught:
        FleetPlan(-1, 0, 2**70, start_ms=-5, groups_per_cluster=0, offset_hours=25)
    lines = str(caught.value).splitlines()
    assert [line.split()[0] for line in lines] == list(RANGES)


def test_only_the_last_cluster_is_smaller() -> None:
    plan = FleetPlan(1_250, 1, 0, groups_per_cluster=500)
    assert [plan.groups_in(c) for c in range(plan.clusters)] == [500, 500, 250]
    assert [plan.topics_in(c) for c in range(plan.clusters)] == [200, 200, 100]
    assert plan.topics == 500


@pytest.mark.parametrize("groups", [1, 7, 20, 41, 100])
def test_every_entity_has_one_place(groups: int) -> None:
    plan = FleetPlan(groups, 1, 0, groups_per_cluster=20)
    placed = {plan.place_of_group(group) for group in range(plan.groups)}
    assert placed == {(c, n) for c in range(plan.clusters) for n in range(plan.groups_in(c))}
    topics = {plan.place_of_topic(topic) for topic in range(plan.topics)}
    assert topics == {(c, n) for c in range(plan.clusters) for n in range(plan.topics_in(c))}


def test_offsets_are_looked_at_from_the_start_to_the_end() -> None:
    plan = FleetPlan(1, 2, 0, offset_hours=7)
    steps = [(moment - plan.start_ms) // HOUR_MS for moment in plan.moments]
    assert steps == [0, 7, 14, 21, 28, 35, 42, 48]
    assert plan.moments[-1] == plan.end_ms == plan.start_ms + 2 * DAY_MS


# Arrow batches of a fleet: the rows of the entities, whatever the size of the batches.

ARROW_PLAN = FleetPlan(40, 1, 11, groups_per_cluster=20)


@pytest.mark.parametrize("name", PARTS)
def test_chunks_of_any_size_hold_the_same_rows(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    table = INPUT_TABLES[name]
    for part in PARTS[name]:
        entities = range(part.entities(ARROW_PLAN))
        whole = [
            row
            for b in arrow_batches(ARROW_PLAN, table, part, iter(entities))
            for row in b.to_pylist()
        ]
        monkeypatch.setattr("rebalance_core.synthetic.fleet_batches.ROWS_PER_BATCH", 1)
        small = list(arrow_batches(ARROW_PLAN, table, part, iter(entities)))
        monkeypatch.undo()
        pieces = [piece for number in entities for piece in part.rows(ARROW_PLAN, number)]
        assert len(small) == sum(arrow_batch(table, piece).num_rows > 0 for piece in pieces)
        assert all(batch.num_rows for batch in small)
        assert [row for batch in small for row in batch.to_pylist()] == whole


def test_an_entity_without_rows_is_an_empty_batch_of_all_columns() -> None:
    table = INPUT_TABLES["committed_offsets"]
    no_rows, no_columns = arrow_batch(table, []), arrow_batch(table, {})
    for batch in (no_rows, no_columns):
        assert (batch.num_rows, tuple(batch.schema.names)) == (0, table.column_names)


# Rows of a fleet as tables: keys, columns, and what they may not depend on.

TWO_DAYS = FleetPlan(90, 2, 13, groups_per_cluster=40)
# Made by this test; whoever changes what a seed gives does it knowingly, and the changelog says so.
DIGEST = "bc0c5eaaba2b5708"


def texts(rows: list[Row]) -> list[str]:
    return sorted(json.dumps(row, sort_keys=True) for row in rows)


def forget() -> None:
    """As in a fresh worker."""
    for cache in (
        clusters.cluster_of, topics.topic_of, queue_table.queue_table, retry_table.retry_table,
    ):  # fmt: skip
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
