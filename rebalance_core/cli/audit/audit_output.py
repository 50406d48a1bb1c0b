"""The output of an audit: tables, page, metrics, acceptances and record, in its folder."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rebalance_core.audit.changes import Changes
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.audit.findings import MEANINGS
from rebalance_core.audit.known_issues import write_accepted
from rebalance_core.audit.outcome import AuditOutcome, audit_outcome, render_metrics
from rebalance_core.cli.audit.request import AuditRequest
from rebalance_core.cli.audit.summary import not_read
from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_run import BESIDE_TABLES, OutputRun
from rebalance_core.cli.run.run_record import Outcome, RunRecord, table_records
from rebalance_core.cli.terminal import say
from rebalance_core.contracts import AUDITED_TABLES
from rebalance_core.engine.table_writer import LedgerWritten
from rebalance_core.ingest.in_process import with_lines
from rebalance_core.process.audited import Audited, carried_lines
from rebalance_core.report.audit_report import (
    FINDINGS_ON_PAGE,
    AuditReport,
    ShownFinding,
    audit_report,
)

PAGE, METRICS, INGESTED, PRIVATE, CARRIED = BESIDE_TABLES["audit"]
"""`INGESTED` and `PRIVATE` are folders: what was ingested; where that is while no client id is to
stay. `CARRIED`, if it is there: findings of earlier runs that this one could not look at."""
WRITTEN = (*AUDITED_TABLES, PAGE, METRICS, INGESTED, PRIVATE, CARRIED)
TOP_FINDINGS = 12
NEVER_ACCEPTED = (COLLECTION_INCOMPLETE.rule_id,)
"""Incomplete is never green: what is not there is no longer to be expected, or to be collected."""


@dataclass(frozen=True)
class AuditEnd:
    """What came of an audit run, the worst findings for the terminal, its record, its changes."""

    outcome: AuditOutcome
    top: Sequence[ShownFinding]
    record: RunRecord
    changes: Mapping[str, int] | None = None


@dataclass(frozen=True)
class AuditOutput:
    """Writes what was judged into the folder of its run.

    Attributes:
        request: what the run was given.
        run: its folder.
        session: of Spark; None: the input is local.
    """

    request: AuditRequest
    run: OutputRun
    session: Any = None

    def write(
        self, audited: Audited, written: LedgerWritten, files: Iterable[Mapping[str, Any]]
    ) -> AuditEnd:
        """Write what is beside the tables.

        Args:
            audited: findings and verdicts.
            written: all tables, which are there already.
            files: how each file of a collection was understood.
        """
        files = list(files)
        written = replace(written, rejected=with_lines(written.rejected, files))
        found = audited.result
        fail_on = self.request.options.fail_on
        outcome = audit_outcome(found.findings, found.verdicts, found.runs, fail_on)
        changes = audited.changes(files)
        self._write_page(audited, outcome, changes, written.rejected)
        if changes is not None and changes.not_looked_at:
            self.run.folder.replace_text(CARRIED, carried_lines(changes, self.request.redaction))
        metrics = render_metrics(outcome.clusters, self.request.now_ms)
        self.run.folder.replace_text(METRICS, metrics)
        self.run.folder.delete(PRIVATE)
        self._write_accepted(audited)
        record = self._finish(outcome, written, files)
        top = audited.shown(TOP_FINDINGS, with_info=False)
        return AuditEnd(outcome, top, record, changes.counts if changes else None)

    def _write_page(
        self,
        audited: Audited,
        outcome: AuditOutcome,
        changes: Changes | None,
        rejected: Mapping[str, int],
    ) -> None:
        from rebalance_core.report.page import render_page  # jinja2, checked before

        report = self._report(audited, outcome, changes, rejected)
        self.run.folder.replace_text(PAGE, render_page(report))

    def _report(
        self,
        audited: Audited,
        outcome: AuditOutcome,
        changes: Changes | None,
        rejected: Mapping[str, int],
    ) -> AuditReport:
        worst = audited.worst_groups(self.request.settings.audit.timelines)
        return audit_report(
            outcome,
            MEANINGS,
            audited.shown(FINDINGS_ON_PAGE, with_info=True),
            worst,
            audited.rows_of_groups(worst),
            audited.shown_changes(changes, self.request.redaction),
            self._notes(audited.truncated(), rejected),
            self.request.now_ms,
        )

    def _notes(self, truncated: Sequence[str], rejected: Mapping[str, int]) -> list[str]:
        notes = [
            f"The acceptance of {one.rule_id} ({one.reason}) expired on {one.expires}."
            for one in self.request.expired
        ]
        if truncated:
            notes.append(
                f"Which findings of {', '.join(truncated)} are new is not known: the previous run "
                "kept only the gravest (audit.findings_per_rule)."
            )
        if rejected:
            notes.append(f"Not read: {not_read(rejected)}.")
        redaction = self.request.redaction
        if redaction is not None:
            notes = [redaction.text(note) for note in notes]
            notes.append("Client ids are replaced by names (--redact-clients).")
        return notes

    def _write_accepted(self, audited: Audited) -> None:
        """The file of acceptances: of all findings of the run, not only those that are kept."""
        target = self.request.options.write_accepted
        if target is None:
            return
        rows = [row for row in audited.to_accept() if row["rule_id"] not in NEVER_ACCEPTED]
        Path(target).write_text(write_accepted(rows, self.request.now.date()), "utf-8")
        say(f"{target} accepts what this run found; give each entry its reason")

    def _finish(
        self,
        outcome: AuditOutcome,
        written: LedgerWritten,
        files: Iterable[Mapping[str, Any]],
    ) -> RunRecord:
        options = self.request.options
        return self.run.finish(
            Outcome(
                outputs=table_records(written.tables),
                inputs=[
                    fingerprint("input", options.collection or options.input or "", self.session)
                ],
                rejected=written.rejected,
                files=self._shown_files(files),
                replayed_groups=sum(written.replay_reasons.values()),
                replay_reasons=written.replay_reasons,
                audit=outcome.record(),
                exit_code=ExitCode.DIFFERENCES if outcome.fails else ExitCode.OK,
            )
        )

    def _shown_files(self, files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The collection's files for `_run.json`: dumps of clients are named after them."""
        hide = self.request.redaction
        if hide is None:
            return [dict(file) for file in files]
        return [
            {k: hide.text(v) if isinstance(v, str) else v for k, v in file.items()}
            | {"name": hide.place(file["name"])}
            for file in files
        ]
