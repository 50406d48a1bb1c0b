"""The `audit` job, from its options and acceptances to the run and its summary."""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from datetime import UTC, date, datetime
from functools import cached_property
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import pyarrow as pa

from rebalance_core.audit.accepted_findings import Acceptance, read_accepted, write_accepted
from rebalance_core.audit.changes import Changes, failing_findings
from rebalance_core.audit.completeness import COLLECTION_INCOMPLETE
from rebalance_core.audit.counted_findings import Count, capped
from rebalance_core.audit.metrics import render_metrics
from rebalance_core.audit.night import NightBegin
from rebalance_core.audit.outcome import AuditOutcome, audit_outcome
from rebalance_core.audit.redact import HIDDEN, Redaction
from rebalance_core.audit.registry import MEANINGS
from rebalance_core.cli.audit_summary import (
    CARRIED,
    GONE,
    INGESTED,
    METRICS,
    PAGE,
    PRIVATE,
    WRITTEN,
    audit_facts,
    not_read,
    rehearsal,
    render_audit,
)
from rebalance_core.cli.audit_ticket import render_ticket
from rebalance_core.cli.job_options import LOSSES, MARKDOWN, AuditOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.gate_file import refuse_unwritable
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.ingest_outcome import ingest_outcome, reading_line
from rebalance_core.cli.run.input_files import collection_fingerprint, fingerprint, tables_of
from rebalance_core.cli.run.output_folder import typed_place
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.run_record import RunOutcome, origin_of
from rebalance_core.cli.settings import (
    Settings,
    assumptions,
    bad_row_limits,
    ledger_config,
    settings_of,
    simulation_options,
)
from rebalance_core.cli.terminal import ExitCode, missing_package, say, warn
from rebalance_core.contracts import FINDING_TABLES
from rebalance_core.contracts.run_names import STATE
from rebalance_core.contracts.settings_file import option_text
from rebalance_core.engine.options import RowForecast, SimulationOptions
from rebalance_core.ingest.assumptions import Assumptions
from rebalance_core.ingest.collection import Collection
from rebalance_core.ingest.in_process import understood, with_lines
from rebalance_core.ingest.opening_evidence import ContinuedCollection
from rebalance_core.model.errors import InputRefused, UsageError
from rebalance_core.model.system_groups import is_system_group
from rebalance_core.model.times import HOUR_MS
from rebalance_core.process.audit import InputsOfAudit, audit_and_write, audit_unwritten
from rebalance_core.process.audited import AuditResult, AuditWritten, FinishedAudit
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.process.previous_audit import PreviousAudit, carried_lines, previous_audit
from rebalance_core.process.servers import server_rows
from rebalance_core.report.audit_junit import NAME as JUNIT_NAME
from rebalance_core.report.audit_junit import render_junit
from rebalance_core.report.audit_report import FINDINGS_ON_PAGE, audit_report
from rebalance_core.report.group_table import group_rows
from rebalance_core.report.sarif import TOOL as SARIF_TOOL
from rebalance_core.report.sarif import render_sarif
from rebalance_core.storage.place import is_reachable
from rebalance_core.storage.run_folder import counted_rows, read_run
from rebalance_core.storage.store_answers import refusal

if TYPE_CHECKING:
    from rebalance_core.audit.changes import ListedChanges
    from rebalance_core.cli.run.output_folder import OutputFolder
    from rebalance_core.contracts.rows import FindingsRow
    from rebalance_core.contracts.run_record import AuditRecord, ReadFile
    from rebalance_core.ingest.file_record import FileRecord
    from rebalance_core.report.loss_table import LossRow

TOP_CAUSES = 12
"""Maximum number of causes that the summary lists, with their consequences."""
NEVER_ACCEPTED = (COLLECTION_INCOMPLETE.rule_id,)
"""An incomplete audit never passes: either collect what is missing or stop expecting it."""


