"""A plan from Python: what `run_plan` writes, returns and refuses, and what it keeps."""

from collections.abc import Mapping
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import PLAN_OUTPUT_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.spark import InputTables
from rebalance_core.spark.plan.prepare import SweepOptions, prepare_sweep
from rebalance_core.spark.plan.run import PlanConfig, plan_forecast, run_plan
from rebalance_core.spark.tables.quarantine import quarantine
from tests.recordings.tables import DATA

SCENARIOS = Path(__file__).parents[2] / "conf/scenarios"


@pytest.fixture(scope="module")
def variants() -> Variants:
    scenarios = read_scenarios([SCENARIOS / "lose-broker.toml"])
    return variants_of(scenarios, read_strategies(["AVG", "STICKY_BALANCED"], []), (0,))


@pytest.fixture(scope="module")
def inputs(spark: SparkSession) -> InputTables:
    return InputTables.read(spark, str(DATA / "join-leave" / "tables"))


def test_a_plan_says_what_it_wrote(
    spark: SparkSession, inputs: InputTables, variants: Variants, tmp_path: Path
) -> None:
    output, told = tmp_path / "plan", []

    def begin(rows: Mapping[str, int]) -> None:
        told.append(dict(rows))
        assert not output.exists()

    result = run_plan(spark, inputs, variants, str(output), before_writing=begin)
    assert told == [dict(result.input_rows)]
    assert result.input_rows["cluster_events"] > 0
    assert set(result.tables) == {*PLAN_OUTPUT_TABLES, "rejected"}
    for name, table in result.tables.items():
        assert spark.read.parquet(str(output / name)).count() == table.rows
    assert (dict(result.rejected), result.warnings) == ({}, ())
    assert {row["strategy"] for row in result.league} == {"AVG", "STICKY_BALANCED"}
    assert len(result.scenarios) == len(variants)


def test_too_many_bad_rows_are_refused_before_anything_is_written(
    inputs: InputTables, variants: Variants, spark: SparkSession, tmp_path: Path
) -> None:
    bad = inputs.cluster_events.selectExpr("* EXCEPT (cluster)", "CAST(NULL AS STRING) AS cluster")
    config = PlanConfig(bad_rows=BadRowLimits(on_bad_rows="fail"))
    columns = inputs.cluster_events.columns
    with pytest.raises(InputRefused, match="rows are bad"):
        run_plan(
            spark,
            replace(inputs, cluster_events=bad.select(columns)),
            variants,
            str(tmp_path / "plan"),
            config,
            before_writing=lambda rows: pytest.fail("nothing may be written"),
        )
    assert not (tmp_path / "plan").exists()


def test_a_sweep_releases_what_it_kept(
    spark: SparkSession, inputs: InputTables, variants: Variants
) -> None:
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = kept().size()
    options = SweepOptions(partitions=1)
    with (
        closing(quarantine(inputs)) as checked,
        prepare_sweep(checked.tables, variants, options) as sweep,
    ):
        assert sweep.steps().count() > 0
        assert kept().size() > before
    assert kept().size() == before


def test_a_forecast_ends_as_the_plan_would_and_keeps_nothing(
    spark: SparkSession, inputs: InputTables, variants: Variants
) -> None:
    kept = spark.sparkContext._jsc.getPersistentRDDs
    before = kept().size()
    forecast, warnings = plan_forecast(spark, inputs, variants)
    assert (forecast.refusal, forecast.complaints, warnings) == (None, [], ())
    assert forecast.counts["cluster_events"].rows > 0
    assert kept().size() == before
