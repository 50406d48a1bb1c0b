"""Every table once: name, type, null, unit, meaning; everything about tables derives from here."""

from rebalance_core.contracts.inputs import INPUT_TABLES
from rebalance_core.contracts.ledger import LEDGER_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.observed import OBSERVED_TABLES
from rebalance_core.contracts.table import Column, Table

CONTRACT_VERSION = 1
"""Columns are only added; readers accept this version and the one before, and refuse newer ones."""

ALL_TABLES: dict[str, Table] = INPUT_TABLES | LEDGER_TABLES | OBSERVED_TABLES

__all__ = [
    "ALL_TABLES",
    "CONTRACT_VERSION",
    "INPUT_TABLES",
    "LEDGER_TABLES",
    "OBSERVED_TABLES",
    "SIMULATED_TABLES",
    "Column",
    "Table",
]
