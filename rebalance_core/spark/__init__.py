"""Spark: tables read and checked, engines, ingest, audit and plan run on a cluster, tables written.

May import every package but `cli`, and pyspark; elsewhere only `cli/run/session.py` imports
pyspark. Each job is a function of a session and plain options that neither prints nor exits:
`simulate_and_write`, `ingest_and_write`, `generate_and_write`, `run_plan`. Begin with
`engine.simulate`.
"""

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.engine.options import SimulationOptions
from rebalance_core.spark.catalogs import Published, publish
from rebalance_core.spark.ledger import Ledger, simulate
from rebalance_core.spark.read_tables import InputTables

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
