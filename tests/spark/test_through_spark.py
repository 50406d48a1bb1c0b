"""Where tasks cannot write files themselves, Spark's writer gives the same tables."""

from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.digest import TableDigest
from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.contracts import INGESTED_TABLES, REJECTED
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.propagation import PropagationOptions
from rebalance_core.ingest.collection import open_collection
from rebalance_core.model.errors import OutputExists
from rebalance_core.planning.producer_model import read_model
from rebalance_core.process import producers
from rebalance_core.process.generate import generate_and_write
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.process.propagate import propagate_and_write
from rebalance_core.process.simulate import simulate_and_write
from rebalance_core.producers.model import BOTH_GENERATIONS
from rebalance_core.spark import (
    InputTables,
    task_tables,
)
from rebalance_core.spark.runtime import SparkRuntime
from rebalance_core.spark.sources import read_written
from rebalance_core.synthetic.fleet import FleetPlan
from tests.recordings.tables import DATA
from tests.tree import TREE

TABLES = str(DATA / "join-leave" / "tables")
COLLECTION = DATA / "pop" / "collection"
PLAN = FleetPlan(groups=3, days=1, seed=3)
SEEDS = PropagationOptions(seeds=5, handover_seeds=2)
LIMITS = BadRowLimits()


@pytest.fixture(autouse=True)
def no_task_writes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every folder is one that only Spark reaches."""
    monkeypatch.setattr(task_tables, "is_direct", lambda folder: False)


@pytest.mark.parametrize(
    "engine", ["vectorized", pytest.param("reference", marks=pytest.mark.slow)]
)
def test_simulate(spark: SparkSession, tmp_path: Path, engine: str) -> None:
    """By default of the kernels; `test_simulate` holds what the replay gives on Spark."""
    options = SimulationOptions(engine=engine)
    inputs = InputTables.read(spark, TABLES)
    ours = simulate_and_write(inputs, f"{tmp_path}/ours", options, runtime=SparkRuntime(spark))
    here = simulate_and_write(read_input_tables(TABLES), tmp_path / "here", options)
    assert ours == here


def test_a_folder_that_exists_is_not_touched(spark: SparkSession, tmp_path: Path) -> None:
    rows = REJECTED.arrow_schema().empty_table()
    with task_tables.task_tables(spark, str(tmp_path), [REJECTED.name]) as tables:
        tables.add(REJECTED.name, rows)
        assert tables.finish() == {REJECTED.name: TableDigest(REJECTED).result}
        before = sorted(tmp_path.rglob("*"))
        with pytest.raises(OutputExists, match="rejected exists already"):
            tables.add(REJECTED.name, rows)
    assert sorted(tmp_path.rglob("*")) == before
    assert read_written(spark, str(tmp_path), REJECTED.name).count() == 0


def test_ingest(spark: SparkSession, tmp_path: Path) -> None:
    collection = open_collection(COLLECTION)
    ours = ingest_and_write(collection, f"{tmp_path}/ours", runtime=SparkRuntime(spark))
    assert ours == ingest_and_write(collection, tmp_path / "here")
    for name in INGESTED_TABLES:
        rows = read_written(spark, f"{tmp_path}/ours", name).count()
        assert rows == ours.tables[name].rows, name


def test_generate(spark: SparkSession, tmp_path: Path) -> None:
    ours = generate_and_write(PLAN, f"{tmp_path}/ours", runtime=SparkRuntime(spark))
    assert ours == generate_and_write(PLAN, tmp_path / "here")


def test_propagate(spark: SparkSession, tmp_path: Path) -> None:
    inputs = InputTables.read(spark, TABLES)
    ours = propagate_and_write(
        inputs, f"{tmp_path}/ours", SEEDS, LIMITS, runtime=SparkRuntime(spark)
    )
    here = propagate_and_write(read_input_tables(TABLES), tmp_path / "here", SEEDS, LIMITS)
    assert ours == here


@pytest.mark.parametrize("group", [None, "orders-*"])
def test_propagate_groups_that_share_client_instances(
    spark: SparkSession, tmp_path: Path, group: str | None
) -> None:
    collection = open_collection(DATA / "shared-later" / "collection")
    ingest_and_write(collection, tmp_path / "in")
    tables, options = str(tmp_path / "in"), replace(SEEDS, group=group)
    inputs = InputTables.read(spark, tables)
    ours = propagate_and_write(
        inputs, f"{tmp_path}/ours", options, LIMITS, partitions=3, runtime=SparkRuntime(spark)
    )
    here = propagate_and_write(read_input_tables(tables), tmp_path / "here", options, LIMITS)
    assert ours == here
    assert ours.facts["groups"] == (2 if group is None else 1)


def test_producers(spark: SparkSession, tmp_path: Path) -> None:
    given = read_model(TREE / "rebalance_core/bundled/producers/brown-out.toml")
    few = tuple(replace(group, clients=5) for group in given.groups)
    model = replace(given, groups=few)
    ours = producers.simulate_and_write(
        model, BOTH_GENERATIONS, f"{tmp_path}/ours", runtime=SparkRuntime(spark)
    )
    here = producers.simulate_and_write(model, BOTH_GENERATIONS, tmp_path / "here")
    assert ours.tables == here.tables
