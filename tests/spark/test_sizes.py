"""Sizes on Spark are those of a process."""

from pathlib import Path

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.planning.group_sizes import Demand
from rebalance_core.process.sizes import ROWS, write_sizes
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.runtime import SparkRuntime
from tests.recordings.tables import DATA

NIGHTLY = DATA / "nightly" / "tables"
ASKED = Demand(service_ms=5.0), BadRowLimits(), PropagationOptions(seeds=1)


def test_both_places_write_the_same(spark: SparkSession, tmp_path: Path) -> None:
    here = write_sizes(read_input_tables(str(NIGHTLY)), tmp_path / "process", *ASKED)
    there = write_sizes(
        InputTables.read(spark, str(NIGHTLY)),
        str(tmp_path / "spark"),
        *ASKED,
        runtime=SparkRuntime(spark),
    )
    assert there.tables == here.tables
    assert there.facts[ROWS] == here.facts[ROWS]
    assert len(here.facts[ROWS]) > 5
