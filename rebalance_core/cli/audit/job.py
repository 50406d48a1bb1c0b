"""`audit`: options, acceptances, collection, place, run, summary, in this order."""

import os
from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from rebalance_core.audit.accepted import Acceptance, read_accepted
from rebalance_core.audit.judge import MEANINGS
from rebalance_core.cli.audit.audit_output import NEVER_ACCEPTED
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.audit.previous_folder import audit_record
from rebalance_core.cli.audit.rehearsal import rehearsal_report
from rebalance_core.cli.audit.request import AuditRequest
from rebalance_core.cli.audit.summary import audit_facts, render_audit
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.input_files import tables_in
from rebalance_core.cli.run.running_here import folder_here
from rebalance_core.cli.run_on import SPARK, run_on_of
from rebalance_core.cli.settings import assumptions, resolve_settings
from rebalance_core.contracts import FINDING_TABLES
from rebalance_core.contracts.paths import is_local, local_path
from rebalance_core.ingest.collection.collection import Collection, open_collection
from rebalance_core.model.errors import InputRefused, OutputExists, UsageError
from rebalance_core.storage.access import reason_of
from rebalance_core.storage.place import is_reached


def run_audit(options: AuditOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    assumed = assumptions(settings)
    now = datetime.now(UTC)
    accepted, expired = check_before_reading(options, now.date())
    collection = _collection(options)
    request = AuditRequest(options, settings, assumed, collection, accepted, expired, now)
    inputs, others = [options.collection, options.input], [options.output, options.previous]
    run_on = run_on_of(options, settings, inputs, others)
    carrier = _carrier(run_on)
    if options.dry_run:
        return rehearsal_report(request, *carrier.forecast(request))
    written = carrier.audit(request)
    record = written.record
    facts = audit_facts(
        options.output,
        written.outcome.record(),
        written.top,
        record.rejected,
        record.exit_code,
        record.seconds,
        run_on,
        written.changes,
    )
    return JobReport(render_audit(facts), facts, record.exit_code)


def _carrier(run_on: str) -> ModuleType:
    """What runs the job there; pyspark takes a second to import."""
    if run_on == SPARK:
        from rebalance_core.cli.audit import on_spark

        return on_spark
    from rebalance_core.cli.audit import in_process

    return in_process


def check_before_reading(
    options: AuditOptions, today: date
) -> tuple[tuple[Acceptance, ...], tuple[Acceptance, ...]]:
    """The acceptances that hold and those that expired; checks what can be wrong by now.

    Raises:
        UsageError: jinja2 is missing, the file of accepted findings is wrong, or there is no folder
            for the one to write.
        OutputExists: the file for the findings to accept is there.
        InputRefused: `--previous` is not the result of an audit.
    """
    if find_spec("jinja2") is None:
        raise UsageError("report.html needs jinja2: pip install 'rebalance-core[report]'")
    if options.write_accepted and Path(options.write_accepted).exists():
        raise OutputExists(f"--write-accepted {options.write_accepted}: is there already")
    if options.write_accepted:
        folder = Path(options.write_accepted).absolute().parent
        if not folder.is_dir():
            raise UsageError(f"--write-accepted {options.write_accepted}: no such folder")
        if not os.access(folder, os.W_OK | os.X_OK):
            raise UsageError(f"--write-accepted {options.write_accepted}: Permission denied")
    if options.previous is not None and is_reached(options.previous):
        previous = folder_here(options.previous)
        audit_record(previous)
        if not FINDING_TABLES.keys() <= set(previous.names()):
            raise InputRefused(f"--previous {options.previous}: its table findings is gone")
    if not options.accepted:
        return (), ()
    try:
        text = Path(options.accepted).read_text("utf-8-sig")
    except OSError as error:
        raise UsageError(f"--accepted {options.accepted}: {reason_of(error)}") from error
    except UnicodeDecodeError as error:
        raise UsageError(f"--accepted {options.accepted}: not UTF-8: {error}") from error
    return read_accepted(text, options.accepted, MEANINGS, NEVER_ACCEPTED, today)


def _collection(options: AuditOptions) -> Collection | None:
    """The collection, if one is given; an unreadable folder is refused before Spark starts."""
    if options.collection is not None:
        return open_collection(local_path(options.collection))
    if options.input is not None and is_local(options.input):
        tables_in(local_path(options.input))
    return None
