"""An audit of which nothing is written: of a collection or of tables, straight to its findings."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Self

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables, input_tables_of
from rebalance_core.checks.row_checks import Checked
from rebalance_core.contracts import INGESTED_TABLES, INPUT_TABLES, REJECTED, SIMULATED_TABLES
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
    """What is found.

    Args:
        checked: the input.
        simulation: how it is simulated.
        observations: what it is compared with.
        options: those of `audit_tables`.
    """
    with LedgerMeanwhile() as ledger:
        ledger.simulate(checked, simulation)
        return ledger.audit(checked, observations, **options)


class LedgerMeanwhile:
    """A ledger in a folder of its own, as it may be large; a context manager that removes it."""

    def __init__(self) -> None:
        self._folder = TemporaryDirectory(prefix="rebalance-audit-")

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *error: object) -> None:
        self._folder.cleanup()

    def simulate(
        self,
        checked: Checked,
        simulation: SimulationOptions,
        progress: Callable[[int, int], object] | None = None,
    ) -> list[pa.RecordBatch]:
        """Make the ledger, once; the rows that the replay rejects.

        Args:
            checked: the input.
            simulation: how it is simulated.
            progress: told how many groups are done, of how many.
        """
        rejected = []
        with TableWriters(Path(self._folder.name), tuple(SIMULATED_TABLES)) as writers:
            for name, rows in ledger_rows(checked, simulation, progress, names_coded=True):
                if name in SIMULATED_TABLES:
                    writers.write(name, rows)
                elif name == REJECTED.name:
                    rejected.append(rows)
        return rejected[len(checked.rejected.to_batches()) :]

    def audit(self, checked: Checked, observations: Observed, **options: Any) -> AuditResult:
        """What is found by the ledger.

        Args:
            checked: the input it was made of.
            observations: what it is compared with.
            options: those of `audit_tables`.
        """
        tables = {**checked.tables, **observations.tables}
        return audit_tables(tables, LedgerFiles(Path(self._folder.name)), **options)
