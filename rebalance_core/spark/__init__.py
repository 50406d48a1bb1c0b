"""The distributed side: read, check, fan out, replay, write. Home of pyspark."""

from rebalance_core.spark.ledger import Ledger
from rebalance_core.spark.read import InputTables
from rebalance_core.spark.simulate import SimulationOptions, simulate

__all__ = ["InputTables", "Ledger", "SimulationOptions", "simulate"]
