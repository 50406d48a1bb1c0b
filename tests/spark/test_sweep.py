"""A plan against simulations of the edited tables one by one by the plain replay; both places.

One plan in each place is what all tests look at.
"""

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import astuple, dataclass, replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rebalance_core.contracts import INPUT_TABLES, PLAN_OUTPUT_TABLES
from rebalance_core.planning.expectations import Expectation
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.plan_options import PlanConfig, PlanResult
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.spark import task_tables
from tests.plans import PLACES, Place, Row, differing, rows_of
from tests.recordings.tables import Tables, derived_tables, histories, strategy_for
from tests.tree import TREE
from tests.unit.planning.scenario.edited_history import edit_history

PLAIN, PATHOLOGIES = "DefaultCluster", "Pathologies"
SCENARIOS = TREE / "rebalance_core/bundled/scenarios"
SCENARIO_NAMES = {"baseline", "add-consumers", "lose-broker", "mixed-subscriptions"}
TEXTS = ("AVG", "CONSISTENT_HASH(virtual_nodes=10)", "STICKY_BALANCED")
POP = "POP(share_queue_num=1)"
OF_METRICS = ("cluster", "consumer_group", "epoch", "members", "queues", "moved",
              "voluntary_moves", "minimum_moves", "stickiness", "max_queues", "min_queues",
              "peak_ratio", "idle_members")  # fmt: skip
OF_EPOCH = ("causes", "status", "orphaned", "shared")


@dataclass(frozen=True)
class Planned:
    """What a place made of the recordings."""

    result: PlanResult
    tables: dict[str, list[Row]]
    told: list[Mapping[str, int]]
    """Rows of the input, as told before anything was written."""

    def of_plain(self, table: str, **values: Any) -> list[Row]:
        """Rows of the recording whose group has no trouble, with these values."""
        wanted = {"cluster": PLAIN} | values
        return [row for row in self.tables[table] if wanted.items() <= row.items()]


@pytest.fixture(scope="module")
def recorded() -> list[Tables]:
    """Two recordings as two clusters: one of a plain group, one of groups in trouble.

    The first of these by name is orderly and cannot pop.
    """
    tables = [derived_tables("join-leave"), derived_tables("pathologies")]
    settings = tables[1]["consumer_groups"]
    first = min(row["consumer_group"] for row in settings)
    tables[1]["consumer_groups"] = [
        row | ({"ordered": True} if row["consumer_group"] == first else {}) for row in settings
    ]
    return [
        {name: [row | {"cluster": cluster} for row in rows] for name, rows in one.items()}
        for cluster, one in zip((PLAIN, PATHOLOGIES), tables, strict=True)
    ]


