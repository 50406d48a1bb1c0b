"""A plan against simulations of the edited tables one by one by the plain replay; both places."""

import json
import shutil
from dataclasses import astuple, dataclass
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rebalance_core.contracts import INPUT_TABLES, PLAN_OUTPUT_TABLES
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.scenario.scenario import edit_history
from rebalance_core.planning.sweep.plan_options import SweepOptions
from rebalance_core.planning.sweep.plan_result import PlanResult
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.spark import InputTables
from rebalance_core.spark.plan.prepare import prepare_sweep
from rebalance_core.spark.tables.quarantine import quarantine
from tests.plans import PLACES, Place, Row, rows_of
from tests.recordings.tables import DATA, derived_tables, histories, strategy_for

INPUT = DATA / "join-leave" / "tables"
SCENARIOS = Path(__file__).parents[2] / "conf/scenarios"
TEXTS = ("AVG", "CONSISTENT_HASH(virtual_nodes=10)", "STICKY_BALANCED")
FIGURES = ("members", "queues", "moved", "voluntary_moves", "minimum_moves", "stickiness",
           "max_queues", "min_queues", "peak_ratio", "idle_members")  # fmt: skip
OF_EPOCH = ("causes", "status", "orphaned", "shared")


@dataclass(frozen=True)
class Planned:
    """What a place made of the recording."""

    result: PlanResult
    tables: dict[str, list[Row]]


@pytest.fixture(scope="module")
def variants() -> Variants:
    mistakes: list[str] = []
    files = [SCENARIOS / f"{name}.toml" for name in ("add-consumers", "lose-broker")]
    found = variants_of(read_scenarios(files), read_strategies(TEXTS, mistakes), (3,))
    assert mistakes == []
    return found


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rates whose sums are not exact, some of them out of date."""
    path = tmp_path_factory.mktemp("rates") / "queue_rates.jsonl"
    queue = {"cluster": "DefaultCluster", "topic": "OrderTopic"}
    rows = [
        queue
        | {"broker_name": name, "queue_id": number, "from_ms": from_ms}
        | {"messages_per_second": (number + 1) / 7 + from_ms}
        for name in ("broker-a", "broker-b")
        for number in range(4)
        for from_ms in (5, 0)[number % 2 :]
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    return path


def planned(place: Place, folder: Path, variants: Variants, output: Path, rates: Path) -> Planned:
    result = place.plan(folder, variants, output, rates=rates)
    return Planned(result, {name: rows_of(output, name) for name in result.tables})


@pytest.fixture(scope="module")
def in_process(
    variants: Variants, rates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Planned:
    return planned(Place(), INPUT, variants, tmp_path_factory.mktemp("process"), rates)


@pytest.fixture(scope="module")
def on_spark(
    spark: SparkSession, variants: Variants, rates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Planned:
    return planned(Place(spark), INPUT, variants, tmp_path_factory.mktemp("spark"), rates)


@pytest.fixture(scope="module", params=PLACES)
def plan(request: pytest.FixtureRequest) -> Planned:
    """The plan of each place, made once."""
    name = "in_process" if request.param == "process" else "on_spark"
    found = request.getfixturevalue(name)
    assert isinstance(found, Planned)
    return found


def expected_steps(variants: Variants) -> list[Row]:
    """Figures of every epoch of every variant of RocketMQ's strategies, one after the other."""
    given = derived_tables("join-leave")
    found = []
    for history in variants.histories:
        rows = given["cluster_events"]
        if history.scenario is not None:
            edited = edit_history(history.scenario, rows, given["consumer_groups"], seed=3)
            named = [{k: v for k, v in row.items() if v is not None} for row in edited.rows]
            rows = named
        for text in TEXTS[:2]:
            [group] = histories(given | {"cluster_events": rows})
            ledger = replay_group(group, strategy_for, strategy_override=text)
            whole = [row for row in ledger["group_metrics"] if row["topic"] is None]
            for epoch, metrics in zip(ledger["epochs"], whole, strict=True):
                keys = {"scenario": history.name, "strategy": text, "change_ms": epoch["from_ms"]}
                found.append(
                    keys
                    | {name: metrics[name] for name in ("epoch", *FIGURES)}
                    | {name: epoch[name] for name in OF_EPOCH}
                )
    return found


