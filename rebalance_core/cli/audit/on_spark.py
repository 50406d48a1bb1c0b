"""`audit` on Spark."""

from contextlib import ExitStack
from typing import Any

from rebalance_core.audit.outcome import Count
from rebalance_core.cli.audit.audit_output import (
    INGESTED,
    PRIVATE,
    WRITTEN,
    AuditEnd,
    AuditOutput,
)
from rebalance_core.cli.audit.previous_folder import previous_texts
from rebalance_core.cli.audit.request import AuditRequest
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.run.running_here import folder_here
from rebalance_core.cli.settings import bad_row_limits, ledger_config, simulation_options
from rebalance_core.cli.terminal import say, warn
from rebalance_core.engine.options import RowForecast
from rebalance_core.ingest.in_process import understood
from rebalance_core.process.audit.audited import (
    Audited,
    AuditWritten,
    PreviousAudit,
    previous_audit,
)
from rebalance_core.spark import SparkSession
from rebalance_core.spark import audit as service
from rebalance_core.spark.audit import AuditInputs, read_ingested, read_inputs, unwritten_inputs
from rebalance_core.spark.ingest import ingest_and_write
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder
from rebalance_core.spark.tables.sources import read_written, reader_of
from rebalance_core.storage.place import is_here


def audit(request: AuditRequest) -> AuditEnd:
    """Ingest if need be, simulate, judge every group, write everything."""
    options = request.options
    with running("audit", options, request.settings, WRITTEN) as (run, session):
        ingested, files = _ingested(session, request, run)
        folder = run.folder.table_location("").rstrip("/")
        written = _written(session, request, ingested, run, folder)
        previous = _previous(session, options.previous)
        audited = Audited(written.result, reader_of(session, folder), previous)
        return AuditOutput(request, run, session).write(audited, written.ledger, files)


def forecast(request: AuditRequest) -> tuple[RowForecast, list[Count] | None]:
    """What a run would make of its rows, and what it would find; None: it would refuse them."""
    options, settings = request.options, request.settings
    check_free("audit", options, settings)
    session = open_for("audit", options, settings)
    _previous(session, options.previous)
    say("auditing; nothing is written")
    with ExitStack() as kept:  # releases the rows that are kept meanwhile
        rows, result = service.audit_unwritten(
            session,
            _unwritten_inputs(session, request, kept),
            simulation_options(settings),
            bad_row_limits(settings),
            warn=warn,
            **request.judging,
        )
    return rows, None if result is None else result.counts()


def _ingested(
    session: SparkSession, request: AuditRequest, run: OutputRun
) -> tuple[str | None, list[dict[str, Any]]]:
    """Where the tables of a collection lie, and how each file was understood."""
    collection = request.collection
    if collection is None:
        return None, []
    say(f"reading {len(collection.files):,} files of {request.options.collection}")
    private = f"{PRIVATE}/" if request.options.redact_clients else ""
    location = run.folder.table_location(f"{private}{INGESTED}")
    done = ingest_and_write(
        session, collection, location, request.assumed, before_writing=run.clear
    )
    return location, understood(done.stats)


def _written(
    session: SparkSession, request: AuditRequest, ingested: str | None, run: OutputRun, folder: str
) -> AuditWritten:
    """Every table of the audit; those of an ingest are audited if there are some."""
    say("simulating and judging every group")
    rejected = None
    if ingested is None:
        inputs = read_inputs(session, spark_location(request.options.input or ""))
    else:
        inputs = read_ingested(session, ingested)
        rejected = read_written(session, ingested, "rejected")
    return service.audit_and_write(
        session,
        _with_propagation(session, request, inputs),
        folder,
        simulation_options(request.settings),
        ledger_config(request.settings),
        findings_per_rule=request.settings.audit.findings_per_rule,
        more_rejected=rejected,
        before_writing=run.clear if ingested is None else None,
        warn=warn,
        **request.judging,
    )


def _with_propagation(
    session: SparkSession, request: AuditRequest, inputs: AuditInputs
) -> AuditInputs:
    """The tables, and what `propagate` wrote."""
    location = request.options.propagation
    if location is None:
        return inputs
    return inputs.with_propagation(session, spark_location(location))


def _previous(session: SparkSession, location: str | None) -> PreviousAudit | None:
    """The audit that was written there."""
    if location is None:
        return None
    folder = folder_here(location) if is_here(location) else HadoopFolder(location, session)
    read = reader_of(session, spark_location(location))
    return previous_audit(read, *previous_texts(folder))


def _unwritten_inputs(session: SparkSession, request: AuditRequest, kept: ExitStack) -> AuditInputs:
    if request.collection is not None:
        return unwritten_inputs(session, request.collection, request.assumed, kept)
    return read_inputs(session, spark_location(request.options.input or ""))