@dataclass(frozen=True)
class AuditRequest:
    """An audit run's input, resolved before anything is read.

    Attributes:
        options: the command line's options.
        settings: the settings from files and the command line.
        assumed: assumptions about facts that no file shows.
        collection: the collection; None to audit the tables of an earlier ingest.
        accepted: valid acceptances.
        expired: expired acceptances.
        now: when the run began.
    """

    options: AuditOptions
    settings: Settings
    assumed: Assumptions
    collection: Collection | None
    accepted: tuple[Acceptance, ...]
    expired: tuple[Acceptance, ...]
    now: datetime

    def judging(self, previous: PreviousAudit | None) -> dict[str, Any]:
        """Return the rules' options, as the services take them."""
        settings, options = self.settings.audit, self.options
        lost: tuple[str, ...] = ()
        if previous is not None and self.collection is not None:
            own = self.collection.own_files
            lost = previous.files.lost((file.name, file.kind) for file in own)
        hours = settings.max_age_hours
        return {
            "accepted": self.accepted,
            "stale_hours": settings.stale_after_hours,
            "not_before_ms": None if hours is None else self.now_ms - int(hours * HOUR_MS),
            "redact_salt": settings.redact_salt if options.redact_clients else None,
            "night": NightBegin(
                options.since_ms,
                options.previous or "",
                {} if previous is None else previous.nights,
                self.state_ms,
            ),
            "lost_kinds": lost,
        }

    @property
    def state_ms(self) -> int | None:
        """Return the end of the opening state, if there is one."""
        if isinstance(self.collection, ContinuedCollection):
            return self.collection.opening.end_ms
        return None

    @property
    def simulation(self) -> SimulationOptions:
        """Return the groups to simulate and the restrictions on the output."""
        asked = self.options
        return replace(
            simulation_options(self.settings),
            group=asked.group,
            from_ms=asked.from_ms,
            to_ms=asked.to_ms,
        )

    @property
    def now_ms(self) -> int:
        """`now` as epoch ms UTC."""
        return int(self.now.timestamp() * 1000)

    @cached_property
    def redaction(self) -> Redaction | None:
        """The redaction for texts that are not redacted yet; None leaves them as they are."""
        salt = self.settings.audit.redact_salt
        return Redaction(salt) if self.options.redact_clients else None


