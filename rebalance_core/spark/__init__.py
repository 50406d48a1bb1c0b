"""The distributed side: read, check, fan out, replay, write. Home of pyspark."""

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.spark.engine.ledger import Ledger
from rebalance_core.spark.engine.simulate import SimulationOptions, simulate
from rebalance_core.spark.tables.read import InputTables

__all__ = ["DataFrame", "InputTables", "Ledger", "SimulationOptions", "SparkSession", "simulate"]
