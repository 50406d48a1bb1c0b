"""`simulate` on Spark."""

from collections.abc import Mapping
from contextlib import closing

from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.settings import Settings, bad_row_limits, ledger_config
from rebalance_core.cli.simulate.finish import finish, say_begin
from rebalance_core.cli.simulate.options import SimulateOptions
from rebalance_core.cli.terminal import warn
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.options import RowForecast, SimulationOptions, group_pattern
from rebalance_core.engine.routing import (
    UNDIVIDED,
    Interests,
    interests_of,
    refuse_no_group,
    routing_of,
)
from rebalance_core.engine.table_writer import LedgerWritten
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.ledger import rejected_rows, row_forecast, simulate_and_write, sized
from rebalance_core.spark.tables.checks import check_and_note


def simulate(
    options: SimulateOptions,
    settings: Settings,
    inputs: Mapping[str, str],
    simulation: SimulationOptions,
) -> tuple[LedgerWritten, RunRecord]:
    """Write the ledger and its record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: path or URI of each table that is given; empty for a remote folder.
        simulation: what to simulate.
    """
    with running("simulate", options, settings, LEDGER_TABLES) as (run, session):
        tables = _read(session, options, inputs)
        records = [fingerprint(t, p, session) for t, p in (inputs or tables.paths).items()]
        say_begin(records)
        written = simulate_and_write(
            session,
            tables,
            run.folder.table_location(""),
            simulation,
            ledger_config(settings),
            before_writing=run.clear,
            warn=warn,
        )
        return written, finish(run, records, written)


def forecast(
    options: SimulateOptions,
    settings: Settings,
    inputs: Mapping[str, str],
    simulation: SimulationOptions,
) -> RowForecast:
    """How `simulate` would end for the rows of its input; arguments as there."""
    check_free("simulate", options, settings)
    session = open_for("simulate", options, settings)
    tables = _read(session, options, inputs)
    checked, counted = check_and_note(tables, simulation.max_queue_nums, (interests_of,), warn)
    with closing(checked):
        tasks = sized(simulation, counted.rows, session).partitions or 1
        routing = routing_of(counted.noted(Interests), tasks, group_pattern(simulation), UNDIVIDED)
        return row_forecast(
            checked,
            counted.rows,
            bad_row_limits(settings),
            lambda: rejected_rows(checked, routing, simulation),
            lambda: refuse_no_group(simulation.group, counted.noted(Interests)),
        )


def _read(
    session: SparkSession, options: SimulateOptions, inputs: Mapping[str, str]
) -> InputTables:
    """The input tables, lazy. Local ones were found by name already; a remote folder is listed."""
    remote = options.input if options.input is not None and not inputs else None
    paths = {name: spark_location(path) for name, path in inputs.items()}
    return InputTables.read(session, remote, **paths, input_format=options.input_format)
