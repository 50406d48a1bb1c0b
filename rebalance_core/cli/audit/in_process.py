"""`audit` in this process; needs no JVM."""

from dataclasses import replace
from typing import Any

import pyarrow as pa

from rebalance_core.audit.verdict import Count
from rebalance_core.checks.digest import TableWritten
from rebalance_core.checks.input_tables import InputTables, read_input_tables, stored_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.cli.audit.audit_output import (
    INGESTED,
    PRIVATE,
    WRITTEN,
    AuditOutput,
    AuditWritten,
)
from rebalance_core.cli.audit.previous_folder import audit_record
from rebalance_core.cli.audit.request import AuditRequest
from rebalance_core.cli.progress import progress_of
from rebalance_core.cli.run.engine_settings import (
    bad_row_limits,
    ledger_config,
    simulation_options,
)
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.running_here import check_free_here, folder_here, running_here
from rebalance_core.cli.terminal import say, warn
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.ingest.in_process import understood
from rebalance_core.process.audit.audit import audit_tables
from rebalance_core.process.audit.audit_result import AuditResult
from rebalance_core.process.audit.audited import Audited
from rebalance_core.process.audit.previous_audit import PreviousAudit, previous_audit
from rebalance_core.process.audit.unwritten import audit_unwritten, tables_of_collection
from rebalance_core.process.audit.write_audit import write_audit, write_redacted_ledger
from rebalance_core.process.ingest import ingest_and_write
from rebalance_core.process.observed import Observed, read_observed, stored_observed
from rebalance_core.process.row_forecast import row_forecast
from rebalance_core.process.write_ledger import LedgerWritten, simulate_and_write
from rebalance_core.process.written_tables import LedgerFiles, read_written, reader_of
from rebalance_core.storage.locations import place_of
from rebalance_core.storage.place import Place


def audit(request: AuditRequest) -> AuditWritten:
    """Ingest if need be, simulate, judge every group, write everything."""
    options = request.options
    folder = place_of(options.output)
    with running_here("audit", options, request.settings, WRITTEN) as run:
        place = folder / PRIVATE if options.redact_clients else folder
        ingested, files = _ingested(request, run, place)
        simulated, tables = _simulated(request, ingested, run, place)
        say("judging every group")
        with progress_of("groups judged") as progress:
            result = audit_tables(tables, LedgerFiles(place), **request.judging, progress=progress)
        written = replace(simulated, tables=_written(request, result, simulated, place, folder))
        audited = Audited(result, reader_of(folder), _previous(options.previous))
        return AuditOutput(request, run).write(audited, written, files)


def forecast(request: AuditRequest) -> tuple[RowForecast, list[Count] | None]:
    """What a run would make of its rows, and what it would find; None: it would refuse them."""
    check_free_here(request.options)
    _previous(request.options.previous)
    say("auditing; nothing is written")
    inputs, observed = _unwritten_inputs(request)
    for name, columns in inputs.unknown_columns.items():
        warn(f"{name} has unknown column(s), not read: {', '.join(columns)}")
    simulation = simulation_options(request.settings)
    checked = check_tables(inputs, max_queue_nums=simulation.max_queue_nums)
    found: list[AuditResult] = []

    def simulated() -> list[pa.RecordBatch]:
        with progress_of("groups judged") as progress:
            result, rejected = audit_unwritten(
                checked, simulation, observed, progress=progress, **request.judging
            )
        found.append(result)
        return rejected

    rows = row_forecast(checked, simulation, bad_row_limits(request.settings), simulated)
    return rows, None if rows.refusal is not None else found[0].counts()


def _ingested(
    request: AuditRequest, run: OutputRun, place: Place
) -> tuple[Place | None, list[dict[str, Any]]]:
    """Where the tables of a collection lie, and how each file was understood."""
    collection = request.collection
    if collection is None:
        return None, []
    say(f"reading {len(collection.files):,} files of {request.options.collection}")
    with progress_of("files") as progress:
        done = ingest_and_write(
            collection, place / INGESTED, request.assumed, before_writing=run.clear,
            progress=progress,
        )  # fmt: skip
    return place / INGESTED, understood(done.stats)


def _simulated(
    request: AuditRequest, ingested: Place | None, run: OutputRun, place: Place
) -> tuple[LedgerWritten, dict[str, pa.Table]]:
    """The ledger written, and every other table that the audit reads."""
    say("simulating")
    if ingested is None:
        source = request.options.input or ""
        inputs, observed = read_input_tables(source), read_observed(source)
        rejected = observed.rejected
    else:
        inputs, observed = stored_input_tables(ingested), stored_observed(ingested)
        rejected = pa.concat_tables([observed.rejected, read_written(ingested, "rejected")])
    with progress_of("groups") as progress:
        simulated = simulate_and_write(
            inputs,
            place,
            simulation_options(request.settings),
            ledger_config(request.settings, private=request.options.redact_clients),
            more_rejected=rejected,
            before_writing=run.clear if request.collection is None else None,
            warn=warn,
            progress=progress,
        )
    return simulated, {
        **simulated.checked.tables,
        **observed.tables,
        **_propagation(request.options.propagation),
    }


def _written(
    request: AuditRequest,
    result: AuditResult,
    simulated: LedgerWritten,
    place: Place,
    folder: Place,
) -> dict[str, TableWritten]:
    """Every table of the audit: the ledger is there already, or is written without client ids."""
    settings, ledger = request.settings.audit, simulated.tables
    if request.options.redact_clients:
        ledger = write_redacted_ledger(place, folder, settings.redact_salt)
    return {**ledger, **write_audit(result, folder, settings.findings_per_rule)}


def _propagation(location: str | None) -> dict[str, pa.Table]:
    """What `propagate` wrote there."""
    if location is None:
        return {}
    return {PROPAGATION.name: read_written(location, PROPAGATION.name)}


def _previous(location: str | None) -> PreviousAudit | None:
    """The audit that was written there."""
    if location is None:
        return None
    outcome = audit_record(folder_here(location))["audit"]
    return previous_audit(reader_of(location), outcome["end_ms"], outcome["findings"])


def _unwritten_inputs(request: AuditRequest) -> tuple[InputTables, Observed]:
    if request.collection is not None:
        return tables_of_collection(request.collection, request.assumed)
    source = request.options.input or ""
    return read_input_tables(source), read_observed(source)
