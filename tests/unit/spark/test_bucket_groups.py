"""Groups that share client instances, in the buckets of a simulation over time; no JVM."""

import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.mates import joins_of, mates_of
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.engine.routing import routing_of
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.kernels.coded_groups import EngineOptions
from rebalance_core.process.propagate import Groups
from rebalance_core.replay.history import GroupHistory
from rebalance_core.spark.propagate import BucketGroups
from tests.recordings.recorded_events import SHARED
from tests.recordings.tables import DATA
from tests.unit.engine.test_fan_out import arrow_tables
from tests.unit.engine.test_routing import interests, split


def name_of(history: GroupHistory) -> str:
    return history.consumer_group


@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize(("group", "pattern"), [(None, None), ("orders-*", "orders-%")])
def test_buckets_have_the_histories_of_a_process(
    group: str | None, pattern: str | None, buckets: int
) -> None:
    ingested = ingest_collection(DATA / SHARED / "collection").tables
    rows = arrow_tables({name: ingested[name] for name in INPUT_TABLES if name in ingested})
    checked = check_tables(input_tables_of(rows))
    tables = checked.tables
    here = list(Groups.of(checked, PropagationOptions(group=group)))
    mates = mates_of(joins_of(tables["cluster_events"]))
    assert len(mates) == 2
    routing = routing_of(interests(tables), buckets, pattern, mates=mates)
    engine = EngineOptions(
        queue_offsets_given="queue_offsets" in tables,
        committed_offsets_given="committed_offsets" in tables,
    )
    groups = BucketGroups(routing.giants, engine, mates, routing.guests)
    found = [
        history
        for bucket, part in split(routing, tables).items()
        for history, _ in groups.groups(bucket, part)
    ]
    assert [name_of(one) for one in here] == sorted(map(name_of, found))
    for ours, theirs in zip(here, sorted(found, key=name_of), strict=True):
        assert ours.mates
        assert ours.events == theirs.events
        assert [mate.events for mate in ours.mates] == [mate.events for mate in theirs.mates]
