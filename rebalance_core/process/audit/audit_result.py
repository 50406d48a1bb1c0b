"""What an audit found, and what it wrote, in a process or on Spark."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.outcome import Count, capped, count_findings
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.table import batch_of_rows
from rebalance_core.engine.written import LedgerWritten

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """``findings`` and ``group_verdicts`` as rows with the contract's columns.

    Attributes:
        findings: on groups, then on clusters.
        verdicts: one a group.
        runs: the audit runs by cluster.
        incomplete: clusters of which something was not collected.
    """

    findings: list[Row]
    verdicts: list[Row]
    runs: Mapping[str, AuditRun]
    incomplete: frozenset[str] = frozenset()

    def counts(self) -> list[Count]:
        """Findings by rule, severity and acceptance, in this order."""
        return count_findings(self.findings)

    def tables(self, findings_per_rule: int) -> dict[str, pa.Table]:
        """Both tables as they are written.

        Args:
            findings_per_rule: of each rule the worst findings are kept, open ones first.
        """
        rows: dict[str, Sequence[Mapping[str, Any]]] = {
            "findings": capped(self.findings, findings_per_rule),
            "group_verdicts": self.verdicts,
        }
        return {
            name: pa.Table.from_batches([batch_of_rows(AUDITED_TABLES[name], found)])
            for name, found in rows.items()
        }


@dataclass(frozen=True, eq=False)
class AuditWritten:
    """What an audit found and wrote.

    Attributes:
        result: all findings and verdicts; of a rule not all may be written.
        ledger: what was written, with the tables of the audit among them.
    """

    result: AuditResult
    ledger: LedgerWritten
