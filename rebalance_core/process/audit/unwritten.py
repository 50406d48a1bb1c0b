"""An audit of which nothing is written: of a collection or of tables, straight to its findings."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables, input_tables_of
from rebalance_core.checks.row_checks import Checked
from rebalance_core.contracts import INGESTED_TABLES, INPUT_TABLES, REJECTED
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.engine.options import SimulationOptions, engine_options
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import Collection
from rebalance_core.ingest.in_process import read_collection
from rebalance_core.process.audit.audit_result import AuditResult
from rebalance_core.process.audit.cluster_rows import read_cluster_tables
from rebalance_core.process.audit.judges import judges_of
from rebalance_core.process.audit.judging_pass import JudgedGroups, JudgingPass
from rebalance_core.process.observed import READ_TABLES, Observed, observed


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
    checked: Checked,
    simulation: SimulationOptions,
    observations: Observed,
    *,
    progress: Callable[[int, int], object] | None = None,
    **options: Any,
) -> tuple[AuditResult, list[pa.RecordBatch]]:
    """What is found, and the rows that the replay rejects.

    Args:
        checked: the input.
        simulation: how it is simulated; its engine, and what it leaves out, do not count.
        observations: what it is compared with.
        progress: told how many groups are judged, of how many.
        options: those of `judges_of`.
    """
    tables = {**checked.tables, **observations.tables}
    judges = judges_of(read_cluster_tables(tables), **options)
    judged = JudgedGroups()
    judging = JudgingPass(judges.groups, engine_options(checked.tables, simulation))
    made = judging.rows(tables, judged, progress)
    rejected = [rows for name, rows in made if name == REJECTED.name]
    return judges.result(judged.rows()), rejected
