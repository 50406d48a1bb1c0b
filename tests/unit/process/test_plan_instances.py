"""A plan plays groups that share client instances together, each with its edits."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import input_tables_of
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.ledger_pass import HistoriesOfSharedInstances
from rebalance_core.engine.options import engine_options
from rebalance_core.planning.rollout.futures import deployed_group
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.sweep.transitions import transitions
from rebalance_core.planning.variants import read_strategies, variants_of
from rebalance_core.process.plan import run_plan
from rebalance_core.replay.history import GroupHistory
from tests.plans import rows_of
from tests.recordings.recorded_events import SHARED
from tests.recordings.tables import ingested_recording
from tests.unit.engine.test_fan_out import arrow_tables

FIGURE = "orphan_queue_seconds"


def tables() -> dict[str, pa.Table]:
    ingested: Any = ingested_recording(SHARED).tables
    return arrow_tables({name: ingested[name] for name in INPUT_TABLES if name in ingested})


def history_of_orders() -> GroupHistory:
    checked = check_tables(input_tables_of(tables())).tables
    cluster = checked["cluster_events"]["cluster"][0].as_py()
    histories = HistoriesOfSharedInstances.of_tables(checked, engine_options(checked), "orders-app")
    return histories.history((cluster, "orders-app"))


@pytest.mark.parametrize("group", [None, "orders-app"])
def test_a_plan_plays_a_group_with_those_of_its_instances(
    group: str | None, tmp_path: Path
) -> None:
    """Whether they are asked for or not."""
    variants = variants_of([], read_strategies(["AVG"], []), (0,))
    run_plan(
        input_tables_of(tables()), variants, tmp_path / "plan", PlanConfig(group=group, futures=20)
    )
    (row,) = (
        r for r in rows_of(tmp_path / "plan", "plan_summary") if r["consumer_group"] == "orders-app"
    )
    together = history_of_orders()
    assert [sharing_group.consumer_group for sharing_group in together.sharing_groups] == [
        "clicks-app"
    ]
    histories = together, replace(together, sharing_groups=())
    (shared, _), (own, _) = transitions(histories, 20)
    assert row[FIGURE] == pytest.approx(shared[FIGURE])
    alone = own[FIGURE]
    assert row[FIGURE] != pytest.approx(alone)


def test_a_group_at_rest_has_those_of_its_instances_beside_it() -> None:
    rest = deployed_group(history_of_orders()).history
    (sharing_group,) = rest.sharing_groups
    assert {event.event_ms for event in (*rest.events, *sharing_group.events)} == {
        rest.events[0].event_ms
    }
    own = {event.client_id for event in rest.events} - {None}
    assert own == {event.client_id for event in sharing_group.events} - {None}
