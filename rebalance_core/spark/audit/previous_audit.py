"""The findings of the previous audit, and what changed since."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.selection import truncated_rules
from rebalance_core.report.audit_report import Previous
from rebalance_core.report.audit_rows import CHANGES_ON_PAGE
from rebalance_core.spark.audit.queries import changed_since, findings_by_rule
from rebalance_core.spark.audit.report_data import shown_findings
from rebalance_core.spark.tables.written import read_written


@dataclass(frozen=True, eq=False)
class PreviousAudit:
    """What an earlier audit found.

    Attributes:
        end_ms: its end.
        findings: those it kept.
        truncated: rules of which it did not keep all.
    """

    end_ms: int
    findings: DataFrame
    truncated: Sequence[str]

    def changes(self, findings: DataFrame, redaction: Redaction | None) -> Previous:
        """What is new, gone and still there in all findings of this run.

        ``redaction``: for earlier findings, which may tell of clients; None: they may.
        """
        new, gone, still = changed_since(findings, self.findings, self.truncated)
        return Previous(
            self.end_ms,
            tuple(shown_findings(new, CHANGES_ON_PAGE)),
            tuple(shown_findings(gone, CHANGES_ON_PAGE, redaction)),
            still.count(),
        )


def previous_audit(
    session: SparkSession, folder: str, end_ms: int, counted: Mapping[str, Mapping[str, int]]
) -> PreviousAudit:
    """The audit that was written into a folder.

    Args:
        session: any session.
        folder: path or URI.
        end_ms: end of what it audited.
        counted: by rule how many findings it made of each severity, and accepted ones.
    """
    kept = read_written(session, folder, "findings")
    return PreviousAudit(end_ms, kept, truncated_rules(findings_by_rule(kept), counted))
