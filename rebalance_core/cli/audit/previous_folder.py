"""The audit that `--previous` names."""

from typing import Any

from rebalance_core.cli.run.output_folder import LocalFolder, OutputFolder, spark_location
from rebalance_core.cli.run.run_record import read_run
from rebalance_core.contracts.locations import is_local
from rebalance_core.model.errors import InputRefused
from rebalance_core.spark import SparkSession
from rebalance_core.spark.audit.previous_audit import PreviousAudit, previous_audit
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder


def read_previous_audit(location: str, session: SparkSession) -> PreviousAudit:
    """The audit that was written there.

    Raises:
        InputRefused: see `audit_record`.
    """
    local = is_local(location)
    folder = LocalFolder(location) if local else HadoopFolder(location, session)
    outcome = audit_record(folder)["audit"]
    return previous_audit(session, spark_location(location), outcome["end_ms"], outcome["findings"])


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
