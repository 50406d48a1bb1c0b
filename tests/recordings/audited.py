"""A collection audited in this process, nothing written."""

from functools import cache
from pathlib import Path

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.collection_settings import Assumptions
from rebalance_core.process.audit import audit_unwritten, unwritten_inputs
from tests.recordings.tables import DATA, Tables


@cache
def audited(recording: str) -> Tables:
    """``findings`` and ``group_verdicts`` of a recording's collection."""
    return audit_folder(DATA / recording / "collection")


def audit_folder(folder: Path) -> Tables:
    """The same of any collection."""
    inputs = unwritten_inputs(open_collection(folder), Assumptions())
    limits = BadRowLimits(max_bad_share=1)
    forecast, result = audit_unwritten(inputs, SimulationOptions(), limits)
    assert result is not None, forecast.refusal
    return {"findings": result.findings, "group_verdicts": result.verdicts}
