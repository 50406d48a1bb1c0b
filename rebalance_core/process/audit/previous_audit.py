"""The findings of the previous audit, and what changed since."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.selection import changed_since, truncated_rules
from rebalance_core.contracts.arrow_rows import rows_of_arrow
from rebalance_core.process.audit.report_data import shown_findings
from rebalance_core.process.written_tables import ReadWritten
from rebalance_core.report.audit_report import Previous
from rebalance_core.report.audit_rows import CHANGES_ON_PAGE


@dataclass(frozen=True, eq=False)
class PreviousAudit:
    """What an earlier audit found.

    Attributes:
        end_ms: its end.
        findings: those it kept.
        truncated: rules of which it did not keep all.
    """

    end_ms: int
    findings: Sequence[Mapping[str, Any]]
    truncated: Sequence[str]

    def changes(
        self, findings: Iterable[Mapping[str, Any]], redaction: Redaction | None
    ) -> Previous:
        """What is new, gone and still there in all findings of this run.

        ``redaction``: for earlier findings, which may tell of clients; None: they may.
        """
        new, gone, still = changed_since(findings, self.findings, self.truncated)
        return Previous(
            self.end_ms,
            tuple(shown_findings(new, CHANGES_ON_PAGE)),
            tuple(shown_findings(gone, CHANGES_ON_PAGE, redaction)),
            len(still),
        )


def previous_audit(
    read: ReadWritten, end_ms: int, counted: Mapping[str, Mapping[str, int]]
) -> PreviousAudit:
    """An audit that was written.

    Args:
        read: reads its output.
        end_ms: end of what it audited.
        counted: by rule how many findings it made of each severity, and accepted ones.
    """
    kept = rows_of_arrow(read("findings", None))
    by_rule = Counter(row["rule_id"] for row in kept)
    return PreviousAudit(end_ms, kept, truncated_rules(by_rule, counted))
