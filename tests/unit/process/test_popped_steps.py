"""What the steps of popping groups say of shared queues."""

from typing import Any

import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.passes import OF_OWNED
from rebalance_core.planning.variants import read_strategies, variants_of
from rebalance_core.process.plan import run_plan
from tests.plans import rows_of
from tests.recordings.tables import DATA
from tests.tree import TREE

SWITCHED_MODE = "switch-request-mode"
COLUMNS = ("pop_queues", "min_clients_per_queue", "max_clients_per_queue", "unreached")


@pytest.fixture(scope="module")
def steps(tmp_path_factory: pytest.TempPathFactory) -> list[dict[str, Any]]:
    """Of order-service: 8 queues, 3 members in the end; they ask brokers, which serve by POP 1."""
    output = tmp_path_factory.mktemp("plan") / "out"
    inputs = read_input_tables(str(DATA / "join-leave" / "tables"))
    scenarios = read_scenarios([TREE / f"rebalance_core/bundled/scenarios/{SWITCHED_MODE}.toml"])
    strategies = read_strategies(["recorded", "AVG", "CONSISTENT_HASH", "STICKY_BALANCED"], [])
    result = run_plan(inputs, variants_of(scenarios, strategies, (0,)), output)
    assert result.warnings == ()
    return rows_of(output, "plan_steps")


def last(steps: list[dict[str, Any]], scenario: str, strategy: str) -> dict[str, Any]:
    of_variant = [
        row for row in steps if row["scenario"] == scenario and row["strategy"].startswith(strategy)
    ]
    return max(of_variant, key=lambda row: int(row["epoch"]))


@pytest.mark.parametrize("strategy", ["recorded", "AVG"])
def test_exclusive_and_shared_side_by_side(steps: list[dict[str, Any]], strategy: str) -> None:
    alone = last(steps, "baseline", strategy)
    assert [alone[name] for name in COLUMNS] == [0, None, None, None]
    assert alone["queues"] == 8
    shared = last(steps, SWITCHED_MODE, strategy)
    assert shared["causes"] == ["CONSUMER_JOIN", "REQUEST_MODE"]
    assert [shared[name] for name in COLUMNS] == [8, 2, 2, 0]  # own share and that of the next
    assert (shared["queues"], shared["members"]) == (0, 3)
    assert [shared[name] for name in OF_OWNED] == [None] * len(OF_OWNED)
    assert (shared["min_redelivery_s"], shared["max_redelivery_s"]) == (0.0, 64.0)


@pytest.mark.parametrize("strategy", ["CONSISTENT_HASH", "STICKY_BALANCED"])
def test_brokers_give_nothing_by_a_strategy_that_they_do_not_know(
    steps: list[dict[str, Any]], strategy: str
) -> None:
    shared = last(steps, SWITCHED_MODE, strategy)
    assert shared["status"] == "FROZEN"
    assert shared["pop_queues"] == 8
