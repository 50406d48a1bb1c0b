"""Spark: tables read and checked, engines, ingest, audit and plan run on a cluster, tables written;
RocketMQ's rules as `functions` of columns.

May import every package but `cli`, and pyspark, which is imported nowhere else. Each job is a
function of a session and plain options that neither prints nor exits: `simulate_and_write`,
`ingest_and_write`, `generate_and_write`, `run_plan`. Begin with
`ledger.simulate`.
"""

from rebalance_core.spark.older_sparks import refuse_too_old

refuse_too_old()  # first: one that is too old may fail while it is imported

from pyspark.sql import DataFrame, SparkSession  # noqa: E402

from rebalance_core.engine.options import SimulationOptions  # noqa: E402
from rebalance_core.spark.catalogs import Published, publish  # noqa: E402
from rebalance_core.spark.ledger import Ledger, simulate  # noqa: E402
from rebalance_core.spark.read_tables import InputTables  # noqa: E402

__all__ = [
    "DataFrame",
    "InputTables",
    "Ledger",
    "Published",
    "SimulationOptions",
    "SparkSession",
    "publish",
    "simulate",
]
