"""`audit --dry-run`: the whole audit but for its output, so that it ends as the run would."""

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.accepted import Acceptance
from rebalance_core.audit.verdict import verdict_of
from rebalance_core.cli.audit.audit_output import PRIVATE, WRITTEN
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.audit.previous_folder import read_previous_audit
from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.engine_settings import bad_row_limits, simulation_options
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run.running import check_free, open_for
from rebalance_core.cli.settings.settings import Settings
from rebalance_core.cli.terminal import say, warn
from rebalance_core.model.severities import SEVERITIES
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.audit.unwritten import count_unwritten, tables_of_collection
from rebalance_core.spark.engine.row_forecast import row_forecast
from rebalance_core.spark.engine.write_ledger import sized
from rebalance_core.spark.tables.observed import Observed, read_observed
from rebalance_core.spark.tables.row_counts import check_rows

if TYPE_CHECKING:
    from rebalance_core.ingest.collection.assumptions import Assumptions
    from rebalance_core.ingest.collection.collection import Collection


@dataclass(frozen=True)
class Rehearsal:
    """An audit that writes nothing."""

    options: AuditOptions
    settings: Settings
    assumed: "Assumptions"
    collection: "Collection | None"
    accepted: tuple[Acceptance, ...]
    now: datetime

    def report(self) -> JobReport:
        """What a run would read and write, and how it would end."""
        check_free("audit", self.options, self.settings)
        session = open_for("audit", self.options, self.settings)
        if self.options.previous is not None:
            read_previous_audit(self.options.previous, session)
        say("auditing; nothing is written")
        with ExitStack() as kept:
            return self._audited(session, kept)

    def _audited(self, session: SparkSession, kept: ExitStack) -> JobReport:
        """The audit up to its verdict; ``kept`` releases the rows that it keeps."""
        inputs, observed = self._inputs(session, kept)
        simulation = simulation_options(self.settings)
        checked, counts = check_rows(inputs, simulation.max_queue_nums, warn)
        kept.callback(checked.close)
        simulation = sized(simulation, counts, session)
        forecast = row_forecast(checked, counts, simulation, bad_row_limits(self.settings))
        if self.options.redact_clients:
            forecast = forecast.without_rows()
        foretold = RowReport(forecast)
        if forecast.refusal is not None:
            return self._report(foretold, None, foretold.exit_code)
        judging = self.options.judging(self.settings.audit, self.accepted, self.now)
        counts_by_kind = count_unwritten(checked, simulation, observed, **judging)
        word, fails = verdict_of(counts_by_kind, self.options.fail_on)
        by_severity: Counter[str] = Counter()
        for one in counts_by_kind:
            by_severity["accepted" if one.accepted else one.severity] += one.findings
        verdict = {"verdict": str(word), "findings": dict(by_severity)}
        return self._report(foretold, verdict, ExitCode.DIFFERENCES if fails else ExitCode.OK)

    def _inputs(self, session: SparkSession, kept: ExitStack) -> tuple[InputTables, Observed]:
        if self.collection is not None:
            return tables_of_collection(session, self.collection, self.assumed, kept)
        source = spark_location(self.options.input or "")
        return InputTables.read(session, source), read_observed(session, source)

    def _report(
        self, foretold: RowReport, verdict: dict[str, Any] | None, exit_code: int
    ) -> JobReport:
        options = self.options
        files = len(self.collection.files) if self.collection else None
        facts = {
            "job": "audit",
            "dry_run": True,
            **foretold.facts(),
            "exit_code": int(exit_code),
            "collection": options.collection,
            "input": options.input,
            "files": files,
            "accepted": len(self.accepted),
            "fail_on": options.fail_on,
            "verdict": verdict,
            "output": options.output,
            "writes": list(WRITTEN),
            "config": self.settings.as_dict(),
        }
        source = f"{options.collection} ({files:,} files)" if files is not None else options.input
        lines = [
            "Dry run: nothing is written.",
            "",
            f"input     {source}",
            f"accepted  {len(self.accepted)} finding(s) by {options.accepted or 'no file'}",
            f"fail on   {options.fail_on}",
            f"output    {options.output}",
            f"  {', '.join(name for name in WRITTEN if name != PRIVATE)}",
            *foretold.lines(),
        ]
        if verdict is not None:
            counts = [f"{verdict['findings'].get(name, 0):,} {name}" for name in SEVERITIES[::-1]]
            shown = f"{verdict['verdict']}, {', '.join(counts)} not accepted"
            lines += ["", f"A run would end with exit code {int(exit_code)}: {shown}"]
        return JobReport("\n".join(lines), facts, exit_code)
