"""A collection audited in this process, nothing written."""

from functools import cache
from pathlib import Path
from typing import cast
from unittest import mock

from rebalance_core.checks.row_limits import BadRowLimits
from rebalance_core.engine.options import SimulationOptions
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import open_collection
from rebalance_core.ingest.in_process import Ingested, read_collection
from rebalance_core.process import audit
from tests.recordings.tables import DATA, Tables, ingested_recording


@cache
def audited(recording: str) -> Tables:
    """``findings`` and ``group_verdicts`` of a recording's collection."""
    return audit_folder(DATA / recording / "collection", ingested_recording(recording))


def audit_folder(folder: Path, ingested: Ingested | None = None) -> Tables:
    """The same of any collection, of which may be given what a test has read of it already."""
    read = mock.Mock(return_value=ingested) if ingested else read_collection
    with mock.patch.object(audit, "read_collection", read):
        inputs = audit.unwritten_inputs(open_collection(folder), Assumptions())
    limits = BadRowLimits(max_bad_share=1)
    forecast, result = audit.audit_unwritten(inputs, SimulationOptions(), limits)
    assert result is not None, forecast.refusal
    return cast("Tables", {"findings": result.findings, "group_verdicts": result.verdicts})
