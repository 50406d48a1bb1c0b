"""An audit of which nothing is written: of a collection or of tables, straight to its findings."""

from __future__ import annotations

from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables, input_tables_of
from rebalance_core.checks.row_checks import Checked
from rebalance_core.contracts import INGESTED_TABLES, INPUT_TABLES, SIMULATED_TABLES
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.process.audit.audit import AuditResult, audit_tables
from rebalance_core.process.observed import READ_TABLES, Observed, observed
from rebalance_core.process.simulate import ledger_rows
from rebalance_core.process.written_tables import LedgerFiles


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
) -> AuditResult:
    """What is found; the ledger is kept in a folder meanwhile, as it may be large.

    Args:
        checked: the input.
        simulation: how it is simulated.
        observations: what it is compared with.
        options: those of `audit_tables`.
    """
    tables = {**checked.tables, **observations.tables}
    with TemporaryDirectory(prefix="rebalance-audit-") as folder:
        place = Path(folder)
        with TableWriters(place, tuple(SIMULATED_TABLES)) as writers:
            for name, rows in ledger_rows(checked, simulation):
                if name in SIMULATED_TABLES:
                    writers.write(name, rows)
        return audit_tables(tables, LedgerFiles(place), **options)
