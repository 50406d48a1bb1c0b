"""An audit of which nothing is written: of a collection or of tables, straight to its findings."""

from __future__ import annotations

from typing import Any

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables, input_tables_of
from rebalance_core.checks.row_checks import Checked
from rebalance_core.contracts import INGESTED_TABLES, INPUT_TABLES, LEDGER_TABLES
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.process.audit.audit import AuditResult, audit_tables
from rebalance_core.process.observed import READ_TABLES, Observed, observed
from rebalance_core.process.simulate import ledger_rows


def tables_of_collection(
    collection: Collection, assumed: Assumptions
) -> tuple[InputTables, Observed]:
    """What an audit reads, ingested from a collection."""
    ingested = read_collection(collection, assumed).tables
    tables = {
        name: pa.Table.from_batches([batch_of_rows(table, ingested.get(name, []))])
        for name, table in INGESTED_TABLES.items()
    }
    inputs = input_tables_of({name: tables[name] for name in INPUT_TABLES})
    return inputs, observed({name: tables[name] for name in READ_TABLES})


def audit_unwritten(
    checked: Checked, simulation: SimulationOptions, observations: Observed, **options: Any
) -> tuple[AuditResult, dict[str, pa.Table]]:
    """What is found, and the ledger by which it was found.

    Args:
        checked: the input.
        simulation: how it is simulated.
        observations: what it is compared with.
        options: those of `audit_tables`.
    """
    ledger = _ledger(checked, simulation)
    tables = {**checked.tables, **observations.tables, **ledger}
    return audit_tables(tables, **options), ledger


def _ledger(checked: Checked, simulation: SimulationOptions) -> dict[str, pa.Table]:
    batches: dict[str, list[pa.RecordBatch]] = {name: [] for name in LEDGER_TABLES}
    for name, rows in ledger_rows(checked, simulation):
        if name in batches:
            batches[name].append(rows)
    return {
        name: pa.Table.from_batches(found, LEDGER_TABLES[name].arrow_schema())
        for name, found in batches.items()
    }
