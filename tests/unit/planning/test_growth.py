"""Plans for a group that has to read more."""

import pytest

from rebalance_core.model.errors import UsageError
from rebalance_core.planning import fewest_consumers, growth_plans, what_if
from rebalance_core.planning.growth import recommendation

THREE = [f"10.0.0.{n}@{n}" for n in range(1, 4)]
EIGHT = {"orders": {"broker-a": 4, "broker-b": 4}}
RING = "CONSISTENT_HASH(virtual_nodes=10)"


@pytest.mark.parametrize(
    ("queues", "limit", "fewest"),
    [
        ({"orders": 8}, 8, 2),
        ({"orders": 8}, 1, 9),
        ({"orders": 8}, 0.99, None),
        ({"orders": 8, "pay": 2}, 2, 9),
        ({"orders": 8, "pay": 2}, 3, 5),
    ],
)
def test_the_fewest_consumers_have_one_to_spare(
    queues: dict[str, int], limit: float, fewest: int | None
) -> None:
    assert fewest_consumers(queues, limit) == fewest


def test_a_plan_fits_while_any_consumer_is_missing() -> None:
    found = growth_plans(THREE, EIGHT, "AVG", 3.0, [RING, "STICKY_BALANCED"])
    assert (found.members, found.today_peak, found.limits) == (3, 3, {1: 1.0, 2: 2.0})
    assert found.consumers == {1: 9, 2: 9}
    assert len(found.plans) == 6
    for plan in found.plans:
        queues = {"orders": {b: n * plan.queues // 8 for b, n in EIGHT["orders"].items()}}
        there = next(
            change.after
            for (_, name), change in found.changes.items()
            if name == plan.strategy and len(change.after.owners) == plan.queues
        )
        peaks = [
            what_if(there.client_ids, queues, there.strategy, {"remove_consumers": [one]})
            for one in there.client_ids
        ]
        assert plan.one_missing == max(each.after.peak for each in peaks)
        assert plan.fits == (plan.one_missing <= plan.limit)
    best, *_ = found.ranked
    assert (best.queues, best.consumers, best.strategy, best.idle) == (16, 9, "AVG", 0)
    assert not any(plan.strategy == "STICKY_BALANCED" for plan in found.ranked)


def test_moves_per_rebalance_decide_between_plans_without_idle_consumers() -> None:
    moves = {"AVG": 9.0, "AVG_BY_CIRCLE": 2.0}
    found = growth_plans(THREE, EIGHT, "AVG", 1.0, ["AVG_BY_CIRCLE"], moved_per_rebalance=moves)
    assert found.ranked[0].strategy == "AVG_BY_CIRCLE"
    text = "\n".join(recommendation(found, "billing"))
    assert "RECOMMENDATION: start 1 more consumer (4 in all), leave the topic at 8 queues" in text
    assert "and change to AVG_BY_CIRCLE." in text
    assert "Today 3 consumers share 8 queues of billing under AVG" in text


def test_where_no_number_of_consumers_is_enough_the_load_must_fall() -> None:
    found = growth_plans(THREE, {"orders": {"broker-a": 3}}, "AVG", 3.0)
    assert (found.consumers, found.plans) == ({1: None, 2: None}, ())
    (text,) = recommendation(found, "billing")
    assert text.endswith("No plan of RocketMQ's strategies fits: reduce the load of a queue first.")


@pytest.mark.parametrize("growth", [0.0, -1.0, float("nan"), float("inf")])
def test_a_growth_that_is_no_growth_is_refused(growth: float) -> None:
    with pytest.raises(UsageError, match="expected more than 0"):
        growth_plans(THREE, EIGHT, "AVG", growth)
