"""`propagate` in this process and others that it starts; needs no JVM."""

from collections.abc import Mapping

from rebalance_core.checks.input_tables import InputTables, read_input_tables
from rebalance_core.cli.propagate.finish import finish, propagation_options, say_begin
from rebalance_core.cli.propagate.options import PropagateOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running_here import check_free_here, running_here
from rebalance_core.cli.settings import Settings, bad_row_limits
from rebalance_core.cli.terminal import progress_of, warn
from rebalance_core.engine.table_writer import PropagationForecast, PropagationWritten
from rebalance_core.process.propagate import WRITTEN, propagate_and_write, propagation_forecast
from rebalance_core.storage.place import place_of


def run(
    options: PropagateOptions, settings: Settings, inputs: Mapping[str, str]
) -> tuple[PropagationWritten, RunRecord]:
    """Write the tables and the record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: a local path for each table that is given.
    """
    with running_here("propagate", options, settings, WRITTEN) as running:
        records = [fingerprint(table, path) for table, path in inputs.items()]
        say_begin(options, records)
        with progress_of("pieces of work") as progress:
            written = propagate_and_write(
                _read(options, inputs),
                place_of(options.output),
                propagation_options(options, settings),
                bad_row_limits(settings),
                before_writing=running.clear,
                warn=warn,
                progress=progress,
            )
        return written, finish(running, options, records, written)


def forecast(
    options: PropagateOptions, settings: Settings, inputs: Mapping[str, str]
) -> PropagationForecast:
    """How `run` would end for the rows of its input, and how much it would do."""
    check_free_here(options)
    return propagation_forecast(
        _read(options, inputs),
        propagation_options(options, settings),
        bad_row_limits(settings),
        warn,
    )


def _read(options: PropagateOptions, inputs: Mapping[str, str]) -> InputTables:
    return read_input_tables(paths=inputs, input_format=options.input_format)
