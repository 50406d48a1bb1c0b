"""The audit that `--previous` names."""

from typing import Any

from rebalance_core.cli.run.output_folder import OutputFolder
from rebalance_core.cli.run.output_run import BESIDE_TABLES
from rebalance_core.cli.run.run_record import read_run
from rebalance_core.model.errors import InputRefused

CARRIED = BESIDE_TABLES["audit"][-1]


def audit_record(folder: OutputFolder) -> dict[str, Any]:
    """The record of an audit run.

    Raises:
        InputRefused: the folder is not the result of an audit that this version reads.
    """
    record = read_run(folder)
    if record["job"] != "audit":
        raise InputRefused(
            f"--previous {folder.location}: is the result of {record['job']}, not of audit"
        )
    return record


def previous_texts(folder: OutputFolder) -> tuple[dict[str, Any], list[dict[str, Any]], str]:
    """Outcome and files of its record, and what it had not looked at (`previous_audit`).

    Raises:
        InputRefused: as `audit_record`.
    """
    record = audit_record(folder)
    return record["audit"], record.get("files") or [], folder.read_text(CARRIED) or ""
