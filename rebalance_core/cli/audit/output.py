"""What an audit writes: findings, verdicts, page, metrics, and the ledger without client ids."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.accepted import Acceptance, write_accepted
from rebalance_core.audit.collection import COLLECTION_INCOMPLETE
from rebalance_core.audit.prometheus import render_metrics
from rebalance_core.audit.redact import DIGITS, PREFIX, Redaction
from rebalance_core.audit.verdict import Count, verdict_of
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.audit.page import Judged, night_report, shown_findings
from rebalance_core.cli.audit.previous import PreviousAudit, read_previous_audit
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import TableRecord
from rebalance_core.cli.run.running import say
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.contracts import ALL_TABLES, AUDITED_TABLES, LEDGER_TABLES

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.report.timeline.night import ShownFinding
    from rebalance_core.spark.audit.audit import AuditResult

PAGE, METRICS = "report.html", "metrics.prom"
INGESTED, PRIVATE = "ingested", "private"
"""Folders in the output: what was ingested; what holds client ids until it is redacted."""
WRITTEN = (*AUDITED_TABLES, PAGE, METRICS, INGESTED, PRIVATE)
TOP_FINDINGS = 12
NEVER_ACCEPTED = (COLLECTION_INCOMPLETE.rule_id,)
"""Incomplete is never green: what is not there is no longer to be expected, or to be collected."""


@dataclass(frozen=True)
class AuditOutput:
    """Writes a judged night into the folder of its run."""

    options: AuditOptions
    settings: Settings
    run: OutputRun
    session: "SparkSession"
    now: datetime
    expired: Sequence[Acceptance]

    def write(
        self,
        night: "AuditResult",
        tables: "Mapping[str, DataFrame]",
        simulated: Mapping[str, TableRecord],
    ) -> tuple[dict[str, TableRecord], dict[str, Any]]:
        """Write everything; the records of the tables, and the verdict for `_run.json`.

        Args:
            night: findings and verdicts.
            tables: the ledger as written.
            simulated: records of the ledger's tables.
        """
        from rebalance_core.spark.audit.queries import capped, count_findings, worst_groups

        counts = [Count(**row) for row in count_findings(night.findings)]
        groups = {
            r["verdict"]: r["count"] for r in night.verdicts.groupBy("verdict").count().collect()
        }
        word, fails = verdict_of(counts, self.options.fail_on)
        records = {name: self._ledger(name, tables[name], simulated) for name in LEDGER_TABLES}
        kept = capped(night.findings, self.settings.audit.findings_per_rule)
        records["findings"] = self._table(kept, "findings")
        records["group_verdicts"] = self._table(night.verdicts, "group_verdicts")
        judged = Judged(
            ", ".join(sorted(night.runs)),
            word,
            self.options.fail_on,
            min((one.start_ms for one in night.runs.values()), default=0),
            max((one.end_ms for one in night.runs.values()), default=0),
            counts,
            groups,
            int(self.now.timestamp() * 1000),
        )
        worst = worst_groups(night.findings, self.settings.audit.timelines)
        written = {name: self._read(name) for name in AUDITED_TABLES}
        last = self._last_night
        previous = last.changes(night.findings, self._redaction) if last else None
        report = night_report(judged, written, worst, previous, self._notes())
        from rebalance_core.report.page.page import render_page

        self.run.folder.replace_text(PAGE, render_page(report))
        self.run.folder.replace_text(METRICS, _metrics(judged))
        self.run.folder.delete(PRIVATE)
        self._write_accepted(night.findings)
        return records, _verdict(judged, fails)

    def top_findings(self) -> "list[ShownFinding]":
        """The gravest findings, for the terminal."""
        return shown_findings(self.findings.where("severity <> 'INFO'"), TOP_FINDINGS)

    def shown_files(self, files: Iterable[Mapping[str, Any]]) -> list[dict[str, Any]]:
        """The collection's files for `_run.json`: dumps of clients are named after them."""
        hide = self._redaction
        return [
            {k: hide.text(v) if hide and isinstance(v, str) else v for k, v in one.items()}
            for one in files
        ]

    @cached_property
    def findings(self) -> "DataFrame":
        """The findings as written: at most ``audit.findings_per_rule`` of a rule."""
        return self._read("findings")

    def _read(self, name: str) -> "DataFrame":
        location = self.run.folder.table_location(name)
        return self.session.read.schema(ALL_TABLES[name].ddl).parquet(location)

    def _table(self, frame: "DataFrame", name: str) -> TableRecord:
        from rebalance_core.spark.tables.write import write_table

        written = write_table(frame, self.run.folder.table_location(""), name)
        return TableRecord(written.rows, written.digest)

    def _ledger(
        self, name: str, frame: "DataFrame", simulated: Mapping[str, TableRecord]
    ) -> TableRecord:
        """A table of the ledger: there already, or now without client ids."""
        if not self.options.redact_clients:
            return simulated[name]
        from rebalance_core.spark.audit.redact import redacted

        salt = self.settings.audit.redact_salt
        return self._table(redacted(frame, PREFIX, DIGITS, salt), name)

    @cached_property
    def _last_night(self) -> PreviousAudit | None:
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
        notes += self._last_night.notes if self._last_night else []
        if self._redaction is not None:
            notes = [self._redaction.text(note) for note in notes]
            notes.append("Client ids are replaced by names (--redact-clients).")
        return notes

    def _write_accepted(self, findings: "DataFrame") -> None:
        """The file of acceptances; ``findings``: all of the night, not only those that are kept."""
        target = self.options.write_accepted
        if target is None:
            return
        open_ones = findings.where("accepted IS NULL AND severity <> 'INFO'")
        names = ("rule_id", "consumer_group", "topic", "broker_name", "client_id")
        rows = [row.asDict() for row in open_ones.select(*names).distinct().collect()]
        rows = [row for row in rows if row["rule_id"] not in NEVER_ACCEPTED]
        Path(target).write_text(write_accepted(rows, self.now.date()), "utf-8")
        say(f"{target} accepts what was found this night; give each entry its reason")


def _metrics(night: Judged) -> str:
    return render_metrics(
        night.cluster, night.counts, night.groups, night.verdict, night.end_ms, night.finished_ms
    )


def _verdict(night: Judged, fails: bool) -> dict[str, Any]:
    findings: dict[str, dict[str, int]] = {}
    for one in night.counts:
        kind = "accepted" if one.accepted else one.severity
        counted = findings.setdefault(one.rule_id, {})
        counted[kind] = counted.get(kind, 0) + one.findings
    return {
        "verdict": night.verdict,
        "fails": fails,
        "fail_on": night.fail_on,
        "start_ms": night.start_ms,
        "end_ms": night.end_ms,
        "groups": dict(sorted(night.groups.items())),
        "findings": dict(sorted(findings.items())),
    }
