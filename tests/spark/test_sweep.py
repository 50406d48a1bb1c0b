"""A sweep against simulations of the edited tables one by one, by the plain replay."""

from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import DataFrame, SparkSession

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.scenario.scenario import edit_history
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.replay.group_replay import replay_group
from rebalance_core.spark import InputTables
from rebalance_core.spark.plan.league import plan_league
from rebalance_core.spark.plan.plan_tables import plan_summary
from rebalance_core.spark.plan.prepare import PreparedSweep, SweepOptions, prepare_sweep
from rebalance_core.spark.tables.quarantine import quarantine
from tests.recordings.tables import DATA, derived_tables, histories, strategy_for

SCENARIOS = Path(__file__).parents[2] / "conf/scenarios"
TEXTS = ("AVG", "CONSISTENT_HASH(virtual_nodes=10)", "STICKY_BALANCED")
FIGURES = ("members", "queues", "moved", "voluntary_moves", "minimum_moves", "stickiness",
           "max_queues", "min_queues", "peak_ratio", "idle_members")  # fmt: skip
OF_EPOCH = ("causes", "status", "orphaned", "shared")

Row = dict[str, Any]


@pytest.fixture(scope="module")
def variants() -> Variants:
    mistakes: list[str] = []
    files = [SCENARIOS / f"{name}.toml" for name in ("add-consumers", "lose-broker")]
    found = variants_of(read_scenarios(files), read_strategies(TEXTS, mistakes), (3,))
    assert mistakes == []
    return found


@pytest.fixture(scope="module")
def tables(spark: SparkSession) -> dict[str, DataFrame]:
    read = InputTables.read(spark, str(DATA / "join-leave" / "tables"))
    return dict(quarantine(read).tables)


@pytest.fixture(scope="module")
def sweep(tables: dict[str, DataFrame], variants: Variants) -> PreparedSweep:
    return prepare_sweep(tables, variants, SweepOptions(partitions=2))


@pytest.fixture(scope="module")
def steps(sweep: PreparedSweep) -> DataFrame:
    return sweep.steps().persist()


def collected(frame: DataFrame) -> list[Row]:
    return [row.asDict() for row in frame.collect()]


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


def test_a_sweep_gives_the_steps_of_separate_simulations(
    steps: DataFrame, variants: Variants
) -> None:
    names = ("scenario", "strategy", "change_ms", "epoch", *FIGURES, *OF_EPOCH)
    rows = collected(steps.where("of_rocketmq").select(*names))
    expected = expected_steps(variants)
    assert len(rows) == len(expected) > 40
    assert by_text(rows) == by_text(expected)


def test_sticky_balanced_moves_the_minimum_and_is_labelled(steps: DataFrame) -> None:
    rows = collected(steps.where("strategy = 'STICKY_BALANCED'"))
    assert {row["scenario"] for row in rows} == {"baseline", "add-consumers", "lose-broker"}
    for row in rows:
        assert (row["of_rocketmq"], row["seed"]) == (False, 3)
        assert row["moved"] == row["minimum_moves"]
        assert row["max_queues"] - row["min_queues"] <= 1


def test_the_summary_compares_the_state_before_the_first_edit_with_the_end(
    sweep: PreparedSweep, steps: DataFrame
) -> None:
    summary = plan_summary(steps, sweep.starts(), None).persist()
    found = {(row["scenario"], row["strategy"]): row for row in collected(summary)}
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
    total = {row["strategy"]: row for row in collected(plan_league(steps, summary))}
    assert set(total) == set(TEXTS)
    for text, row in total.items():
        own = [one for (_, strategy), one in found.items() if strategy == text]
        assert row["moved"] == sum(one["moved"] for one in own)
        assert (row["groups"], row["caveat"], row["orphaned"]) == (1, None, 0)
    assert total["STICKY_BALANCED"]["amplification"] == 1.0


def test_ownership_has_every_queue_before_and_after(sweep: PreparedSweep) -> None:
    rows = collected(sweep.ownership())
    asked = [r for r in rows if (r["scenario"], r["strategy"]) == ("add-consumers", TEXTS[2])]
    orders = [row for row in asked if row["topic"] == "OrderTopic"]
    assert len(orders) == 8
    assert {len(row[f"owners_{side}"]) for row in orders for side in ("before", "after")} == {1}
    assert len({row["owners_before"][0] for row in orders}) == 3
    assert len({row["owners_after"][0] for row in orders}) == 5


def test_any_order_and_partitioning_gives_the_same_tables(
    tables: dict[str, DataFrame], variants: Variants, steps: DataFrame
) -> None:
    mixed = {
        name: frame.orderBy(*INPUT_TABLES[name].key, ascending=False).repartition(3)
        for name, frame in tables.items()
    }
    again = prepare_sweep(mixed, variants, SweepOptions(partitions=3)).steps()
    assert by_text(collected(again)) == by_text(collected(steps))
