"""What a reader asks of ``_run.json`` before it trusts the tables beside it, and what published
tables have of it.
"""

from collections.abc import Mapping
from typing import Any

from rebalance_core.contracts.table import Table, columns
from rebalance_core.model.errors import InputRefused

RUN_NAME = "_run.json"  # written last, by the job: a folder without it is not a result
ATTEMPTS = "_attempts"
"""Folder in the output for the files of tasks; gone when a run ends."""
STATUS_OK = "OK"
STATUS_FAILED = "FAILED"


_OF_THE_RUN = """
    run_id STRING of `_run.json`; equal runs over equal rows have the same
    period_from_ms? BIGINT start of the run's period: --from, or the first event, epoch ms UTC
    period_to_ms? BIGINT end of the period: --to, or the last event, epoch ms UTC
"""

RUN_COLUMNS = columns(_OF_THE_RUN)
"""The last columns of every table that `publish` writes; it is partitioned by them."""

RUNS = Table(
    "runs",
    "A run whose tables are published whole: its row is written last, and removed first.",
    columns(
        f"""
        job STRING the job
        exit_code INT how it ended: 0, or 3 of an audit with findings
        started_ms BIGINT when it began, epoch ms UTC
        library_version STRING of rebalance-core
        contract_version INT of its tables
        clusters ARRAY<STRING> those that its input names
        tables ARRAY<STRING> the published tables, without prefix
        {_OF_THE_RUN.strip()}
        """
    ),
    key=("run_id",),
)


def refuse_unreadable(record: Mapping[str, Any] | None, where: str, contract_version: int) -> None:
    """Raise `InputRefused` unless this library can read the tables the record stands beside.

    Args:
        record: the parsed record; None where there is none of ours.
        where: the folder, for the message.
        contract_version: this library's; the one before is read too.
    """
    if record is None:
        raise InputRefused(
            f"{where} holds no {RUN_NAME} of ours: no result, or a run that died or is still going"
        )
    version = record.get("contract_version")
    if not isinstance(version, int):
        raise InputRefused(f"{where}/{RUN_NAME} has no contract_version; it is not ours")
    if record.get("status") == STATUS_FAILED:
        reason = record.get("error") or "no reason kept"
        raise InputRefused(f"{where} is the output of a run that failed: {reason}")
    if version > contract_version:
        raise InputRefused(
            f"{where} has tables of contract version {version}, made by rebalance-core "
            f"{record.get('library_version')}; this one reads up to {contract_version}: upgrade it"
        )
    if version < contract_version - 1:
        raise InputRefused(
            f"{where} has tables of contract version {version}; this rebalance-core reads "
            f"{contract_version - 1} and {contract_version}: run the job again"
        )
