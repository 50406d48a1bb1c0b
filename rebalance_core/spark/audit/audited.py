"""An audit on its way into a folder: what it found, what is written, what changed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from rebalance_core.audit.case import AuditRun
from rebalance_core.audit.redact import Redaction
from rebalance_core.audit.verdict import Count
from rebalance_core.checks.digest import TableWritten
from rebalance_core.model.severities import INFO
from rebalance_core.report.audit_report import Previous, ShownFinding
from rebalance_core.report.group_pictures import Rows
from rebalance_core.spark.audit import queries, report_data
from rebalance_core.spark.audit.audit import AuditResult
from rebalance_core.spark.audit.previous_audit import PreviousAudit
from rebalance_core.spark.audit.write_audit import read_audit, write_audit, write_redacted_ledger


@dataclass(frozen=True, eq=False)
class Audited:
    """The findings of a run: all of them, and once `write` is done those that were written.

    Attributes:
        session: of the tables.
        result: what was judged.
        ledger: its tables by name, among others, with client ids.
        folder: path or URI, where the tables are to be.
        previous: the audit to compare with; None: none.
    """

    session: SparkSession
    result: AuditResult
    ledger: Mapping[str, DataFrame]
    folder: str
    previous: PreviousAudit | None = None

    @property
    def runs(self) -> Mapping[str, AuditRun]:
        """What was audited, by cluster."""
        return self.result.runs

    def counts(self) -> list[Count]:
        """Findings by rule, severity and acceptance, in this order."""
        return self.result.counts()

    def groups_by_verdict(self) -> Mapping[str, int]:
        """Groups by verdict of the comparison."""
        return self.result.groups_by_verdict()

    def write(self, findings_per_rule: int, redact_salt: str | None) -> dict[str, TableWritten]:
        """Write findings and verdicts, and the ledger if it is to be redacted.

        Args:
            findings_per_rule: of each rule the worst findings are kept.
            redact_salt: of the names for client ids; None: the ledger is written already.
        """
        written = {}
        if redact_salt is not None:
            written = write_redacted_ledger(self.ledger, self.folder, redact_salt)
        return written | write_audit(self.result, self.folder, findings_per_rule)

    def worst_groups(self, groups: int) -> list[tuple[str, str]]:
        """(cluster, consumer_group) of the groups with the worst findings."""
        return queries.worst_groups(self.result.findings, groups)

    def to_accept(self) -> list[dict[str, Any]]:
        """What a file of acceptances names of the open findings."""
        return queries.to_accept(self.result.findings)

    def changes(self, redaction: Redaction | None) -> Previous | None:
        """What changed since the previous audit; None: none was given.

        ``redaction``: for earlier findings, which may tell of clients; None: they may.
        """
        if self.previous is None:
            return None
        return self.previous.changes(self.result.findings, redaction)

    def truncated(self) -> Sequence[str]:
        """Rules of which the previous audit did not keep all findings."""
        return self.previous.truncated if self.previous else ()

    def shown(self, findings: int, *, with_info: bool) -> list[ShownFinding]:
        """The worst findings as written."""
        rows = self._written["findings"]
        return report_data.shown_findings(
            rows if with_info else rows.where(f"severity <> '{INFO}'"), findings
        )

    def rows_of_groups(self, groups: Sequence[tuple[str, str]]) -> dict[str, Rows]:
        """Rows of the ledger as written, for the page."""
        return report_data.rows_of_groups(self._written, groups)

    @cached_property
    def _written(self) -> Mapping[str, DataFrame]:
        return read_audit(self.session, self.folder)
