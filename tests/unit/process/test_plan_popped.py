"""Plans of groups that pop and of groups that share client instances."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import input_tables_of, read_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.engine.ledger_pass import HistoriesOfSharedInstances
from rebalance_core.engine.options import engine_options
from rebalance_core.model.request_mode import RequestMode
from rebalance_core.planning.movement import best_of
from rebalance_core.planning.rollout.futures import deployed_group
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.member_settings import popped_groups
from rebalance_core.planning.sweep.passes import OF_OWNED
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.sweep.transitions import transition
from rebalance_core.planning.variants import read_strategies, variants_of
from rebalance_core.process.plan import run_plan
from rebalance_core.replay.history import GroupHistory
from tests.plans import rows_of
from tests.recordings.recorded_events import SHARED
from tests.recordings.tables import DATA, ingested_recording
from tests.tree import TREE
from tests.unit.engine.test_fan_out import arrow_tables
from tests.unit.planning.scenario.groups import dump, join

# A plan in which POP stands beside strategies: which groups pop, and what their figures say.

ONE_MORE = "POP(share_queue_num=1)"
SCENARIO = TREE / "rebalance_core/bundled/scenarios/add-consumers.toml"
Row = dict[str, Any]


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> dict[str, list[Row]]:
    """Of order-service: 8 queues, 3 members, 5 with the scenario."""
    output = tmp_path_factory.mktemp("plan") / "out"
    variants = variants_of(read_scenarios([SCENARIO]), read_strategies(["AVG", ONE_MORE], []), (0,))
    inputs = read_input_tables(str(DATA / "join-leave" / "tables"))
    result = run_plan(inputs, variants, output)
    names = ("plan_steps", "plan_summary", "plan_league")
    return {name: rows_of(output, name) for name in names} | {"scenarios": result.scenarios}


def test_every_step_is_shared_and_says_nothing_of_owned_queues(plan: dict[str, list[Row]]) -> None:
    steps = [row for row in plan["plan_steps"] if row["strategy"] == ONE_MORE and row["members"]]
    alone = [row for row in plan["plan_steps"] if row["strategy"] == "AVG" and row["members"]]
    assert [row["change_ms"] for row in steps] == [row["change_ms"] for row in alone] != []
    assert {(row["queues"], row["pop_queues"], row["unreached"]) for row in steps} == {(0, 8, 0)}
    for row in steps:
        assert [row[name] for name in OF_OWNED] == [None] * len(OF_OWNED)
        clients = min(2, row["members"])
        assert (row["min_clients_per_queue"], row["max_clients_per_queue"]) == (clients, clients)
        assert (row["min_redelivery_s"], row["max_redelivery_s"]) == (0.0, 64.0)
    assert [row["members"] for row in steps] == [row["members"] for row in alone]


def test_summary_and_league_tell_what_is_shared(plan: dict[str, list[Row]]) -> None:
    [grown] = [row for row in plan["plan_summary"]
               if (row["strategy"], row["scenario"]) == (ONE_MORE, "add-consumers")]  # fmt: skip
    assert (grown["members_before"], grown["members_after"]) == (3, 5)
    assert (grown["pop_queues_before"], grown["pop_queues_after"]) == (8, 8)
    assert grown["caveat"] == "members share queues"
    assert [grown[name] for name in ("moved", "minimum_moves", "peak_queues_after")] == [None] * 3
    league = {row["strategy"]: row for row in plan["plan_league"]}
    assert league["AVG"]["moved"] > 0
    assert league[ONE_MORE]["moved"] is league[ONE_MORE]["mean_peak_ratio"] is None
    assert (league[ONE_MORE]["pop_queues"], league[ONE_MORE]["max_redelivery_s"]) == (16, 64.0)


def test_a_shared_variant_is_never_the_best(plan: dict[str, list[Row]]) -> None:
    rows = [row for row in plan["scenarios"] if row["scenario"] == "baseline"]
    best = best_of(rows)
    assert best is not None
    assert best.strategy == "AVG"
    assert best_of([row for row in rows if row["shared"]]) is None


def popped(rows: list[Row], **settings: Any) -> tuple[list[Row], dict[tuple[str, str], str]]:
    """The events of the group, and why it cannot pop."""
    group = {"cluster": "c", "consumer_group": "g"} | settings
    named = [row | {"consumer_group": "g"} for row in rows]
    tables = {
        "cluster_events": pa.Table.from_pylist(
            named, INPUT_TABLES["cluster_events"].arrow_schema()
        ),
        "consumer_groups": pa.Table.from_pylist(
            [group], INPUT_TABLES["consumer_groups"].arrow_schema()
        ),
    }
    made = popped_groups(tables, RequestMode(1))
    return made.tables["cluster_events"].to_pylist(), dict(made.cannot_pop)


@pytest.mark.parametrize(
    ("settings", "reason"),
    [
        ({"ordered": True}, "ORDERLY"),
        ({"message_model": "BROADCASTING"}, "BROADCASTING"),
        ({"consumer_type": "PULL"}, "PULL"),
        ({"consumer_type": "LITE_PULL"}, "PULL"),
        ({"client_version": "4.9"}, "VERSION"),
        ({"rebalance_mode": "PROXY", "ordered": True}, "PROXY"),
    ],
)
def test_a_group_that_cannot_pop_stays_as_it_is(settings: Row, reason: str) -> None:
    rows, cannot = popped(dump(2), **settings)
    assert cannot == {("c", "g"): reason}
    assert [row["event_type"] for row in rows] == [row["event_type"] for row in dump(2)]
    assert {row["rebalance_mode"] for row in rows} == {None}


@pytest.mark.parametrize("own", [{"version": "4.9.7"}, {"version": "2.1.2", "language": "GO"}])
def test_one_member_that_cannot_ask_keeps_its_group(own: Row) -> None:
    old = join(2_000_000, 9, **own) | {"sequence": 99}
    assert popped([*dump(2), old])[1] == {("c", "g"): "VERSION"}


def test_modes_come_first_and_what_the_history_says_is_replaced() -> None:
    given = {"event_type": "REQUEST_MODE", "cluster": "c", "topic": "T", "detail": "PULL"}
    rows, cannot = popped(
        [*dump(1), {**given, "event_ms": 2_000_000, "sequence": 50},
         join(2_000_000, 7, strategy="CONSISTENT_HASH", subscriptions=["T", "%RETRY%g"])
         | {"sequence": 51},
         join(2_000_000, 8, strategy="AVG_BY_CIRCLE") | {"sequence": 52}]
    )  # fmt: skip
    assert cannot == {}
    modes = [row for row in rows if row["event_type"] == "REQUEST_MODE"]
    assert [(row["event_ms"], row["topic"], row["detail"]) for row in modes] == [
        (999_999, "T", ONE_MORE)
    ]
    joins = [row for row in rows if row["event_type"] == "CONSUMER_JOIN"]
    assert {row["rebalance_mode"] for row in joins} == {"BROKER"}
    assert [row["strategy"] for row in joins] == [None, "AVG", "AVG_BY_CIRCLE"]


@pytest.mark.parametrize(
    "text",
    [
        "POP",
        "POP(x)",
        "POP(share_queue_num=abc)",
        "POP(1)",
        "POP(share_queue_num=1 2)",
        "POP(share_queue_num=2147483648)",
    ],
)
def test_a_wrong_text_is_refused_with_the_valid_form(text: str) -> None:
    mistakes: list[str] = []
    read_strategies([text], mistakes)
    assert len(mistakes) == 1
    assert "expected POP(share_queue_num=N)" in mistakes[0]


# Groups that share client instances are played together in a plan, each with its edits.

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
    assert row[FIGURE] == pytest.approx(transition(together, 20)[0][FIGURE])
    alone = transition(replace(together, sharing_groups=()), 20)[0][FIGURE]
    assert row[FIGURE] != pytest.approx(alone)


def test_a_group_at_rest_has_those_of_its_instances_beside_it() -> None:
    rest = deployed_group(history_of_orders()).history
    (sharing_group,) = rest.sharing_groups
    assert {event.event_ms for event in (*rest.events, *sharing_group.events)} == {
        rest.events[0].event_ms
    }
    own = {event.client_id for event in rest.events} - {None}
    assert own == {event.client_id for event in sharing_group.events} - {None}


# A plan in which groups pop: what their steps say of shared queues.

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
