"""Synthetic fleets on Spark: the rows of the entities, however they are spread."""

from functools import reduce

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.spark.generate import generate
from rebalance_core.spark.tables.write import row_hash
from rebalance_core.synthetic.fleet import FleetPlan

PLAN = FleetPlan(40, 1, 11, groups_per_cluster=20)


def prints(frames: dict[str, DataFrame]) -> dict[str, tuple[int, int]]:
    """Rows and a hash of each table that the order of rows does not change."""
    hashed = [
        frame.select(sf.lit(name).alias("name"), row_hash(INPUT_TABLES[name]).alias("hash"))
        for name, frame in frames.items()
    ]
    total = sf.sum(sf.col("hash").cast("DECIMAL(20, 0)"))
    rows = reduce(DataFrame.union, hashed).groupBy("name").agg(sf.count("hash"), total).collect()
    return {name: (count, int(found)) for name, count, found in rows}


def test_partitions_change_nothing_and_the_seed_everything(spark: SparkSession) -> None:
    one = prints(generate(spark, PLAN, partitions=1).tables())
    assert one == prints(generate(spark, PLAN, partitions=7).tables())
    other = FleetPlan(40, 1, 12, groups_per_cluster=20)
    changed = prints(generate(spark, other, partitions=2).tables())
    assert one.keys() == changed.keys() == INPUT_TABLES.keys()
    assert all(changed[name] != one[name] for name in INPUT_TABLES)


def test_columns_and_types_are_the_contract_s(spark: SparkSession) -> None:
    for name, frame in generate(spark, PLAN).tables().items():
        expected = [(c.name, c.type.lower()) for c in INPUT_TABLES[name].columns]
        assert frame.dtypes == expected
