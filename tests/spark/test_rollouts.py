"""A search for a rollout on Spark writes the rows that a process writes."""

from dataclasses import replace
from pathlib import Path

import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.model.errors import InputRefused
from rebalance_core.planning.expectations import Expectation
from rebalance_core.planning.rollout import choice
from rebalance_core.planning.rollout.search import Search
from rebalance_core.planning.scenario.pods import Start
from rebalance_core.process.rollouts import run_search
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.runtime import SparkRuntime
from tests.tree import TREE

STEADY = TREE / "rebalance_core/bundled/demo/steady/tables"
EXPECTED = Expectation(1, "", percentile=99, no_owner_s=1.0, read_again=1e9)
SEARCH = Search(
    "restart",
    "*",
    surge=(1, "50%"),
    unavailable=(0,),
    pause=(0,),
    start=Start(15_000, 1_000),
    expectations=(EXPECTED,),
)


def test_both_places_write_the_same(
    spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(choice, "MOST_FUTURES", 100)
    here = run_search(read_input_tables(str(STEADY)), SEARCH, tmp_path / "process")
    there = run_search(
        InputTables.read(spark, str(STEADY)),
        SEARCH,
        str(tmp_path / "spark"),
        runtime=SparkRuntime(spark),
    )
    assert there.tables == here.tables
    assert here.tables["rollout_plans"].rows == 3 * 3
    assert here.tables["handovers"].rows > 0
    assert here.tables["expectations"].rows == 2 * 2
    searched = [each.facts["decided"][0] for each in (here, there)]
    assert searched[0].chosen == searched[1].chosen
    assert searched[0].rows == searched[1].rows


def test_both_places_decide_for_each_group_alike(spark: SparkSession, tmp_path: Path) -> None:
    search = replace(SEARCH, decide="group", expectations=())
    here = run_search(read_input_tables(str(STEADY)), search, tmp_path / "process")
    there = run_search(
        InputTables.read(spark, str(STEADY)),
        search,
        str(tmp_path / "spark"),
        runtime=SparkRuntime(spark),
    )
    assert there.tables == here.tables
    assert here.tables["rollout_decisions"].rows == 2


def test_a_change_that_names_no_member_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    no_group = replace(SEARCH, groups="no_group")
    with pytest.raises(InputRefused, match="no_group matches no group"):
        run_search(
            InputTables.read(spark, str(STEADY)),
            no_group,
            str(tmp_path / "spark"),
            runtime=SparkRuntime(spark),
        )
