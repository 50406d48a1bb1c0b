"""The tables of an audit, written: findings, verdicts, and the ledger without client ids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pyarrow as pa

from rebalance_core.audit.selection import capped
from rebalance_core.checks.digest import TableWritten
from rebalance_core.contracts import ALL_TABLES, LEDGER_TABLES
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.engine.table_writer import TableWriters
from rebalance_core.process.audit.audit_result import AuditResult
from rebalance_core.process.audit.redacted_tables import redacted
from rebalance_core.process.written_tables import batches_of_written
from rebalance_core.storage.locations import Location


def audit_rows(result: AuditResult, findings_per_rule: int) -> dict[str, pa.Table]:
    """Rows of ``findings`` and ``group_verdicts`` as they are written.

    Args:
        result: what was judged.
        findings_per_rule: of each rule the worst findings are kept, open ones first.
    """
    rows: dict[str, Sequence[Mapping[str, Any]]] = {
        "findings": capped(result.findings, findings_per_rule),
        "group_verdicts": result.verdicts,
    }
    return {
        name: pa.Table.from_batches([batch_of_rows(ALL_TABLES[name], found)])
        for name, found in rows.items()
    }


def write_audit(
    result: AuditResult, folder: Location, findings_per_rule: int
) -> Mapping[str, TableWritten]:
    """Write ``findings`` and ``group_verdicts``; rows and digest of each.

    Args:
        result: what was judged.
        folder: neither table may be there.
        findings_per_rule: as of `audit_rows`.

    Raises:
        OutputExists: a table is in the folder already.
    """
    tables = audit_rows(result, findings_per_rule)
    with TableWriters(folder, tuple(tables)) as writers:
        for name, rows in tables.items():
            for batch in rows.to_batches():
                writers.write(name, batch)
    return writers.written()


def write_redacted_ledger(
    private: Location, folder: Location, salt: str
) -> Mapping[str, TableWritten]:
    """Write the ledger with names for client ids; rows and digest of each table.

    Args:
        private: folder of the ledger with client ids.
        folder: no table of the ledger may be there.
        salt: of the names.

    Raises:
        OutputExists: a table is in the folder already.
    """
    with TableWriters(folder, tuple(LEDGER_TABLES)) as writers:
        for name in LEDGER_TABLES:
            for batch in batches_of_written(private, name):
                writers.write(name, redacted(batch, salt))
    return writers.written()
