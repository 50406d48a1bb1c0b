"""A collection audited in this process, nothing written."""

from functools import cache
from pathlib import Path

from rebalance_core.checks.row_checks import check_tables
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.ingest.collection.assumptions import Assumptions
from rebalance_core.ingest.collection.collection import open_collection
from rebalance_core.process.audit.unwritten import audit_unwritten, tables_of_collection
from rebalance_core.process.simulate import simulate
from tests.recordings.tables import DATA, Tables


@cache
def audited(recording: str) -> Tables:
    """``findings``, ``group_verdicts`` and ``epochs`` of a recording's collection."""
    return audit_folder(DATA / recording / "collection")


def audit_folder(folder: Path) -> Tables:
    """The same of any collection."""
    inputs, observed = tables_of_collection(open_collection(folder), Assumptions())
    result, _ = audit_unwritten(check_tables(inputs), SimulationOptions(), observed)
    epochs = simulate(inputs).epochs
    return {
        "findings": result.findings,
        "group_verdicts": result.verdicts,
        "epochs": epochs.to_pylist(),
    }
