"""`audit` on Spark."""

from contextlib import ExitStack
from typing import Any

from rebalance_core.audit.verdict import Count
from rebalance_core.cli.audit.audit_output import (
    INGESTED,
    PRIVATE,
    WRITTEN,
    AuditOutput,
    AuditWritten,
)
from rebalance_core.cli.audit.previous_folder import audit_record
from rebalance_core.cli.audit.request import AuditRequest
from rebalance_core.cli.run.engine_settings import (
    bad_row_limits,
    ledger_config,
    simulation_options,
)
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.output_run import OutputRun
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.run.running_here import folder_here
from rebalance_core.cli.terminal import say, warn
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.contracts.propagation import PROPAGATION
from rebalance_core.engine.row_forecast import RowForecast
from rebalance_core.ingest.in_process import understood
from rebalance_core.spark import DataFrame, InputTables, SparkSession
from rebalance_core.spark.audit.audit import audit_tables
from rebalance_core.spark.audit.audited import Audited
from rebalance_core.spark.audit.previous_audit import PreviousAudit, previous_audit
from rebalance_core.spark.audit.unwritten import count_unwritten, tables_of_collection
from rebalance_core.spark.engine.row_forecast import row_forecast
from rebalance_core.spark.engine.simulate import simulate_checked
from rebalance_core.spark.engine.write_ledger import LedgerWritten, simulate_and_write, sized
from rebalance_core.spark.ingest.write_tables import ingest_and_write
from rebalance_core.spark.tables.check_rows import check_rows
from rebalance_core.spark.tables.hadoop_folder import HadoopFolder
from rebalance_core.spark.tables.observed import Observed, read_observed, stored_observed
from rebalance_core.spark.tables.written import read_written
from rebalance_core.storage.locations import is_here, object_store


def audit(request: AuditRequest) -> AuditWritten:
    """Ingest if need be, simulate, judge every group, write everything."""
    options = request.options
    with running("audit", options, request.settings, WRITTEN) as (run, session):
        place = run.folder.table_location(PRIVATE if options.redact_clients else "").rstrip("/")
        source, files = _ingested(session, request, run, place)
        simulated, tables = _simulated(session, request, source, run, place)
        say("judging every group")
        output = AuditOutput(request, run, session)
        with simulated, audit_tables(tables, **request.judging) as result:
            previous = _previous(session, options.previous)
            folder = run.folder.table_location("").rstrip("/")
            return output.write(
                Audited(session, result, tables, folder, previous), simulated, files
            )


def forecast(request: AuditRequest) -> tuple[RowForecast, list[Count] | None]:
    """What a run would make of its rows, and what it would find; None: it would refuse them."""
    options, settings = request.options, request.settings
    check_free("audit", options, settings)
    session = open_for("audit", options, settings)
    _previous(session, options.previous)
    say("auditing; nothing is written")
    with ExitStack() as kept:  # releases the rows that are kept meanwhile
        inputs, observed = _unwritten_inputs(session, request, kept)
        simulation = simulation_options(settings)
        checked, counts = check_rows(inputs, simulation.max_queue_nums, warn)
        kept.callback(checked.close)
        simulation = sized(simulation, counts, session)
        ledger = kept.enter_context(simulate_checked(checked, simulation))
        rows = row_forecast(checked, counts, bad_row_limits(settings), lambda: ledger.rejected)
        if rows.refusal is not None:
            return rows, None
        return rows, count_unwritten(checked, ledger, observed, **request.judging)


def _ingested(
    session: SparkSession, request: AuditRequest, run: OutputRun, place: str
) -> tuple[str, list[dict[str, Any]]]:
    """Where the tables to audit lie, and how each file was understood."""
    collection = request.collection
    if collection is None:
        return spark_location(request.options.input or ""), []
    say(f"reading {len(collection.files):,} files of {request.options.collection}")
    location = f"{place}/{INGESTED}"
    done = ingest_and_write(
        session, collection, location, request.assumed, before_writing=run.clear
    )
    return location, understood(done.stats)


def _simulated(
    session: SparkSession, request: AuditRequest, source: str, run: OutputRun, place: str
) -> tuple[LedgerWritten, dict[str, DataFrame]]:
    """The ledger written, and every table that the audit reads."""
    say("simulating")
    ingested = request.collection is not None
    inputs, observed = _inputs(session, source, ingested=ingested)
    rejected = observed.rejected
    if ingested:
        rejected = rejected.unionByName(read_written(session, source, "rejected"))
    simulated = simulate_and_write(
        session,
        inputs,
        place,
        simulation_options(request.settings),
        ledger_config(request.settings, private=request.options.redact_clients),
        more_rejected=rejected,
        before_writing=None if ingested else run.clear,
        warn=warn,
    )
    ledger = {name: read_written(session, place, name) for name in LEDGER_TABLES}
    tables = {**simulated.checked.tables, **observed.tables, **ledger}
    if request.options.propagation is not None:
        location = spark_location(request.options.propagation)
        tables[PROPAGATION.name] = read_written(session, location, PROPAGATION.name)
    return simulated, tables


def _inputs(
    session: SparkSession, source: str, *, ingested: bool = False
) -> tuple[InputTables, Observed]:
    """The tables that lie there: somebody's, or what this run ingested."""
    store = object_store(source) if ingested else None
    if store is None:
        return InputTables.read(session, source), read_observed(session, source)
    return InputTables.read_stored(session, store), stored_observed(session, store)


def _previous(session: SparkSession, location: str | None) -> PreviousAudit | None:
    """The audit that was written there."""
    if location is None:
        return None
    folder = folder_here(location) if is_here(location) else HadoopFolder(location, session)
    outcome = audit_record(folder)["audit"]
    return previous_audit(session, spark_location(location), outcome["end_ms"], outcome["findings"])


def _unwritten_inputs(
    session: SparkSession, request: AuditRequest, kept: ExitStack
) -> tuple[InputTables, Observed]:
    if request.collection is not None:
        return tables_of_collection(session, request.collection, request.assumed, kept)
    return _inputs(session, spark_location(request.options.input or ""))