def run(options: AuditOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    assumed = assumptions(settings)
    now = datetime.now(UTC)
    accepted, expired = check_before_reading(options, now.date())
    if options.input is not None:
        tables_of(options.input)
    inputs = [options.collection, options.input]
    backend = backend_of("audit", options, settings, inputs, [options.previous, options.state])
    collection = None
    if options.collection is not None:
        collection = backend.continued(backend.collection(options.collection), options.state)
    request = AuditRequest(
        options=options,
        settings=settings,
        assumed=assumed,
        collection=collection,
        accepted=accepted,
        expired=expired,
        now=now,
    )
    if options.dry_run:
        backend.check_free()
        rows, counts = _rehearse(request, backend)
        files = len(collection.own_files) if collection else None
        return rehearsal(options, settings, rows, counts, files, len(accepted))
    with backend.running(WRITTEN) as output:
        previous = _previous(
            request, backend
        )  # first, so that a refusal comes before anything is written
        losses = _losses(request, backend)
        ingested, files_read = _ingest(request, backend, output)
        written = _simulate_and_judge(request, backend, output, ingested, previous)
        audited = FinishedAudit(written.result, backend.runtime.reader(backend.output()), previous)
        facts = _write(request, backend, output, audited, written, files_read, losses)
    render = render_ticket if options.format == MARKDOWN else render_audit
    return JobReport(render(facts), facts, facts["exit_code"])


def check_before_reading(
    options: AuditOptions, today: date
) -> tuple[tuple[Acceptance, ...], tuple[Acceptance, ...]]:
    """Return the valid and the expired acceptances, after early checks.

    Raises:
        UsageError: jinja2 is missing, the file of accepted findings is invalid, or the folder of an
            output file is missing.
        OutputExists: an output file already exists.
        InputRefused: `--previous` is not the result of an audit.
    """
    if find_spec("jinja2") is None:
        missing = ModuleNotFoundError("No module named 'jinja2'", name="jinja2")
        raise UsageError(f"report.html: {missing_package(missing)}")
    refuse_unwritable("--write-accepted", options.write_accepted)
    refuse_unwritable("--junit", options.junit, JUNIT_NAME if options.overwrite else None)
    refuse_unwritable("--sarif", options.sarif, SARIF_TOOL if options.overwrite else None)
    if options.previous is not None and is_reachable(options.previous):
        audit_record(typed_place(options.previous))
    if not options.accepted:
        return (), ()
    text = option_text("--accepted", options.accepted)
    return read_accepted(text, options.accepted, MEANINGS, NEVER_ACCEPTED, today)


def audit_record(folder: "OutputFolder") -> "tuple[AuditRecord, Sequence[ReadFile]]":
    """Return the verdict of the audit run that `--previous` names, and the files that it read.

    Raises:
        InputRefused: the folder is not the result of an audit that this version can read, or its
            findings do not match its record.
    """
    record = read_run(folder)
    if record["job"] != "audit":
        raise InputRefused(
            f"--previous {folder.url}: is the output of {record['job']}, not of audit"
        )
    audit = record.get("audit")
    only = audit and audit.get("only")
    if only:
        part = " ".join(f"{name} {value}" for name, value in only.items())
        raise InputRefused(
            f"--previous {folder.url}: is a partial audit ({part}); name a complete audit"
        )
    if not FINDING_TABLES.keys() <= set(folder.names()):
        raise InputRefused(f"--previous {folder.url}: its table findings is missing")
    counted_rows(folder, record, FINDING_TABLES)
    if not audit:
        raise InputRefused(f"--previous {folder.url}: is an audit that has no verdict")
    return audit, record.get("files", [])


def _rehearse(request: AuditRequest, backend: Backend) -> tuple[RowForecast, list[Count] | None]:
    """Return how a run would judge its rows and what it would find, or None if it would refuse
    them.
    """
    previous = _previous(request, backend)
    say("auditing; nothing is written")
    with ExitStack() as kept:  # releases the rows that Spark has kept
        if request.collection is None:
            inputs = _inputs(request, backend)
        else:
            inputs = backend.unwritten_inputs(request.collection, request.assumed, kept)
        rows, result = backend.run(
            audit_unwritten,
            inputs,
            request.simulation,
            bad_row_limits(request.settings),
            of="groups",
            warn=warn,
            **request.judging(previous),
        )
    return rows, None if result is None else result.counts()


def _inputs(request: AuditRequest, backend: Backend) -> InputsOfAudit:
    """Return the tables of an earlier ingest."""
    return backend.audit_inputs(backend.location(request.options.input or ""))


def _ingest(
    request: AuditRequest, backend: Backend, output: OutputRun
) -> tuple[Any, "list[FileRecord]"]:
    """Return the locations of a collection's tables, and how well each file was understood."""
    collection = request.collection
    if collection is None:
        return None, []
    say(reading_line(request.options.collection or "", request.options.state, collection))
    private = (PRIVATE,) if request.options.redact_clients else ()
    place = backend.output(*private, INGESTED)
    done = backend.run(
        ingest_and_write,
        collection,
        place,
        request.assumed,
        of="files",
        state_output=None if private else backend.output(STATE),
        before_writing=output.clear,
    )
    if not private:  # otherwise the tables are removed at the end
        asked = request.options
        outcome = ingest_outcome(
            asked.collection or "", asked.state, collection, done, backend.session
        )
        output.record_below(INGESTED, "ingest", outcome)
        output.record_below(STATE, "ingest", replace(outcome, outputs=done.state))
    return place, understood(collection, done.stats)


def _simulate_and_judge(
    request: AuditRequest,
    backend: Backend,
    output: OutputRun,
    ingested: Any,
    previous: PreviousAudit | None,
) -> AuditWritten:
    """Return all tables of the audit, which audits the tables of an ingest if there are any."""
    say("simulating and judging every group")
    if ingested is None:
        inputs = _inputs(request, backend)
    else:
        inputs = backend.audit_inputs(ingested, ingested=True)
    if request.options.propagation is not None:
        inputs = inputs.with_propagation(backend.location(request.options.propagation))
    written: AuditWritten = backend.run(
        audit_and_write,
        inputs,
        backend.output(),
        request.simulation,
        ledger_config(request.settings),
        of="groups",
        findings_per_rule=request.settings.audit.findings_per_rule,
        before_writing=output.clear if ingested is None else None,
        warn=warn,
        **request.judging(previous),
    )
    return written


def _previous(request: AuditRequest, backend: Backend) -> PreviousAudit | None:
    """Return the audit that `--previous` names: its tables, record, and what it did not check."""
    location = request.options.previous
    if location is None:
        return None
    folder = backend.folder(location)
    read = backend.runtime.reader(backend.location(location))
    outcome, files = audit_record(folder)
    try:
        carried, gone = ((folder / name).read_text() or "" for name in (CARRIED, GONE))
        return previous_audit(read, outcome, files, carried, gone)
    except OSError as error:
        raise refusal(error, f"--previous {location} cannot be read", InputRefused) from error
    except (pa.ArrowException, ValueError) as error:
        raise InputRefused(f"--previous {location} cannot be read: {error}") from error


def _losses(request: AuditRequest, backend: Backend) -> "tuple[LossRow, ...]":
    """Return the worst single loss for each group in the plan that `--losses` names.

    Raises:
        InputRefused: the folder is not the result of a plan, its losses do not match its record, or
            it has no losses under the recorded strategies.
    """
    location = request.options.losses
    if location is None:
        return ()
    from rebalance_core.process.plan_losses import worst_losses  # most audits read no plan

    folder = backend.folder(location)
    record = read_run(folder)
    if record["job"] != "plan":
        raise InputRefused(f"--losses {location}: is the output of {record['job']}, not of plan")
    counted_rows(folder, record, (LOSSES,))
    try:
        losses = worst_losses(backend.runtime.reader(backend.location(location)))
    except OSError as error:
        raise refusal(error, f"--losses {location} cannot be read", InputRefused) from error
    except (pa.ArrowException, ValueError) as error:
        raise InputRefused(f"--losses {location} cannot be read: {error}") from error
    if not losses:
        raise InputRefused(
            f"--losses {location} has no losses under the groups' own strategies; plan with a "
            "scenario that has each, e.g. lose-each-broker, without --strategy"
        )
    hide = request.redaction
    return losses if hide is None else tuple(replace(x, lost=hide.text(x.lost)) for x in losses)


def _write(
    request: AuditRequest,
    backend: Backend,
    output: OutputRun,
    audited: FinishedAudit,
    written: AuditWritten,
    files: "Sequence[FileRecord]",
    losses: "Sequence[LossRow]",
) -> dict[str, Any]:
    """Write all output, the record last, and return the facts for stdout."""
    options, folder, result = request.options, output.folder, audited.result
    ledger = replace(written.ledger, rejected=with_lines(written.ledger.rejected, files))
    outcome = audit_outcome(result.findings, result.verdicts, result.runs, options.fail_on)
    verdict = outcome.record()
    if options.only:
        verdict["only"] = options.only
    changes = audited.changes(files)
    shown_files = _shown_files(files, request.redaction)
    page = _page(request, audited, outcome, changes, ledger.rejected, shown_files, losses)
    (folder / PAGE).write_text(page)
    if changes is not None and changes.not_looked_at:
        (folder / CARRIED).write_text(carried_lines(changes, request.redaction))
    if changes is not None and (gone := audited.gone_lines(changes)):
        (folder / GONE).write_text(gone)
    failing = failing_findings(result.findings, options.fail_on, changes, options.fail_on_new)
    exit_code = ExitCode.DIFFERENCES if failing else ExitCode.OK
    metrics = render_metrics(
        outcome.clusters, request.now_ms, audited.stalled_queues(), audited.orphan_ms()
    )
    (folder / METRICS).write_text(metrics)
    (folder / PRIVATE).delete()
    _write_accepted(request, audited)
    _write_gate_files(request, result, changes, failing, exit_code)
    place = options.collection or options.input or ""
    fingerprint_of = fingerprint if options.collection is None else collection_fingerprint
    record = output.finish(
        RunOutcome(
            outputs=ledger.tables,
            origin=origin_of(ledger.inputs),
            inputs=[
                fingerprint_of("input", place, backend.session),
                *(
                    []
                    if options.state is None
                    else [fingerprint("state", options.state, backend.session)]
                ),
            ],
            rejected=ledger.rejected,
            files=shown_files,
            replayed_groups=sum(ledger.replay_reasons.values()),
            replay_reasons=ledger.replay_reasons,
            audit=verdict,
            exit_code=exit_code,
        )
    )
    return audit_facts(
        options.output,
        verdict,
        audited.top(TOP_CAUSES),
        record.rejected,
        record.exit_code,
        record.seconds,
        backend.name,
        _listed(changes, request.redaction),
        result.not_looked_at(),
        result.unknown(),
        shown_files,
    )


def _listed(changes: Changes | None, hide: Redaction | None) -> "ListedChanges | None":
    if changes is None:
        return None
    return changes.listed() if hide is None else changes.listed(hide.finding)


def _write_gate_files(
    request: AuditRequest,
    result: AuditResult,
    changes: Changes | None,
    failing: "Sequence[FindingsRow]",
    exit_code: ExitCode,
) -> None:
    """Write the files read by change gates."""
    options, settings = request.options, request.settings.audit
    if options.junit is not None:
        fingerprints = {row["fingerprint"] for row in failing}
        text = render_junit(
            result.findings,
            result.verdicts,
            fingerprints,
            result.runs,
            request.now_ms,
            COLLECTION_INCOMPLETE.rule_id,
        )
        Path(options.junit).write_text(text, "utf-8")
    if options.sarif is not None:
        kept = capped(result.findings, settings.findings_per_rule)
        text = render_sarif(kept, MEANINGS, exit_code, _baseline(changes), settings.rules_url)
        Path(options.sarif).write_text(text, "utf-8")


def _baseline(changes: Changes | None) -> dict[str | None, str] | None:
    """Return SARIF's baseline state of each open finding since the previous run."""
    if changes is None:
        return None
    new = {row["fingerprint"]: "new" for row in (*changes.new, *changes.reopened)}
    return new | {row["fingerprint"]: "unchanged" for row in changes.still}


def _page(
    request: AuditRequest,
    audited: FinishedAudit,
    outcome: AuditOutcome,
    changes: Changes | None,
    rejected: Mapping[str, int],
    files: "Sequence[FileRecord]",
    losses: "Sequence[LossRow]",
) -> str:
    from rebalance_core.report.page import render_page

    worst = audited.worst_groups(request.settings.audit.timelines)
    report = audit_report(
        outcome.cluster,
        outcome.record(),
        MEANINGS,
        audited.shown(FINDINGS_ON_PAGE, with_info=True),
        group_rows(audited.result.verdicts, audited.result.findings, is_system_group),
        worst,
        audited.rows_of_groups(worst),
        audited.shown_changes(changes, request.redaction),
        _notes(request, audited.truncated(), rejected, audited.result.not_looked_at()),
        request.now_ms,
        files,
        request.settings.audit.rules_url,
        server_rows(
            audited.result.runs, audited.result.coverage, audited.read, audited.result.findings
        ),
        audited.tonight(),
        losses,
    )
    return render_page(report)


def _notes(
    request: AuditRequest, truncated: Sequence[str], rejected: Mapping[str, int], not_seen: str
) -> list[str]:
    notes = [
        f"The acceptance of {acceptance.rule_id} ({acceptance.reason}) expired on "
        f"{acceptance.expires}."
        for acceptance in request.expired
    ]
    if request.options.only:
        only = " ".join(f"{name} {value}" for name, value in request.options.only.items())
        notes.append(f"This is a partial audit ({only}); it leaves out the rest of the input.")
    if not_seen:
        notes.append(not_seen)
    if truncated:
        notes.append(
            f"The audit cannot tell which findings of {', '.join(truncated)} are new, because the "
            "previous run kept only the most severe (audit.findings_per_rule)."
        )
    if rejected:
        notes.append(f"Not read: {not_read(rejected)}.")
    if request.redaction is not None:
        notes = [request.redaction.text(note) for note in notes]
        notes.append("Names replace client ids (--redact-clients).")
    return notes


def _write_accepted(request: AuditRequest, audited: FinishedAudit) -> None:
    """Write the file of acceptances for all findings of the run, not only those kept."""
    target = request.options.write_accepted
    if target is None:
        return
    acceptable = audited.to_accept()
    rows = [row for row in acceptable if row["rule_id"] not in NEVER_ACCEPTED]
    Path(target).write_text(write_accepted(rows, request.now.date()), "utf-8")
    left_out = sorted({row["rule_id"] for row in acceptable} & {*NEVER_ACCEPTED})
    but = f", except {', '.join(left_out)}, which cannot be accepted" if left_out else ""
    say(f"{target} accepts the findings of this run{but}; give each entry a reason")


def _shown_files(files: "Sequence[FileRecord]", hide: Redaction | None) -> "Sequence[FileRecord]":
    """Return the collection's files for `_run.json`, hiding client names in file names."""
    if hide is None:
        return files
    return [_shown_file(file, hide) for file in files]


def _shown_file(file: "FileRecord", hide: Redaction) -> "FileRecord":
    hidden = {k: hide.text(v) if isinstance(v, str) else v for k, v in file.items()}
    # the reason for unread lines may quote them
    reason = HIDDEN if file["lines"] and file["reason"] else hidden["reason"]
    return cast("FileRecord", {**hidden, "name": hide.place(file["name"]), "reason": reason})
