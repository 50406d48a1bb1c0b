"""A plan in which POP stands beside strategies: which groups pop, and their figures."""

from typing import Any

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.request_mode import RequestMode
from rebalance_core.planning.movement import best_of
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.member_settings import popped_groups
from rebalance_core.planning.sweep.passes import OF_OWNED
from rebalance_core.planning.variants import read_strategies, variants_of
from rebalance_core.process.plan import run_plan
from tests.plans import rows_of
from tests.recordings.tables import DATA
from tests.tree import TREE
from tests.unit.planning.scenario.groups import dump, join

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
    tables: dict[str, Any] = {name: rows_of(output, name) for name in names}
    return tables | {"scenarios": result.scenarios}


def test_every_step_is_shared_and_shows_nothing_of_owned_queues(plan: dict[str, list[Row]]) -> None:
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
    [grown] = [
        row
        for row in plan["plan_summary"]
        if (row["strategy"], row["scenario"]) == (ONE_MORE, "add-consumers")
    ]
    assert (grown["members_before"], grown["members_after"]) == (3, 5)
    assert (grown["pop_queues_before"], grown["pop_queues_after"]) == (8, 8)
    assert grown["caveat"] == "members share queues"
    assert [grown[name] for name in ("moved", "minimum_moves", "peak_queues_after")] == [None] * 3
    league = {row["strategy"]: row for row in plan["plan_league"]}
    assert league["AVG"]["moved"] > 0
    assert league[ONE_MORE]["moved"] is league[ONE_MORE]["mean_peak_ratio"] is None
    assert (league[ONE_MORE]["pop_queues"], league[ONE_MORE]["max_redelivery_s"]) == (16, 64.0)


def test_a_shared_variant_is_never_the_best(plan: dict[str, list[Row]]) -> None:
    rows: list[Any] = [row for row in plan["scenarios"] if row["scenario"] == "baseline"]
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


def test_modes_come_first_and_what_the_history_states_is_replaced() -> None:
    given = {"event_type": "REQUEST_MODE", "cluster": "c", "topic": "T", "detail": "PULL"}
    rows, cannot = popped(
        [
            *dump(1),
            {**given, "event_ms": 2_000_000, "sequence": 50},
            join(2_000_000, 7, strategy="CONSISTENT_HASH", subscriptions=["T", "%RETRY%g"])
            | {"sequence": 51},
            join(2_000_000, 8, strategy="AVG_BY_CIRCLE") | {"sequence": 52},
        ]
    )
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
