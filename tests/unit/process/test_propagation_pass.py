"""Groups that share client instances, in the buckets of a simulation over time."""

from typing import Any

import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.routing import routing_of
from rebalance_core.engine.sharing_groups import groups_sharing_with, joins_of
from rebalance_core.kernels.engine_options import EngineOptions
from rebalance_core.process.propagate import group_histories
from rebalance_core.process.propagation_pass import BucketGroups
from rebalance_core.replay.history import GroupHistory
from tests.recordings.recorded_events import SHARED
from tests.recordings.tables import ingested_recording
from tests.unit.engine.test_fan_out import arrow_tables
from tests.unit.engine.test_routing import interests, split


def name_of(history: GroupHistory) -> str:
    return history.consumer_group


@pytest.mark.parametrize("buckets", [1, 2, 5])
@pytest.mark.parametrize(("group", "pattern"), [(None, None), ("orders-*", "orders-%")])
def test_buckets_have_the_histories_of_a_process(
    group: str | None, pattern: str | None, buckets: int
) -> None:
    ingested: Any = ingested_recording(SHARED).tables
    rows = arrow_tables({name: ingested[name] for name in INPUT_TABLES if name in ingested})
    inputs = input_tables_of(rows)
    here, tables = group_histories(inputs, group), check_tables(inputs).tables
    sharing_groups = groups_sharing_with(joins_of(tables["cluster_events"]))
    assert len(sharing_groups) == 2
    routing = routing_of(interests(tables), buckets, pattern, sharing_groups=sharing_groups)
    engine = EngineOptions(
        queue_offsets_given="queue_offsets" in tables,
        committed_offsets_given="committed_offsets" in tables,
    )
    groups = BucketGroups(engine, group, routing.giants, sharing_groups, routing.guests)
    found = list(groups.whole(split(routing, tables).items()))
    assert [name_of(one) for one in here] == sorted(map(name_of, found))
    for ours, theirs in zip(here, sorted(found, key=name_of), strict=True):
        assert ours.sharing_groups
        assert ours.events == theirs.events
        assert [sharing_group.events for sharing_group in ours.sharing_groups] == [
            sharing_group.events for sharing_group in theirs.sharing_groups
        ]
