"""Synthetic fleets on Spark: the rows of the entities, however they are spread, and no bad one."""

from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as sf

from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.spark import simulate
from rebalance_core.spark.generate import generate
from rebalance_core.spark.tables.write import row_hash
from rebalance_core.synthetic.fleet import FleetPlan

PLAN = FleetPlan(40, 1, 11, groups_per_cluster=20)


def prints(frames: dict[str, DataFrame]) -> dict[str, tuple[int, int]]:
    """Rows and a hash of each table that the order of rows does not change."""
    found = {}
    for name, frame in frames.items():
        hashes = frame.select(row_hash(INPUT_TABLES[name]).cast("DECIMAL(20, 0)").alias("hash"))
        row: Any = hashes.agg(sf.count("hash"), sf.sum("hash")).collect()[0]
        found[name] = (row[0], int(row[1]))
    return found


def test_partitions_change_nothing_and_the_seed_everything(spark: SparkSession) -> None:
    one = prints(generate(spark, PLAN, partitions=1).tables())
    assert one == prints(generate(spark, PLAN, partitions=7).tables())
    other = FleetPlan(40, 1, 12, groups_per_cluster=20)
    changed = prints(generate(spark, other, partitions=2).tables())
    assert all(changed[name] != one[name] for name in INPUT_TABLES)


def test_columns_and_types_are_the_contract_s(spark: SparkSession) -> None:
    for name, frame in generate(spark, PLAN).tables().items():
        expected = [(c.name, c.type.lower()) for c in INPUT_TABLES[name].columns]
        assert frame.dtypes == expected


def test_a_simulation_reads_every_row_and_rejects_none(spark: SparkSession) -> None:
    ledger = simulate(generate(spark, PLAN))
    assert ledger.rejected.collect() == []
    groups = ledger.epochs.select("cluster", "consumer_group").distinct().count()
    assert groups == PLAN.groups
    statuses = {
        row["status"]: row["count"] for row in ledger.epochs.groupBy("status").count().collect()
    }
    assert statuses["SETTLED"] > 0.9 * sum(statuses.values())
    starts = ledger.pull_starts.groupBy("status").count().collect()
    known = {row["status"]: row["count"] for row in starts}
    assert known["OK"] > 0.9 * sum(known.values())
