"""What an audit writes: findings, verdicts, page, metrics, and the ledger without client ids."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.accepted import Acceptance, write_accepted
from rebalance_core.audit.collection import COLLECTION_INCOMPLETE
from rebalance_core.audit.prometheus import render_metrics
from rebalance_core.audit.redact import DIGITS, PREFIX
from rebalance_core.audit.verdict import Count, verdict_of
from rebalance_core.cli.audit_options import AuditOptions
from rebalance_core.cli.audit_page import Judged, night_report, previous_night, shown_findings
from rebalance_core.cli.hadoop_folder import HadoopFolder
from rebalance_core.cli.output_folder import LocalFolder, OutputFolder, is_local, spark_location
from rebalance_core.cli.output_run import OutputRun
from rebalance_core.cli.run_record import TableRecord, read_run
from rebalance_core.cli.running import say
from rebalance_core.cli.settings import Settings
from rebalance_core.contracts import ALL_TABLES, AUDITED_TABLES, LEDGER_TABLES
from rebalance_core.model.errors import InputRefused

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from rebalance_core.audit.nightly import AuditedNight
    from rebalance_core.report.night import Previous, ShownFinding

PAGE, METRICS = "report.html", "metrics.prom"
INGESTED, PRIVATE = "ingested", "private"
"""Folders in the output: what was ingested; what holds client ids until it is redacted."""
WRITTEN = (*AUDITED_TABLES, PAGE, METRICS, INGESTED, PRIVATE)
TOP_FINDINGS = 12
NEVER_ACCEPTED = (COLLECTION_INCOMPLETE.rule_id,)
"""Incomplete is never green: what is not there is no longer to be expected, or to be collected."""


@dataclass(frozen=True)
class NightOutput:
    """Writes a judged night into the folder of its run."""

    options: AuditOptions
    settings: Settings
    run: OutputRun
    session: "SparkSession"
    now: datetime
    expired: Sequence[Acceptance]

    def write(
        self,
        night: "AuditedNight",
        tables: "Mapping[str, DataFrame]",
        simulated: Mapping[str, TableRecord],
    ) -> tuple[dict[str, TableRecord], dict[str, Any]]:
        """Write everything; the records of the tables, and the verdict for `_run.json`.

        Args:
            night: findings and verdicts.
            tables: the ledger as written.
            simulated: records of the ledger's tables.
        """
        from rebalance_core.spark.night import capped, count_findings, worst_groups

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
            ", ".join(sorted(night.nights)),
            word,
            self.options.fail_on,
            min((one.start_ms for one in night.nights.values()), default=0),
            max((one.end_ms for one in night.nights.values()), default=0),
            counts,
            groups,
            int(self.now.timestamp() * 1000),
        )
        worst = worst_groups(self.findings, self.settings.audit.timelines)
        written = {name: self._read(name) for name in AUDITED_TABLES}
        report = night_report(judged, written, worst, self._previous(), self._notes())
        from rebalance_core.report.page import render_page

        self.run.folder.replace_text(PAGE, render_page(report))
        self.run.folder.replace_text(METRICS, _metrics(judged))
        self.run.folder.delete(PRIVATE)
        self._write_accepted()
        return records, _verdict(judged, fails)

    def top_findings(self) -> "list[ShownFinding]":
        """The gravest findings, for the terminal."""
        return shown_findings(self.findings.where("severity <> 'INFO'"), TOP_FINDINGS)

    @cached_property
    def findings(self) -> "DataFrame":
        """The findings as written."""
        return self._read("findings")

    def _read(self, name: str) -> "DataFrame":
        location = self.run.folder.table_location(name)
        return self.session.read.schema(ALL_TABLES[name].ddl).parquet(location)

    def _table(self, frame: "DataFrame", name: str) -> TableRecord:
        from rebalance_core.spark.write import write_table

        written = write_table(frame, self.run.folder.table_location(""), name)
        return TableRecord(written.rows, written.digest)

    def _ledger(
        self, name: str, frame: "DataFrame", simulated: Mapping[str, TableRecord]
    ) -> TableRecord:
        """A table of the ledger: there already, or now without client ids."""
        if not self.options.redact_clients:
            return simulated[name]
        from rebalance_core.spark.redact import redacted

        salt = self.settings.audit.redact_salt
        return self._table(redacted(frame, PREFIX, DIGITS, salt), name)

    def _previous(self) -> "Previous | None":
        """What changed since the night of ``--previous``."""
        where = self.options.previous
        if where is None:
            return None
        from rebalance_core.spark.night import changed_since

        record = audit_record(_folder(where, self.session))
        table = ALL_TABLES["findings"]
        location = f"{spark_location(where).rstrip('/')}/findings"
        before = self.session.read.schema(table.ddl).parquet(location)
        return previous_night(record["audit"]["end_ms"], changed_since(self.findings, before))

    def _notes(self) -> list[str]:
        notes = [
            f"The acceptance of {one.rule_id} ({one.reason}) expired on {one.expires}."
            for one in self.expired
        ]
        if self.options.redact_clients:
            notes.append("Client ids are replaced by names (--redact-clients).")
        return notes

    def _write_accepted(self) -> None:
        target = self.options.write_accepted
        if target is None:
            return
        open_ones = self.findings.where("accepted IS NULL AND severity <> 'INFO'")
        names = ("rule_id", "consumer_group", "topic", "broker_name", "client_id")
        rows = [row.asDict() for row in open_ones.select(*names).distinct().collect()]
        rows = [row for row in rows if row["rule_id"] not in NEVER_ACCEPTED]
        Path(target).write_text(write_accepted(rows, self.now.date()), "utf-8")
        say(f"{target} accepts what was found this night; give each entry its reason")


def audit_record(folder: OutputFolder) -> dict[str, Any]:
    """The record of an audited night.

    Raises:
        InputRefused: the folder is not the result of an audit that this version reads.
    """
    record = read_run(folder)
    if record["job"] != "audit":
        raise InputRefused(
            f"--previous {folder.location}: is the result of {record['job']}, not of audit"
        )
    return record


def _folder(location: str, session: "SparkSession") -> OutputFolder:
    return LocalFolder(location) if is_local(location) else HadoopFolder(location, session)


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
