"""A plan with POP beside strategies is the same in a process and on Spark."""

import json
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.variants import read_strategies, variants_of
from tests.plans import Place, differing, rows_of
from tests.recordings.tables import derived_tables

pytestmark = pytest.mark.spark

ONE_MORE = "POP(share_queue_num=1)"
TABLES = ("plan_steps", "plan_summary", "plan_league", "plan_ownership")
SCENARIO = Path(__file__).parents[2] / "conf/scenarios/add-consumers.toml"


def orderly_first(rows: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The settings of groups, of which the first by name cannot pop."""
    first = min(row["consumer_group"] for row in rows)
    return [row | ({"ordered": True} if row["consumer_group"] == first else {}) for row in rows]


def test_both_places_make_the_same_tables(spark: SparkSession, tmp_path: Path) -> None:
    tables = derived_tables("pathologies")
    tables |= {"consumer_groups": orderly_first(tables["consumer_groups"])}
    for name in INPUT_TABLES:
        (tmp_path / f"{name}.jsonl").write_text("\n".join(map(json.dumps, tables[name])))
    strategies = read_strategies(["AVG", ONE_MORE], [])
    variants = variants_of(read_scenarios([SCENARIO]), strategies, (0,))
    made = {}
    for name, place in (("process", Place()), ("spark", Place(spark))):
        result = place.plan(tmp_path, variants, tmp_path / name)
        made[name] = {table: rows_of(tmp_path / name, table) for table in TABLES}
        made[name]["scenarios"] = result.scenarios
    for table in TABLES:
        assert differing(made["process"][table], made["spark"][table]) == []
    [league] = [row for row in made["spark"]["plan_league"] if row["strategy"] == ONE_MORE]
    assert league["moved"] is None
    assert league["pop_queues"] > 0
    assert league["caveat"].endswith("cannot pop and stay as they are: 2 ORDERLY")

    def told(place: str) -> list[str]:
        rows = [sorted(row.items()) for row in made[place]["scenarios"] if row["shared"]]
        return sorted(map(repr, rows))

    assert told("process") == told("spark") != []
