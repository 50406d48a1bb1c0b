"""What an audit found."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.selection import count_findings
from rebalance_core.audit.verdict import Count

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
