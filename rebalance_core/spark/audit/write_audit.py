"""The tables of an audit, written: findings, verdicts, and the ledger without client ids."""

from __future__ import annotations

from collections.abc import Mapping

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.audit.redact import DIGITS, PREFIX
from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import AUDITED_TABLES, LEDGER_TABLES
from rebalance_core.spark.audit.audit import AuditResult
from rebalance_core.spark.audit.queries import capped
from rebalance_core.spark.audit.redacted_frames import redacted
from rebalance_core.spark.tables.write import write_table
from rebalance_core.spark.tables.written import read_written


def write_audit(
    result: AuditResult, folder: str, findings_per_rule: int
) -> dict[str, TableWritten]:
    """Write ``findings`` and ``group_verdicts``; rows and digest of each.

    Args:
        result: what was judged.
        folder: path or URI; neither table may be there.
        findings_per_rule: of each rule the worst findings are kept, open ones first.

    Raises:
        OutputExists: a table is in the folder already.
    """
    return {
        "findings": write_table(capped(result.findings, findings_per_rule), folder, "findings"),
        "group_verdicts": write_table(result.verdicts, folder, "group_verdicts"),
    }


def write_redacted_ledger(
    tables: Mapping[str, DataFrame], folder: str, salt: str
) -> dict[str, TableWritten]:
    """Write the ledger with names for client ids; rows and digest of each table.

    Args:
        tables: the ledger by table name, among others.
        folder: path or URI; no table of the ledger may be there.
        salt: of the names.

    Raises:
        OutputExists: a table is in the folder already.
    """
    return {
        name: write_table(redacted(tables[name], PREFIX, DIGITS, salt), folder, name)
        for name in LEDGER_TABLES
    }


def read_audit(session: SparkSession, folder: str) -> dict[str, DataFrame]:
    """Findings, verdicts and ledger as an audit wrote them into the folder; lazy."""
    return {name: read_written(session, folder, name) for name in AUDITED_TABLES}
