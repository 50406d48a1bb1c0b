"""What an audit found, and what it wrote, in a process or on Spark."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import pyarrow as pa

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.selection import capped, count_findings
from rebalance_core.audit.verdict import Count
from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.row_counts import RowCounts
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.contracts.arrow_rows import batch_of_rows
from rebalance_core.engine.facts import LedgerFacts

Row = dict[str, Any]


@dataclass(frozen=True, eq=False)
class AuditResult:
    """``findings`` and ``group_verdicts`` as rows with the contract's columns.

    Attributes:
        findings: on groups, then on clusters.
        verdicts: one a group.
        runs: the audit runs by cluster.
    """

    findings: list[Row]
    verdicts: list[Row]
    runs: Mapping[str, AuditRun]

    def counts(self) -> list[Count]:
        """Findings by rule, severity and acceptance, in this order."""
        return count_findings(self.findings)

    def groups_by_verdict(self) -> Mapping[str, int]:
        """Groups by verdict of the comparison."""
        return Counter(row["verdict"] for row in self.verdicts)

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
        tables: rows and digest of every table written.
        facts: what a summary says of the ledger (`LedgerFacts.totals`).
        rejected: how often each issue code occurs in ``rejected``.
        input_rows: rows of every input table.
        replay_reasons: how many groups the replay took instead of the kernels, by reason.
    """

    result: AuditResult
    tables: Mapping[str, TableWritten]
    facts: Mapping[str, Any]
    rejected: Mapping[str, int]
    input_rows: Mapping[str, int]
    replay_reasons: Mapping[str, int]


def audit_written(
    result: AuditResult,
    tables: Mapping[str, TableWritten],
    facts: LedgerFacts,
    counts: Mapping[str, RowCounts],
    worst_groups: int,
) -> AuditWritten:
    """What was found and written, summed up.

    Args:
        result: all that was found.
        tables: rows and digest of every table written.
        facts: of the whole ledger.
        counts: of every input table.
        worst_groups: how many groups the facts list.
    """
    return AuditWritten(
        result=result,
        tables=tables,
        facts=facts.totals(worst_groups),
        rejected=dict(sorted(facts.rejected.items())),
        input_rows={name: count.rows for name, count in counts.items()},
        replay_reasons=dict(sorted(facts.replay_reasons.items())),
    )
