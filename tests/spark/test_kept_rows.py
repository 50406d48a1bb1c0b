"""What services keep while they work is released: in a notebook nothing stays behind."""

import json
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.engine.options import LedgerConfig, SimulationOptions
from rebalance_core.ingest.in_process import ingest_collection
from rebalance_core.model.errors import InputRefused
from rebalance_core.process.simulate import simulate_and_write
from rebalance_core.spark import InputTables, simulate
from rebalance_core.spark.runtime import SparkRuntime
from tests.recordings.tables import DATA

COLLECTION = DATA / "pop" / "collection"


def kept(spark: SparkSession) -> set[int]:
    """Ids of the RDDs that the session keeps."""
    jsc = spark.sparkContext._jsc
    assert jsc is not None
    return set(jsc.getPersistentRDDs())


@pytest.fixture
def inputs(spark: SparkSession, tmp_path: Path) -> InputTables:
    """Small tables of their own: what is kept goes by the plan of a frame."""
    tables = ingest_collection(COLLECTION).tables
    for name in ("cluster_events", "consumer_groups"):
        text = "\n".join(map(json.dumps, tables[name]))
        (tmp_path / f"{name}.jsonl").write_text(text + "\n")
    return InputTables.read(spark, str(tmp_path))


@pytest.mark.parametrize("engine", ["vectorized", "reference"])
def test_a_closed_ledger_keeps_nothing(
    spark: SparkSession, inputs: InputTables, engine: str
) -> None:
    before = kept(spark)
    with simulate(inputs, SimulationOptions(engine=engine)) as ledger:
        epochs = ledger.epochs.count()
        assert kept(spark) > before
    assert kept(spark) == before
    assert ledger.epochs.count() == epochs > 0
    assert kept(spark) == before


def test_a_refused_input_is_not_kept(
    spark: SparkSession, inputs: InputTables, tmp_path: Path
) -> None:
    before = kept(spark)
    none = inputs.cluster_events.where("event_type = 'NONE'")
    config = LedgerConfig(bad_rows=BadRowLimits("fail"))
    with pytest.raises(InputRefused, match="has no row"):
        simulate_and_write(
            InputTables(none),
            str(tmp_path / "ledger"),
            config=config,
            runtime=SparkRuntime(spark),
        )
    assert kept(spark) == before
    assert not (tmp_path / "ledger").exists()
