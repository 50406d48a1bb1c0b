"""`simulate` in this process; needs no JVM."""

from collections.abc import Mapping

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.checks.input_tables import InputTables, read_input_tables
from rebalance_core.checks.row_checks import check_tables
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running_here import check_free_here, running_here
from rebalance_core.cli.settings import Settings, bad_row_limits, ledger_config
from rebalance_core.cli.simulate.finish import finish, say_begin
from rebalance_core.cli.simulate.options import SimulateOptions
from rebalance_core.cli.terminal import progress_of, warn
from rebalance_core.contracts import LEDGER_TABLES
from rebalance_core.engine.options import RowForecast, SimulationOptions
from rebalance_core.engine.table_writer import LedgerWritten
from rebalance_core.process.simulate import row_forecast, simulate_and_write
from rebalance_core.storage.place import place_of


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
        inputs: a local path for each table that is given.
        simulation: what to simulate.
    """
    with running_here("simulate", options, settings, LEDGER_TABLES) as run:
        records = [fingerprint(table, path) for table, path in inputs.items()]
        say_begin(records)
        with progress_of("groups") as progress:
            written = simulate_and_write(
                _read(options, inputs),
                place_of(options.output),
                simulation,
                ledger_config(settings),
                before_writing=run.clear,
                warn=warn,
                progress=progress,
            )
        return written, finish(run, records, written)


def forecast(
    options: SimulateOptions,
    settings: Settings,
    inputs: Mapping[str, str],
    simulation: SimulationOptions,
) -> RowForecast:
    """How `simulate` would end for the rows of its input; arguments as there."""
    check_free_here(options)
    tables = _read(options, inputs)
    for name, columns in tables.unknown_columns.items():
        warn(unknown_columns(name, columns))
    checked = check_tables(tables, max_queue_nums=simulation.max_queue_nums)
    return row_forecast(checked, simulation, bad_row_limits(settings))


def _read(options: SimulateOptions, inputs: Mapping[str, str]) -> InputTables:
    return read_input_tables(paths=inputs, input_format=options.input_format)
