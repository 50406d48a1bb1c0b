"""`audit` in this process; needs no JVM."""

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
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.running_here import check_free_here, folder_here, running_here
from rebalance_core.cli.settings import bad_row_limits, ledger_config, simulation_options
from rebalance_core.cli.terminal import progress_of, say, warn
from rebalance_core.engine.options import RowForecast
from rebalance_core.ingest.in_process import understood
from rebalance_core.process.audit import run as service
from rebalance_core.process.audit.audit_inputs import (
    AuditInputs,
    read_ingested,
    read_inputs,
    unwritten_inputs,
)
from rebalance_core.process.audit.audited import (
    Audited,
    AuditWritten,
    PreviousAudit,
    previous_audit,
)
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.process.written_tables import read_written, reader_of
from rebalance_core.storage.place import Place, place_of


def audit(request: AuditRequest) -> AuditEnd:
    """Ingest if need be, simulate, judge every group, write everything."""
    options = request.options
    folder = place_of(options.output)
    with running_here("audit", options, request.settings, WRITTEN) as run:
        ingested, files = _ingested(request, run, folder)
        written = _written(request, ingested, run, folder)
        audited = Audited(written.result, reader_of(folder), _previous(options.previous))
        return AuditOutput(request, run).write(audited, written.ledger, files)


def forecast(request: AuditRequest) -> tuple[RowForecast, list[Count] | None]:
    """What a run would make of its rows, and what it would find; None: it would refuse them."""
    check_free_here(request.options)
    _previous(request.options.previous)
    say("auditing; nothing is written")
    with progress_of("groups") as progress:
        rows, result = service.audit_unwritten(
            _unwritten_inputs(request),
            simulation_options(request.settings),
            bad_row_limits(request.settings),
            warn=warn,
            progress=progress,
            **request.judging,
        )
    return rows, None if result is None else result.counts()


def _ingested(
    request: AuditRequest, run: OutputRun, folder: Place
) -> tuple[Place | None, list[dict[str, Any]]]:
    """Where the tables of a collection lie, and how each file was understood."""
    collection = request.collection
    if collection is None:
        return None, []
    say(f"reading {len(collection.files):,} files of {request.options.collection}")
    place = (folder / PRIVATE if request.options.redact_clients else folder) / INGESTED
    with progress_of("files") as progress:
        done = ingest_and_write(
            collection, place, request.assumed, before_writing=run.clear, progress=progress
        )
    return place, understood(done.stats)


def _written(
    request: AuditRequest, ingested: Place | None, run: OutputRun, folder: Place
) -> AuditWritten:
    """Every table of the audit; those of an ingest are audited if there are some."""
    say("simulating and judging every group")
    rejected = None
    if ingested is None:
        inputs = read_inputs(request.options.input or "")
    else:
        inputs, rejected = read_ingested(ingested), read_written(ingested, "rejected")
    with progress_of("groups") as progress:
        return service.audit_and_write(
            _with_propagation(request, inputs),
            folder,
            simulation_options(request.settings),
            ledger_config(request.settings),
            findings_per_rule=request.settings.audit.findings_per_rule,
            more_rejected=rejected,
            before_writing=run.clear if ingested is None else None,
            warn=warn,
            progress=progress,
            **request.judging,
        )


def _with_propagation(request: AuditRequest, inputs: AuditInputs) -> AuditInputs:
    """The tables, and what `propagate` wrote."""
    location = request.options.propagation
    return inputs if location is None else inputs.with_propagation(location)


def _previous(location: str | None) -> PreviousAudit | None:
    """The audit that was written there."""
    if location is None:
        return None
    return previous_audit(reader_of(location), *previous_texts(folder_here(location)))


def _unwritten_inputs(request: AuditRequest) -> AuditInputs:
    if request.collection is not None:
        return unwritten_inputs(request.collection, request.assumed)
    return read_inputs(request.options.input or "")