def by_text(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def test_a_sweep_gives_the_steps_of_separate_simulations(plan: Planned, variants: Variants) -> None:
    names = ("scenario", "strategy", "change_ms", "epoch", *FIGURES, *OF_EPOCH)
    steps = [row for row in plan.tables["plan_steps"] if row["of_rocketmq"]]
    expected = expected_steps(variants)
    assert len(steps) == len(expected) > 40
    assert by_text([{name: row[name] for name in names} for row in steps]) == by_text(expected)


def test_sticky_balanced_moves_the_minimum_and_is_labelled(plan: Planned) -> None:
    rows = [row for row in plan.tables["plan_steps"] if row["strategy"] == "STICKY_BALANCED"]
    assert {row["scenario"] for row in rows} == {"baseline", "add-consumers", "lose-broker"}
    for row in rows:
        assert (row["of_rocketmq"], row["seed"]) == (False, 3)
        assert row["moved"] == row["minimum_moves"]
        assert row["max_queues"] - row["min_queues"] <= 1


def test_the_summary_compares_the_state_before_the_first_edit_with_the_end(plan: Planned) -> None:
    found = {(row["scenario"], row["strategy"]): row for row in plan.tables["plan_summary"]}
    assert len(found) == 9
    grown = found["add-consumers", "AVG"]
    sides = [(grown[f"members_{side}"], grown[f"queues_{side}"], grown[f"peak_queues_{side}"])
             for side in ("before", "after")]  # fmt: skip
    assert sides == [(3, 8, 3), (5, 8, 2)]
    assert (grown["rebalances"], grown["moved"], grown["minimum_moves"]) == (2, 8, 3)
    assert grown["skipped_messages"] is not None
    broken = found["lose-broker", "STICKY_BALANCED"]
    assert broken["moved"] == broken["minimum_moves"] > 0
    assert broken["skipped_messages"] is None
    total = {row["strategy"]: row for row in plan.tables["plan_league"]}
    assert set(total) == set(TEXTS)
    for text, row in total.items():
        own = [one for (_, strategy), one in found.items() if strategy == text]
        assert row["moved"] == sum(one["moved"] for one in own)
        assert (row["groups"], row["caveat"], row["orphaned"]) == (1, None, 0)
    assert total["STICKY_BALANCED"]["amplification"] == 1.0


def test_ownership_has_every_queue_before_and_after(plan: Planned) -> None:
    rows = plan.tables["plan_ownership"]
    asked = [r for r in rows if (r["scenario"], r["strategy"]) == ("add-consumers", TEXTS[2])]
    orders = [row for row in asked if row["topic"] == "OrderTopic"]
    assert len(orders) == 8
    assert {len(row[f"owners_{side}"]) for row in orders for side in ("before", "after")} == {1}
    assert len({row["owners_before"][0] for row in orders}) == 3
    assert len({row["owners_after"][0] for row in orders}) == 5


def close(one: Any, other: Any) -> bool:
    """Equal; means and sums of doubles, which are added in any order, but for the last bits."""
    if isinstance(one, float) and isinstance(other, float):
        return one == pytest.approx(other, rel=1e-12, abs=0)
    return bool(one == other)


def differing(one: list[Row], other: list[Row]) -> list[tuple[Row, Row]]:
    return [
        (row, twin)
        for row, twin in zip(one, other, strict=True)
        if list(row) != list(twin) or not all(close(row[name], twin[name]) for name in row)
    ]


@pytest.mark.spark
def test_both_places_give_the_same_tables_and_results(
    in_process: Planned, on_spark: Planned
) -> None:
    assert set(in_process.tables) == set(on_spark.tables) == {*PLAN_OUTPUT_TABLES, "rejected"}
    for name, rows in in_process.tables.items():
        assert differing(rows, on_spark.tables[name]) == [], name
    here, there = in_process.result, on_spark.result
    for name in ("plan_steps", "plan_ownership", "rejected"):  # no doubles that are added up
        assert astuple(here.tables[name]) == astuple(there.tables[name]), name
    written = {name: table.rows for name, table in here.tables.items()}
    assert written == {name: table.rows for name, table in there.tables.items()}
    assert (here.input_rows, here.rejected) == (there.input_rows, there.rejected)
    assert here.warnings == there.warnings
    key = ("scenario", "strategy")
    for one, other in ((here.scenarios, there.scenarios), (here.league, there.league)):
        known = [name for name in key if name in one[0]]
        ordered = [
            [dict(sorted(row.items())) for row in sorted(rows, key=lambda r: [r[n] for n in known])]
            for rows in (one, other)
        ]
        assert differing(*ordered) == []


@pytest.mark.unit
def test_any_order_of_rows_gives_the_same_tables(
    in_process: Planned, variants: Variants, rates: Path, tmp_path: Path
) -> None:
    shutil.copytree(INPUT, tmp_path / "input")
    for path in (tmp_path / "input").iterdir():
        path.write_text("\n".join(reversed(path.read_text().splitlines())))
    again = planned(Place(), tmp_path / "input", variants, tmp_path / "plan", rates)
    assert again.tables.keys() == in_process.tables.keys()
    for name, rows in again.tables.items():
        assert differing(rows, in_process.tables[name]) == [], name


@pytest.mark.spark
def test_any_order_and_partitioning_gives_the_same_steps(
    spark: SparkSession, on_spark: Planned, variants: Variants
) -> None:
    tables = quarantine(InputTables.read(spark, str(INPUT))).tables
    mixed = {
        name: frame.orderBy(*INPUT_TABLES[name].key, ascending=False).repartition(3)
        for name, frame in tables.items()
    }
    again = prepare_sweep(mixed, variants, SweepOptions(partitions=3)).steps()
    rows = [row.asDict() for row in again.collect()]
    assert by_text(rows) == by_text(on_spark.tables["plan_steps"])
