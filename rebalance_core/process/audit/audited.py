"""An audit that was written: what it found, what its page shows, what changed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from rebalance_core.audit import outcome
from rebalance_core.audit.changes import Changes, Files, Looked
from rebalance_core.audit.redact import Redaction
from rebalance_core.contracts.table import rows_of_arrow
from rebalance_core.model.statuses import INFO
from rebalance_core.process.audit import report_data
from rebalance_core.process.audit.audit_result import AuditResult
from rebalance_core.process.audit.previous_audit import PreviousAudit, shown_changes
from rebalance_core.process.written_tables import ReadWritten
from rebalance_core.report.audit_report import Previous, ShownFinding
from rebalance_core.report.audit_rows import Rows


@dataclass(frozen=True, eq=False)
class Audited:
    """The findings of a run: all of them, and those that were written.

    Attributes:
        result: what was judged.
        read: reads its tables as they were written.
        previous: the audit to compare with; None: none.
    """

    result: AuditResult
    read: ReadWritten
    previous: PreviousAudit | None = None

    def worst_groups(self, groups: int) -> list[tuple[str, str]]:
        """(cluster, consumer_group) of the groups with the worst findings."""
        return outcome.worst_groups(self.result.findings, groups)

    def to_accept(self) -> list[outcome.Row]:
        """What a file of acceptances names of the open findings."""
        return outcome.to_accept(self.result.findings)

    def changes(self, files: Iterable[Mapping[str, Any]]) -> Changes | None:
        """What changed since the previous audit; None: none was given.

        ``files``: what this audit read, for ``_run.json``.
        """
        if self.previous is None:
            return None
        found = self.result
        looked = Looked.by(
            found.runs, found.incomplete, found.verdicts, found.findings, Files(files)
        )
        return self.previous.changes(found.findings, looked)

    def shown_changes(
        self, changes: Changes | None, redaction: Redaction | None
    ) -> Previous | None:
        """The same for the page; ``redaction``: for earlier findings, which may tell of clients."""
        if self.previous is None or changes is None:
            return None
        return shown_changes(self.previous.end_ms, changes, redaction)

    def truncated(self) -> Sequence[str]:
        """Rules of which the previous audit did not keep all findings."""
        return self.previous.truncated if self.previous else ()

    def shown(self, findings: int, *, with_info: bool) -> list[ShownFinding]:
        """The worst findings as written."""
        rows = (row for row in self._findings if with_info or row["severity"] != INFO)
        return report_data.shown_findings(rows, findings)

    def rows_of_groups(self, groups: Sequence[tuple[str, str]]) -> dict[str, Rows]:
        """Rows of the ledger as written, for the page."""
        return report_data.rows_of_groups(self.read, groups)

    @cached_property
    def _findings(self) -> list[dict[str, Any]]:
        return rows_of_arrow(self.read("findings", None))
