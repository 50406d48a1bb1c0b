"""Synthetic fleets on Spark: the rows of the entities, however they are spread."""

from dataclasses import replace

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.checks.digest import TableDigest, TableWritten
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.spark.generate import generate
from rebalance_core.synthetic.fleet import FleetPlan

PLAN = FleetPlan(12, 1, 11, groups_per_cluster=6)


def prints(frames: dict[str, DataFrame]) -> dict[str, TableWritten]:
    """Rows and a digest of each table that the order of rows does not change."""
    digests = {name: TableDigest(INPUT_TABLES[name]) for name in frames}
    for name, frame in frames.items():
        digests[name].add(frame.toArrow())
    return {name: digest.result for name, digest in digests.items()}


def test_partitions_change_nothing_and_the_seed_everything(spark: SparkSession) -> None:
    one = prints(generate(spark, PLAN, partitions=1).tables())
    assert one == prints(generate(spark, PLAN, partitions=7).tables())
    other = replace(PLAN, seed=12)
    changed = prints(generate(spark, other, partitions=2).tables())
    assert one.keys() == changed.keys() == INPUT_TABLES.keys()
    assert all(changed[name] != one[name] for name in INPUT_TABLES)


def test_columns_and_types_are_the_contract_s(spark: SparkSession) -> None:
    for name, frame in generate(spark, PLAN).tables().items():
        expected = [(c.name, c.type.lower()) for c in INPUT_TABLES[name].columns]
        assert frame.dtypes == expected