@pytest.fixture(scope="module")
def folder(recorded: list[Tables], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The recordings as input tables."""
    target = tmp_path_factory.mktemp("recorded")
    for name in INPUT_TABLES:
        lines = [json.dumps(row) for tables in recorded for row in tables[name]]
        (target / f"{name}.jsonl").write_text("\n".join(lines))
    return target


@pytest.fixture(scope="module")
def variants() -> Variants:
    mistakes: list[str] = []
    names = sorted(SCENARIO_NAMES - {"baseline"})
    files = [SCENARIOS / f"{name}.toml" for name in names]
    expectations = (Expectation(1, "", orphaned=0.0),)
    scenarios = [replace(read, expectations=expectations) for read in read_scenarios(files)]
    found = variants_of(scenarios, read_strategies((*TEXTS, POP), mistakes), (3,))
    assert mistakes == []
    return found


@pytest.fixture(scope="module")
def rates(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Rates whose sums are not exact, some of them out of date."""
    path = tmp_path_factory.mktemp("rates") / "queue_rates.jsonl"
    queue = {"cluster": PLAIN, "topic": "OrderTopic"}
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


FEW = PlanConfig(futures=2, holder_futures=1)
"""A plan of every group in 20 futures takes 12 s, nearly all of them for the futures."""


def planned(place: Place, folder: Path, variants: Variants, output: Path, rates: Path) -> Planned:
    told: list[Mapping[str, int]] = []

    def begin(rows: Mapping[str, int]) -> None:
        told.append(dict(rows))
        assert not output.exists()

    result = place.plan(folder, variants, output, FEW, rates=rates, before_writing=begin)
    return Planned(result, {name: rows_of(output, name) for name in result.tables}, told)


@pytest.fixture(scope="module")
def in_process(
    folder: Path, variants: Variants, rates: Path, tmp_path_factory: pytest.TempPathFactory
) -> Planned:
    return planned(Place(), folder, variants, tmp_path_factory.mktemp("process") / "plan", rates)


@pytest.fixture(scope="module")
def on_spark(
    spark: SparkSession,
    folder: Path,
    variants: Variants,
    rates: Path,
    tmp_path_factory: pytest.TempPathFactory,
) -> Planned:
    return planned(Place(spark), folder, variants, tmp_path_factory.mktemp("spark") / "plan", rates)


@pytest.fixture(scope="module", params=PLACES)
def plan(request: pytest.FixtureRequest) -> Planned:
    """The plan of each place, made once."""
    name = "in_process" if request.param == "process" else "on_spark"
    found = request.getfixturevalue(name)
    assert isinstance(found, Planned)
    return found


def expected_steps(given: Tables, variants: Variants) -> Iterator[Row]:
    """Figures of every epoch of every variant of RocketMQ's strategies, one after the other."""
    for history in variants.histories:
        rows = given["cluster_events"]
        if history.scenario is not None:
            edited = edit_history(history.scenario, rows, given["consumer_groups"], seed=3)
            rows = [{k: v for k, v in row.items() if v is not None} for row in edited.rows]
        for text in TEXTS[:2]:
            for group in histories(given | {"cluster_events": rows}):
                ledger = replay_group(group, strategy_for, strategy_override=text)
                whole = [row for row in ledger["group_metrics"] if row["topic"] is None]
                for epoch, metrics in zip(ledger["epochs"], whole, strict=True):
                    keys = {"scenario": history.name, "strategy": text}
                    yield (
                        keys
                        | {"change_ms": epoch["from_ms"]}
                        | {name: metrics[name] for name in OF_METRICS}
                        | {name: epoch[name] for name in OF_EPOCH}
                    )


def by_text(rows: list[Row]) -> list[str]:
    return sorted(repr(sorted(row.items())) for row in rows)


def test_a_plan_states_what_it_wrote(plan: Planned, variants: Variants) -> None:
    result = plan.result
    assert plan.told == [{name: count.rows for name, count in result.inputs.items()}]
    assert result.inputs["cluster_events"].rows > 0
    assert set(result.tables) == {*PLAN_OUTPUT_TABLES, "rejected"}
    for name, table in result.tables.items():
        assert len(plan.tables[name]) == table.rows
    assert (dict(result.rejected), result.warnings) == ({}, ())
    assert {row["strategy"] for row in result.league} == {*TEXTS, POP}
    assert len(result.scenarios) == len(variants)


def test_a_sweep_gives_the_steps_of_separate_simulations(
    plan: Planned, recorded: list[Tables], variants: Variants
) -> None:
    names = ("scenario", "strategy", "change_ms", *OF_METRICS, *OF_EPOCH)
    steps = [row for row in plan.tables["plan_steps"] if row["strategy"] in TEXTS[:2]]
    assert all(row["of_rocketmq"] for row in steps)
    expected = [row for tables in recorded for row in expected_steps(tables, variants)]
    assert len(steps) == len(expected) > 200
    assert by_text([{name: row[name] for name in names} for row in steps]) == by_text(expected)


def test_sticky_balanced_moves_the_minimum_and_is_labelled(plan: Planned) -> None:
    rows = plan.of_plain("plan_steps", strategy="STICKY_BALANCED")
    assert {row["scenario"] for row in rows} == SCENARIO_NAMES
    measured = [row for row in rows if row["minimum_moves"] is not None]
    assert len(measured) > len(rows) / 2
    for row in rows:
        assert (row["of_rocketmq"], row["seed"]) == (False, 3)
    for row in measured:
        assert row["moved"] == row["minimum_moves"]
        assert row["max_queues"] - row["min_queues"] <= 1


def test_the_summary_compares_the_state_before_the_first_edit_with_the_end(plan: Planned) -> None:
    rows = plan.of_plain("plan_summary")
    found = {(row["scenario"], row["strategy"]): row for row in rows}
    assert len(found) == len(rows) == 16
    grown = found["add-consumers", "AVG"]
    sides = [
        (grown[f"members_{side}"], grown[f"queues_{side}"], grown[f"peak_queues_{side}"])
        for side in ("before", "after")
    ]
    assert sides == [(3, 8, 3), (5, 8, 2)]
    assert (grown["rebalances"], grown["moved"], grown["minimum_moves"]) == (2, 8, 3)
    assert grown["skipped_messages"] is not None
    broken = found["lose-broker", "STICKY_BALANCED"]
    assert broken["moved"] == broken["minimum_moves"] > 0
    assert broken["skipped_messages"] is None


def test_the_league_adds_up_all_groups(plan: Planned) -> None:
    total = {row["strategy"]: row for row in plan.tables["plan_league"]}
    assert set(total) == {*TEXTS, POP}
    for text, row in total.items():
        if text == POP:
            continue
        own = [one for one in plan.tables["plan_summary"] if one["strategy"] == text]
        assert row["moved"] == sum(one["moved"] for one in own)
        assert row["groups"] == len({(one["cluster"], one["consumer_group"]) for one in own}) > 1
        left_out = sum(one["caveat"] is not None for one in own)
        assert 0 < left_out < len(own)
        assert row["caveat"].startswith(f"amplification leaves out {left_out} of {len(own)} groups")
        sound = [one for one in own if one["caveat"] is None]
        moved, minimum = (sum(one[name] for one in sound) for name in ("moved", "minimum_moves"))
        assert (row["minimum_moves"], row["amplification"]) == (minimum, moved / minimum)


def test_popping_moves_nothing_and_some_groups_cannot(plan: Planned) -> None:
    [league] = [row for row in plan.tables["plan_league"] if row["strategy"] == POP]
    assert league["moved"] is None
    assert league["pop_queues"] > 0
    # in each scenario
    assert league["caveat"].endswith("cannot pop and are unchanged: 4 ORDERLY")


def test_ownership_has_every_queue_before_and_after(plan: Planned) -> None:
    variant = {"scenario": "add-consumers", "strategy": TEXTS[2], "topic": "OrderTopic"}
    orders = plan.of_plain("plan_ownership", **variant)
    assert len(orders) == 8
    assert {len(row[f"owners_{side}"]) for row in orders for side in ("before", "after")} == {1}
    assert len({row["owners_before"][0] for row in orders}) == 3
    assert len({row["owners_after"][0] for row in orders}) == 5


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
    assert (here.inputs, here.rejected) == (there.inputs, there.rejected)
    assert here.warnings == there.warnings
    key = ("scenario", "strategy")
    for one, other in ((here.scenarios, there.scenarios), (here.league, there.league)):
        known = [name for name in key if name in one[0]]
        ordered = [
            [dict(sorted(row.items())) for row in sorted(rows, key=lambda r: [r[n] for n in known])]
            for rows in (one, other)
        ]
        assert differing(*ordered) == []
    assert any(row["shared"] for row in here.scenarios)
    assert {row["verdict"] for row in in_process.tables["expectations"]} == {"KEPT", "BROKEN"}
    assert here.expectations == there.expectations


@pytest.fixture(scope="module")
def reversed_folder(folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The input with its lines in the opposite order."""
    target = tmp_path_factory.mktemp("reversed") / "input"
    shutil.copytree(folder, target)
    for path in target.iterdir():
        path.write_text("\n".join(reversed(path.read_text().splitlines())))
    return target


@pytest.mark.unit
def test_any_order_of_rows_gives_the_same_tables(
    in_process: Planned, reversed_folder: Path, variants: Variants, rates: Path, tmp_path: Path
) -> None:
    again = planned(Place(), reversed_folder, variants, tmp_path / "plan", rates)
    assert again.tables.keys() == in_process.tables.keys()
    for name, rows in again.tables.items():
        assert differing(rows, in_process.tables[name]) == [], name


@pytest.mark.spark
def test_any_order_partitioning_and_writer_give_the_same_tables_and_nothing_stays(
    spark: SparkSession,
    in_process: Planned,
    reversed_folder: Path,
    variants: Variants,
    rates: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """With more tasks than groups, each with some histories, and where Spark must write."""
    monkeypatch.setattr(task_tables, "is_direct", lambda folder: False)
    before, output = kept(spark), tmp_path / "plan"
    config = replace(FEW, partitions=8)  # seven groups
    result = Place(spark).plan(reversed_folder, variants, output, config, rates=rates)
    assert kept(spark) == before
    for name, rows in in_process.tables.items():
        assert differing(rows_of(output, name), rows) == [], name
    for name in ("plan_steps", "plan_ownership", "rejected"):
        assert astuple(result.tables[name]) == astuple(in_process.result.tables[name]), name


def kept(spark: SparkSession) -> int:
    """How many frames are kept."""
    size: int = spark.sparkContext._jsc.getPersistentRDDs().size()
    return size
