"""The output of an audit: tables, page, metrics and acceptances, written into its folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import Any

from rebalance_core.audit.accepted import Acceptance, write_accepted
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.audit.prometheus import render_metrics
from rebalance_core.audit.redact import Redaction
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.audit.previous_folder import read_previous_audit
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import TableRecord
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.cli.terminal import say
from rebalance_core.contracts import AUDITED_TABLES, LEDGER_TABLES
from rebalance_core.model.severities import INFO
from rebalance_core.report.audit_report import ShownFinding
from rebalance_core.spark import DataFrame, SparkSession
from rebalance_core.spark.audit.audit import AuditResult
from rebalance_core.spark.audit.outcome import AuditOutcome, audit_outcome
from rebalance_core.spark.audit.previous_audit import PreviousAudit
from rebalance_core.spark.audit.queries import to_accept, worst_groups
from rebalance_core.spark.audit.report_data import audit_report, shown_findings
from rebalance_core.spark.audit.write_audit import read_audit, write_audit, write_redacted_ledger

PAGE, METRICS = "report.html", "metrics.prom"
INGESTED, PRIVATE = "ingested", "private"
"""Folders in the output: what was ingested; what holds client ids until it is redacted."""
WRITTEN = (*AUDITED_TABLES, PAGE, METRICS, INGESTED, PRIVATE)
TOP_FINDINGS = 12
NEVER_ACCEPTED = (COLLECTION_INCOMPLETE.rule_id,)
"""Incomplete is never green: what is not there is no longer to be expected, or to be collected."""


@dataclass(frozen=True)
class AuditOutput:
    """Writes what was judged into the folder of its run."""

    options: AuditOptions
    settings: Settings
    run: OutputRun
    session: SparkSession
    now: datetime
    expired: Sequence[Acceptance]

    def write(
        self,
        result: AuditResult,
        tables: Mapping[str, DataFrame],
        simulated: Mapping[str, TableRecord],
    ) -> tuple[dict[str, TableRecord], AuditOutcome]:
        """Write everything; the records of the tables, and what came of the run.

        Args:
            result: findings and verdicts.
            tables: the ledger as written.
            simulated: records of the ledger's tables.
        """
        from rebalance_core.report.page.page import render_page  # jinja2, checked before Spark

        outcome = audit_outcome(result, self.options.fail_on)
        records = self._write_tables(result, tables, simulated)
        worst = worst_groups(result.findings, self.settings.audit.timelines)
        previous = self._previous
        changes = previous.changes(result.findings, self._redaction) if previous else None
        finished_ms = int(self.now.timestamp() * 1000)
        report = audit_report(outcome, self._written, worst, changes, self._notes(), finished_ms)
        self.run.folder.replace_text(PAGE, render_page(report))
        self.run.folder.replace_text(METRICS, _metrics(outcome, finished_ms))
        self.run.folder.delete(PRIVATE)
        self._write_accepted(result.findings)
        return records, outcome

    def top_findings(self) -> list[ShownFinding]:
        """The worst findings as written, for the terminal."""
        return shown_findings(
            self._written["findings"].where(f"severity <> '{INFO}'"), TOP_FINDINGS
        )

    def shown_files(self, files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The collection's files for `_run.json`: dumps of clients are named after them."""
        hide = self._redaction
        return [
            {k: hide.text(v) if hide and isinstance(v, str) else v for k, v in file.items()}
            for file in files
        ]

    @cached_property
    def _written(self) -> Mapping[str, DataFrame]:
        """The tables as written: at most ``audit.findings_per_rule`` findings of a rule."""
        return read_audit(self.session, self.run.folder.table_location(""))

    def _write_tables(
        self,
        result: AuditResult,
        tables: Mapping[str, DataFrame],
        simulated: Mapping[str, TableRecord],
    ) -> dict[str, TableRecord]:
        """Findings and verdicts; the ledger is there already, or is written without client ids."""
        folder, settings = self.run.folder.table_location(""), self.settings.audit
        records, written = {}, {}
        if self.options.redact_clients:
            written = write_redacted_ledger(tables, folder, settings.redact_salt)
        else:
            records = {name: simulated[name] for name in LEDGER_TABLES}
        written |= write_audit(result, folder, settings.findings_per_rule)
        return records | {n: TableRecord(table.rows, table.digest) for n, table in written.items()}

    @cached_property
    def _previous(self) -> PreviousAudit | None:
        where = self.options.previous
        return None if where is None else read_previous_audit(where, self.session)

    @cached_property
    def _redaction(self) -> Redaction | None:
        """For texts that were not redacted when they were made; None: they are shown."""
        salt = self.settings.audit.redact_salt
        return Redaction(salt) if self.options.redact_clients else None

    def _notes(self) -> list[str]:
        notes = [
            f"The acceptance of {one.rule_id} ({one.reason}) expired on {one.expires}."
            for one in self.expired
        ]
        notes += self._previous.notes if self._previous else []
        if self._redaction is not None:
            notes = [self._redaction.text(note) for note in notes]
            notes.append("Client ids are replaced by names (--redact-clients).")
        return notes

    def _write_accepted(self, findings: DataFrame) -> None:
        """The file of acceptances; ``findings``: all of the run, not only those that are kept."""
        target = self.options.write_accepted
        if target is None:
            return
        rows = [row for row in to_accept(findings) if row["rule_id"] not in NEVER_ACCEPTED]
        Path(target).write_text(write_accepted(rows, self.now.date()), "utf-8")
        say(f"{target} accepts what this run found; give each entry its reason")


def _metrics(outcome: AuditOutcome, finished_ms: int) -> str:
    return render_metrics(
        outcome.cluster,
        outcome.counts,
        outcome.groups,
        outcome.verdict,
        outcome.end_ms,
        finished_ms,
    )
