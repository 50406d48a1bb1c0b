"""Buckets of rows: each group is in its own with every row that concerns it."""

from collections import Counter
from collections.abc import Mapping
from itertools import pairwise
from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.fan_out import fan_out
from rebalance_core.engine.ledger_pass import bucket_pass, ledger_pass
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.replayed import REPLAYED
from rebalance_core.engine.routing import UNDIVIDED, Interests, Routing, interests_of, routing_of
from rebalance_core.engine.sharing_groups import groups_sharing_in
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.fleet_batches import arrow_batches
from rebalance_core.synthetic.table_parts import PARTS
from tests.unit.engine.test_fan_out import arrow_tables, random_tables

ENGINE = EngineOptions(queue_offsets_given=True, committed_offsets_given=True)
EVENT = {"cluster": "c", "event_ms": 1, "sequence": 1}


def interests(tables: Mapping[str, pa.Table], pieces: int = 3) -> Interests:
    """Those of the tables, taken in pieces."""
    parts = []
    for name, rows in tables.items():
        step = max(1, -(-len(rows) // pieces))
        parts += [interests_of(name, rows.slice(n, step)) for n in range(0, len(rows), step)]
    return Interests.merged(part for part in parts if part is not None)


def split(routing: Routing, tables: Mapping[str, pa.Table]) -> dict[int, dict[str, pa.Table]]:
    buckets: dict[int, dict[str, pa.Table]] = {}
    for name, rows in tables.items():
        for bucket, part in routing.split(name, rows):
            buckets.setdefault(bucket, {})[name] = part
    return buckets


def rows_of_groups(tables: Mapping[str, pa.Table], pattern: str | None) -> dict[Any, Any]:
    grouped = fan_out(tables, pattern)
    found = {}
    for n in range(len(grouped)):
        rows = {name: table.to_pylist() for name, table in grouped.tables_of(n, n + 1).items()}
        name = (grouped.clusters[n].as_py(), grouped.groups[n].as_py())
        found[name] = {table: sorted(map(repr, of)) for table, of in rows.items() if of}
    return found


@pytest.mark.parametrize("pattern", [None, "b%"])
@pytest.mark.parametrize("seed", range(40))
def test_each_bucket_has_all_that_concerns_its_groups(seed: int, pattern: str | None) -> None:
    tables = arrow_tables(random_tables(seed))
    routing = routing_of(interests(tables), 3, pattern)
    found: dict[Any, Any] = {}
    for bucket, rows in split(routing, tables).items():
        of_bucket = rows_of_groups(rows, pattern)
        assert bucket < 3
        assert not found.keys() & of_bucket.keys(), "a group is in two buckets"
        found |= of_bucket
    assert found == rows_of_groups(tables, pattern)


@pytest.mark.parametrize("pattern", [None, "b%"])
@pytest.mark.parametrize("seed", range(20))
def test_each_bucket_has_the_groups_that_share_clients_with_its_own(
    seed: int, pattern: str | None
) -> None:
    tables = arrow_tables(random_tables(seed))
    whole = rows_of_groups(tables, None)
    names = sorted(whole)
    sharing_groups = groups_sharing_in(
        (one[0], (one[1], other[1])) for one, other in pairwise(names) if one[0] == other[0]
    )
    routing = routing_of(interests(tables), 3, pattern, sharing_groups=sharing_groups)
    made = []
    for bucket, rows in split(routing, tables).items():
        here = rows_of_groups(rows, None)
        for name in here.keys() - routing.guests.get(bucket, frozenset()):
            made.append(name)
            for each in (name, *sharing_groups.get(name, ())):
                assert here[each] == whole[each]
    assert sorted(made) == sorted(rows_of_groups(tables, pattern))


def test_mates_that_are_one_unit_have_all_rows_of_each_other_and_are_guests_of_no_unit(
    seed: int,
) -> None:
    tables = arrow_tables(random_tables(seed))
    whole = rows_of_groups(tables, None)
    names = sorted(whole)
    sharing_groups = groups_sharing_in(
        (one[0], (one[1], other[1])) for one, other in pairwise(names[:4]) if one[0] == other[0]
    )
    routing = routing_of(interests(tables), 3, None, UNDIVIDED, sharing_groups, as_one=True)
    assert not any(routing.guests.values())
    made = []
    for rows in split(routing, tables).values():
        here = rows_of_groups(rows, None)
        for name in here:
            made.append(name)
            for each in (name, *sharing_groups.get(name, ())):
                assert here[each] == whole[each]
    assert sorted(made) == names


def test_heavy_groups_go_to_different_buckets() -> None:
    names = ["light-1", "heavy-1", "light-2", "heavy-2"]
    joins = [
        EVENT | {"event_type": "CONSUMER_JOIN", "consumer_group": name, "sequence": n}
        for name in names
        for n in range(50 if name.startswith("heavy") else 1)
    ]
    tables = arrow_tables({"cluster_events": joins})
    buckets = split(routing_of(interests(tables), 2), tables)
    assert {
        b: sorted(set(rows["cluster_events"]["consumer_group"].to_pylist()))
        for b, rows in buckets.items()
    } == {
        0: ["heavy-1", "light-1"],
        1: ["heavy-2", "light-2"],
    }


def test_no_group_and_no_row() -> None:
    tables = arrow_tables(
        {"cluster_events": [EVENT | {"event_type": "BROKER_UP", "broker_name": "b"}]}
    )
    routing = routing_of(interests(tables), 4)
    assert split(routing, tables) == {}
    assert split(routing_of(Interests.merged([]), 4), arrow_tables({"cluster_events": []})) == {}


@pytest.fixture(scope="module")
def day() -> dict[str, pa.Table]:
    """A generated day of some groups."""
    plan = FleetPlan(groups=12, days=1, seed=20)
    tables = {
        name: pa.Table.from_batches(
            batch
            for part in parts
            for batch in arrow_batches(plan, INPUT_TABLES[name], part, range(part.entities(plan)))
        )
        for name, parts in PARTS.items()
    }
    return dict(check_tables(input_tables_of(tables)).tables)


@pytest.mark.parametrize(
    ("buckets", "giant_cells", "engine"),
    [
        (1, 1 << 26, "vectorized"),
        (3, 1 << 26, "vectorized"),
        (3, 2_000, "vectorized"),
        (2, UNDIVIDED, "reference"),
    ],
)
def test_the_passes_of_all_buckets_give_the_ledger(
    day: dict[str, pa.Table], buckets: int, giant_cells: int, engine: str
) -> None:
    """Giant groups are divided by their queues, and are counted whole."""
    routing = routing_of(interests(day), buckets, None, giant_cells, by_queue=True)
    assert bool(routing.giants) == (giant_cells < 10_000)
    found: Counter[tuple[str, str]] = Counter()
    for bucket, rows in split(routing, day).items():
        giants = routing.giants.get(bucket, {})
        for name, batch in bucket_pass(rows, giants, ENGINE, SimulationOptions(engine=engine)):
            found.update((name, repr(row)) for row in batch.to_pylist())
    grouped = fan_out(day)
    expected: Counter[tuple[str, str]] = Counter()
    for name, batch in ledger_pass(grouped.tables_of(0, len(grouped)), ENGINE):
        expected.update((name, repr(row)) for row in batch.to_pylist())
    replayed = {key: n for key, n in found.items() if key[0] == REPLAYED.name}
    assert len(replayed) == (len(grouped) if engine == "reference" else 0)
    assert found - Counter(replayed) == expected
    assert np.unique([name for name, _ in found]).size > 6


def test_a_part_of_a_group_gets_the_offsets_and_commits_of_its_queues_alone(
    day: dict[str, pa.Table],
) -> None:
    """Whether the kernels make its rows or, with so many strategies, the replay."""
    for tables in (day, day | {"cluster_events": with_many_strategies(day["cluster_events"])}):
        routing = routing_of(interests(tables), 5, None, 2_000, by_queue=True)
        buckets = split(routing, tables)
        for name in ("queue_offsets", "committed_offsets"):
            copies = sum(len(rows.get(name, ())) for rows in buckets.values())
            everywhere = routing_of(interests(tables), 5, None, 2_000).split(name, tables[name])
            assert len(tables[name]) <= copies < sum(len(part) for _, part in everywhere)
        found: Counter[tuple[str, str]] = Counter()
        for bucket, rows in buckets.items():
            giants = routing.giants.get(bucket, {})
            for name, batch in bucket_pass(rows, giants, ENGINE, SimulationOptions()):
                found.update((name, repr(row)) for row in batch.to_pylist())
        grouped = fan_out(tables)
        expected: Counter[tuple[str, str]] = Counter()
        for name, batch in ledger_pass(grouped.tables_of(0, len(grouped)), ENGINE):
            expected.update((name, repr(row)) for row in batch.to_pylist())
        assert found == expected
        replayed = sum(name == REPLAYED.name for name, _ in found)
        assert bool(replayed) == (tables is not day)


def with_many_strategies(events: pa.Table) -> pa.Table:
    """Events whose joins state a dozen strategies."""
    texts = [
        f"CONSISTENT_HASH(virtual_nodes={1 + number % 12})" if kind == "CONSUMER_JOIN" else None
        for number, kind in enumerate(events["event_type"].to_pylist())
    ]
    place = events.schema.get_field_index("strategy")
    return events.set_column(place, "strategy", pa.array(texts, pa.string()))


def test_rows_of_offsets_and_commits_weigh() -> None:
    """Two groups of equal events: the one with commits is dealt out first, and divided."""
    joins = [
        EVENT
        | {
            "event_type": "CONSUMER_JOIN",
            "consumer_group": name,
            "sequence": n,
            "client_id": "x",
            "subscriptions": ["t"],
        }
        for n, name in enumerate("ab")
    ]
    queues = EVENT | {
        "event_type": "TOPIC_CONFIG",
        "topic": "t",
        "broker_name": "k",
        "read_queue_nums": 8,
        "sequence": 9,
    }
    commits = [
        {
            "cluster": "c",
            "consumer_group": "b",
            "topic": "t",
            "broker_name": "k",
            "queue_id": queue,
            "observed_ms": at,
            "committed_offset": at,
        }
        for queue in range(8)
        for at in range(40)
    ]
    tables = arrow_tables({"cluster_events": [*joins, queues], "committed_offsets": commits})
    routing = routing_of(interests(tables), 4, None, 100 * 256, by_queue=True)
    (b,) = {name for of in routing.giants.values() for name in of}
    assert b == ("c", "b")
    sent = [
        len(part) for _, part in routing.split("committed_offsets", tables["committed_offsets"])
    ]
    assert sum(sent) == 320
    assert max(sent) == 80
