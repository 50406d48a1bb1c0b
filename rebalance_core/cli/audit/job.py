"""`audit`: ingest if need be, simulate, judge every group, write findings, page and metrics."""

from datetime import UTC, date, datetime
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from rebalance_core.audit.accepted import Acceptance, read_accepted
from rebalance_core.audit.judge import ALL_RULES
from rebalance_core.cli.audit.audit_output import (
    INGESTED,
    NEVER_ACCEPTED,
    PRIVATE,
    WRITTEN,
    AuditOutput,
)
from rebalance_core.cli.audit.options import AuditOptions
from rebalance_core.cli.audit.previous_folder import audit_record
from rebalance_core.cli.audit.rehearsal import Rehearsal
from rebalance_core.cli.audit.summary import audit_facts, render_audit
from rebalance_core.cli.exit_codes import ExitCode
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.engine_settings import ledger_config, simulation_options
from rebalance_core.cli.run.input_files import fingerprint, tables_in
from rebalance_core.cli.run.output_folder import LocalFolder, spark_location
from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.run_record import table_records
from rebalance_core.cli.run.running import running
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.assume_section import assumptions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.terminal import say, warn
from rebalance_core.contracts import FINDING_TABLES, LEDGER_TABLES
from rebalance_core.contracts.locations import is_local, local_path
from rebalance_core.ingest.in_process import understood
from rebalance_core.ingest.rows import FINDING_IDS
from rebalance_core.model.errors import InputRefused, OutputExists, UsageError
from rebalance_core.spark import DataFrame, InputTables, SparkSession
from rebalance_core.spark.audit.audit import audit_tables
from rebalance_core.spark.engine.write_ledger import LedgerWritten, simulate_and_write
from rebalance_core.spark.ingest.write_tables import ingest_and_write
from rebalance_core.spark.tables.observed import read_observed

if TYPE_CHECKING:
    from rebalance_core.ingest.collection.assumptions import Assumptions
    from rebalance_core.ingest.collection.collection import Collection


def run_audit(options: AuditOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    assumed = assumptions(settings)
    now = datetime.now(UTC)
    accepted, expired = check_before_spark(options, now.date())
    collection = _collection(options)
    if options.dry_run:
        rehearsal = Rehearsal(options, settings, assumed, collection, accepted, now)
        return rehearsal.report()
    with running("audit", options, settings, WRITTEN) as (run, session):
        place = run.folder.table_location(PRIVATE if options.redact_clients else "")
        source, files = _ingested(session, options, assumed, collection, run, place)
        simulated, tables = _simulated(session, options, settings, source, run, place)
        say("judging every group")
        output = AuditOutput(options, settings, run, session, now, expired)
        judging = options.judging(settings.audit, accepted, now)
        with simulated, audit_tables(tables, **judging) as result:
            written, outcome = output.write(result, tables, table_records(simulated.tables))
        record = run.finish(
            Outcome(
                outputs=written,
                inputs=[fingerprint("input", options.collection or options.input or "", session)],
                rejected=simulated.rejected,
                files=output.shown_files(files),
                replayed_groups=sum(simulated.replay_reasons.values()),
                replay_reasons=simulated.replay_reasons,
                versions=versions(session),
                audit=outcome.record(),
                exit_code=ExitCode.DIFFERENCES if outcome.fails else ExitCode.OK,
            )
        )
        top = output.top_findings()
    facts = audit_facts(options.output, outcome.record(), top, record.exit_code, record.seconds)
    return JobReport(render_audit(facts), facts, record.exit_code)


def check_before_spark(
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
    if options.write_accepted and not Path(options.write_accepted).absolute().parent.is_dir():
        raise UsageError(f"--write-accepted {options.write_accepted}: no such folder")
    if options.previous is not None and is_local(options.previous):
        previous = LocalFolder(options.previous)
        audit_record(previous)
        if not FINDING_TABLES.keys() <= set(previous.names()):
            raise InputRefused(f"--previous {options.previous}: its table findings is gone")
    if not options.accepted:
        return (), ()
    try:
        text = Path(options.accepted).read_text("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise UsageError(f"--accepted {options.accepted}: {error}") from error
    rule_ids = [*(rule.rule_id for rule in ALL_RULES), *FINDING_IDS]
    return read_accepted(text, options.accepted, rule_ids, NEVER_ACCEPTED, today)


def _collection(options: AuditOptions) -> "Collection | None":
    """The collection, if one is given; an unreadable folder is refused before Spark starts."""
    if options.collection is not None:
        from rebalance_core.ingest.collection.collection import open_collection

        return open_collection(local_path(options.collection))
    if options.input is not None and is_local(options.input):
        tables_in(local_path(options.input))
    return None


def _ingested(
    session: SparkSession,
    options: AuditOptions,
    assumed: "Assumptions",
    collection: "Collection | None",
    run: OutputRun,
    place: str,
) -> tuple[str, list[dict[str, Any]]]:
    """Where the tables to audit lie, and how each file was understood."""
    if collection is None:
        return spark_location(options.input or ""), []
    say(f"reading {len(collection.files):,} files of {options.collection}")
    location = f"{place.rstrip('/')}/{INGESTED}"
    done = ingest_and_write(session, collection, location, assumed, before_writing=run.clear)
    return location, understood(done.stats)


def _simulated(
    session: SparkSession,
    options: AuditOptions,
    settings: Settings,
    source: str,
    run: OutputRun,
    place: str,
) -> tuple[LedgerWritten, dict[str, DataFrame]]:
    """The ledger written, and every table that the audit reads."""
    say("simulating")
    observed = read_observed(session, source)
    rejected = observed.rejected
    if options.collection:
        rejected = rejected.unionByName(session.read.parquet(f"{source}/rejected"))
    simulated = simulate_and_write(
        session,
        InputTables.read(session, source),
        place,
        simulation_options(settings),
        ledger_config(settings, private=options.redact_clients),
        more_rejected=rejected,
        before_writing=None if options.collection else run.clear,
        warn=warn,
    )
    ledger = {
        name: session.read.schema(table.ddl).parquet(f"{place.rstrip('/')}/{name}")
        for name, table in LEDGER_TABLES.items()
    }
    return simulated, {**simulated.checked.tables, **observed.tables, **ledger}
