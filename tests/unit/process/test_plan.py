"""A plan of odd inputs, and in parts of any size."""

from dataclasses import replace
from pathlib import Path

import pyarrow as pa
import pytest

from rebalance_core.checks.input_tables import ArrowTables, read_input_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import PLAN_OUTPUT_TABLES
from rebalance_core.contracts.planning import LOSSES
from rebalance_core.model import events
from rebalance_core.model.errors import InputRefused, OutputExists
from rebalance_core.planning.expectations import Expectation
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from rebalance_core.process.plan import plan_forecast, run_plan
from rebalance_core.process.plan_pass import swept_groups
from tests.plans import differing, rows_of
from tests.recordings.tables import DATA
from tests.tree import TREE


@pytest.fixture(scope="module")
def inputs() -> ArrowTables:
    return read_input_tables(str(DATA / "nightly" / "tables"))


@pytest.fixture(scope="module")
def variants() -> Variants:
    scenarios = read_scenarios([TREE / "rebalance_core/bundled/scenarios/add-consumers.toml"])
    strategies = read_strategies(["AVG", "STICKY_BALANCED"], [])
    return variants_of(scenarios, strategies, (0,))


def without(inputs: ArrowTables, *types: str) -> ArrowTables:
    table = inputs.tables["cluster_events"]
    kept = [kind not in types for kind in table["event_type"].to_pylist()]
    tables = {**inputs.tables, "cluster_events": table.filter(pa.array(kept))}
    return replace(inputs, tables=tables)


def test_parts_of_any_size_give_the_same_tables(
    inputs: ArrowTables,
    variants: Variants,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    whole, progress_rows = tmp_path / "whole", []
    baseline, growing = variants.histories
    assert growing.scenario is not None
    expecting = replace(growing.scenario, expectations=(Expectation(1, "", moved=5),))
    variants = replace(variants, histories=(baseline, replace(growing, scenario=expecting)))
    config = PlanConfig(holder_futures=2)
    result = run_plan(inputs, variants, whole, config)
    monkeypatch.setattr(
        "rebalance_core.process.plan_pass.swept_groups",
        lambda *given, **named: swept_groups(*given, **named, rows_per_chunk=1),
    )
    parts = run_plan(
        inputs,
        variants,
        tmp_path / "parts",
        config,
        progress=lambda *done: progress_rows.append(done),
    )
    for name in PLAN_OUTPUT_TABLES:
        found, expected = rows_of(tmp_path / "parts", name), rows_of(whole, name)
        assert (len(found) > 0) == (name != LOSSES.name)  # nothing is lost
        assert differing(found, expected) == [], name
    assert parts.rejected == result.rejected
    groups = 11
    done = {tuple(counts) for *counts, group in progress_rows if group is None}
    assert sorted(done) == [(number, 2 * groups) for number in range(1, 2 * groups + 1)]
    named = [(number, group) for number, _, group in progress_rows if group is not None]
    assert [number for number, _ in named] == list(range(2 * groups))
    assert len({group for _, group in named}) == groups


def test_the_groups_that_have_owners(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    run_plan(inputs, variants, tmp_path / "first", PlanConfig(ownership_groups=2))
    run_plan(inputs, variants, tmp_path / "chosen", PlanConfig(group="*", ownership_groups=2))
    named = {
        folder: {row["consumer_group"] for row in rows_of(tmp_path / folder, "plan_ownership")}
        for folder in ("first", "chosen")
    }
    assert sorted(named["chosen"])[:2] == sorted(named["first"])
    assert len(named["chosen"]) > 2


def test_a_pattern_that_fits_no_group_is_refused(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    with pytest.raises(InputRefused, match=r"--group notifi matches no group .* mean notify"):
        run_plan(inputs, variants, tmp_path / "plan", PlanConfig(group="notifi"))


def test_without_a_group_the_tables_are_empty(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    given = without(inputs, *events.GROUP_EVENTS)
    result = run_plan(given, variants, tmp_path / "plan")
    assert {name: table.rows for name, table in result.tables.items()} == dict.fromkeys(
        (*PLAN_OUTPUT_TABLES, "rejected"), 0
    )
    assert (result.scenarios, result.league) == ([], [])
    assert [rows_of(tmp_path / "plan", name) for name in PLAN_OUTPUT_TABLES] == [
        [] for _ in PLAN_OUTPUT_TABLES
    ]


def test_rows_that_are_all_bad_plan_nothing(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    table = inputs.tables["cluster_events"]
    place = table.column_names.index("event_type")
    bad = table.set_column(place, "event_type", pa.array(["?"] * len(table)))
    given = replace(inputs, tables={**inputs.tables, "cluster_events": bad})
    with pytest.raises(InputRefused, match="42 of 42 rows are bad"):
        run_plan(given, variants, tmp_path / "plan")
    assert not (tmp_path / "plan").exists()
    config = PlanConfig(bad_rows=BadRowLimits(max_bad_share=1.0))
    result = run_plan(given, variants, tmp_path / "plan", config)
    assert result.rejected == {"UNKNOWN_EVENT_TYPE": 42}
    assert result.tables["rejected"].rows == 42
    assert result.tables["plan_steps"].rows == 0
    forecast, warnings = plan_forecast(given, variants, config)
    assert (forecast.refusal, forecast.counts["cluster_events"].bad) == (None, 42)
    assert len(warnings) == 1  # the pattern * matches none of 0 groups


def test_a_table_that_is_there_stays(
    inputs: ArrowTables, variants: Variants, tmp_path: Path
) -> None:
    (tmp_path / "plan_steps").mkdir()
    with pytest.raises(OutputExists, match="plan_steps"):
        run_plan(inputs, variants, tmp_path)
    assert list((tmp_path / "plan_steps").iterdir()) == []
