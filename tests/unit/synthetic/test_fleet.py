"""The plan of a fleet and its tables, part by part."""

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.model.times import DAY_MS, HOUR_MS
from rebalance_core.synthetic.fleet import RANGES, FleetPlan


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
