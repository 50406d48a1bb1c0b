"""A plan from Python: what `run_plan` writes, returns and refuses in both places."""

import json
import shutil
from collections.abc import Mapping
from contextlib import closing
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import PLAN_OUTPUT_TABLES
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.plan_options import PlanConfig, SweepOptions
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.spark import InputTables
from rebalance_core.spark.plan.prepare import prepare_sweep
from rebalance_core.spark.tables.quarantine import quarantine
from tests.plans import PLACES, Place, rows_of
from tests.recordings.tables import DATA

INPUT = DATA / "join-leave" / "tables"
SCENARIOS = Path(__file__).parents[2] / "conf/scenarios"


@pytest.fixture(scope="module")
def variants() -> Variants:
    scenarios = read_scenarios([SCENARIOS / "lose-broker.toml"])
    return variants_of(scenarios, read_strategies(["AVG", "STICKY_BALANCED"], []), (0,))


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """Where plans are made."""
    return Place(request.getfixturevalue("spark") if request.param == "spark" else None)


def kept(spark: SparkSession) -> int:
    """How many frames are kept."""
    size: int = spark.sparkContext._jsc.getPersistentRDDs().size()
    return size


def test_a_plan_says_what_it_wrote(place: Place, variants: Variants, tmp_path: Path) -> None:
    output, told = tmp_path / "plan", []

    def begin(rows: Mapping[str, int]) -> None:
        told.append(dict(rows))
        assert not output.exists()

    result = place.plan(INPUT, variants, output, before_writing=begin)
    assert told == [dict(result.input_rows)]
    assert result.input_rows["cluster_events"] > 0
    assert set(result.tables) == {*PLAN_OUTPUT_TABLES, "rejected"}
    for name, table in result.tables.items():
        assert len(rows_of(output, name)) == table.rows
    assert (dict(result.rejected), result.warnings) == ({}, ())
    assert {row["strategy"] for row in result.league} == {"AVG", "STICKY_BALANCED"}
    assert len(result.scenarios) == len(variants)


def test_too_many_bad_rows_are_refused_before_anything_is_written(
    place: Place, variants: Variants, tmp_path: Path
) -> None:
    shutil.copytree(INPUT, tmp_path / "input")
    events = tmp_path / "input" / "cluster_events.jsonl"
    first, *others = events.read_text().splitlines()
    events.write_text("\n".join([json.dumps(json.loads(first) | {"cluster": None}), *others]))
    with pytest.raises(InputRefused, match="1 of 11 rows are bad"):
        place.plan(
            tmp_path / "input",
            variants,
            tmp_path / "plan",
            PlanConfig(bad_rows=BadRowLimits(on_bad_rows="fail")),
            before_writing=lambda rows: pytest.fail("nothing may be written"),
        )
    assert not (tmp_path / "plan").exists()


def test_a_forecast_ends_as_the_plan_would(place: Place, variants: Variants) -> None:
    before = 0 if place.session is None else kept(place.session)
    forecast, warnings = place.forecast(INPUT, variants)
    assert (forecast.refusal, list(forecast.complaints), warnings) == (None, [], ())
    assert forecast.counts["cluster_events"].rows > 0
    assert before == (0 if place.session is None else kept(place.session))


@pytest.mark.spark
def test_a_sweep_releases_what_it_kept(spark: SparkSession, variants: Variants) -> None:
    before = kept(spark)
    inputs = InputTables.read(spark, str(INPUT))
    with (
        closing(quarantine(inputs)) as checked,
        prepare_sweep(checked.tables, variants, SweepOptions(partitions=1)) as sweep,
    ):
        assert sweep.steps().count() > 0
        assert kept(spark) > before
    assert kept(spark) == before
