"""A plan from Python: what `run_plan` refuses in both places, and its forecast."""

import json
import shutil
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.planning.scenario.file import parse_scenario, read_scenarios
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.variants import Variants, read_strategies, variants_of
from tests.plans import PLACES, Place, differing, rows_of
from tests.recordings.tables import DATA
from tests.tree import TREE
from tests.unit.planning.scenario.groups import join, numbered, topic

INPUT = DATA / "join-leave" / "tables"
SCENARIOS = TREE / "rebalance_core/bundled/scenarios"
START_MS = 1_795_000_000_000


@pytest.fixture(scope="module")
def variants() -> Variants:
    scenarios = read_scenarios([SCENARIOS / "lose-broker.toml"])
    return variants_of(scenarios, read_strategies(["AVG", "STICKY_BALANCED"], []), (0,))


@pytest.fixture(scope="module", params=PLACES)
def place(request: pytest.FixtureRequest) -> Place:
    """Where plans are made."""
    return Place(request.getfixturevalue("spark") if request.param == "spark" else None)


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


@pytest.mark.unit
def test_a_forecast_ends_as_the_plan_would(variants: Variants) -> None:
    """On Spark: tests/jobs/test_plan_job.py."""
    forecast, warnings = Place().forecast(INPUT, variants)
    assert (forecast.refusal, list(forecast.complaints), warnings) == (None, [], ())
    assert forecast.counts["cluster_events"].rows > 0


@pytest.mark.spark
def test_each_member_is_lost_in_both_places(spark: SparkSession, tmp_path: Path) -> None:
    edit = '[[edit]]\nkind = "remove_consumers"\nat = "+10m"\ngroup = "*"\neach = "member"\n'
    mistakes: list[str] = []
    scenario = parse_scenario(f'name = "any"\ndescription = "d"\n{edit}', "s.toml", mistakes)
    variants = variants_of([scenario], read_strategies([], mistakes), (0,))
    assert mistakes == []
    config = PlanConfig(futures=2)
    here = Place().plan(INPUT, variants, tmp_path / "process", config)
    there = Place(spark).plan(INPUT, variants, tmp_path / "spark", config)
    assert differing(here.losses, there.losses) == []
    assert len(here.losses) == here.losses[0]["members"] + 1
    assert [history.name for history in here.variants.histories] == [
        history.name for history in there.variants.histories
    ]
    rows = [rows_of(tmp_path / folder, "losses") for folder in ("process", "spark")]
    assert differing(*rows) == []


@pytest.fixture
def proxied(tmp_path: Path) -> Path:
    """A topic, and a member at each of two proxies."""
    of_proxies = [f"proxy/p{number}/broker.log:1" for number in (1, 2)]
    members = [
        join(START_MS + 1, number, rebalance_mode="PROXY", source=source)
        for number, source in enumerate(of_proxies, 1)
    ]
    (tmp_path / "input").mkdir()
    lines = (json.dumps(row) for row in numbered([topic(START_MS, 4), *members]))
    (tmp_path / "input" / "cluster_events.jsonl").write_text("\n".join(lines))
    return tmp_path / "input"


def restart_of(proxy: str) -> Variants:
    edit = f'[[edit]]\nkind = "restart_proxies"\nat = "+10m"\nproxy = "{proxy}"\n'
    mistakes: list[str] = []
    scenario = parse_scenario(f'name = "any"\ndescription = "d"\n{edit}', "s.toml", mistakes)
    assert mistakes == []
    return variants_of([scenario], read_strategies([], mistakes), (0,))


def test_proxies_restart(place: Place, proxied: Path, tmp_path: Path) -> None:
    place.plan(proxied, restart_of("p1"), tmp_path / "plan", PlanConfig(futures=0))
    names = ("scenario", "rebalances", "proxy_clients", "proxy_wait_s", "proxy_repeat_s")
    rows = rows_of(tmp_path / "plan", "plan_summary")
    assert sorted(tuple(row[name] for name in names) for row in rows) == [
        ("any", 2, 1, 11.0, 40.0),
        ("baseline", 0, None, None, None),
    ]
    with pytest.raises(UsageError, match='proxy = "p3" matches none of 2 proxies'):
        place.plan(proxied, restart_of("p3"), tmp_path / "other", PlanConfig(futures=0))
    assert not (tmp_path / "other").exists()
