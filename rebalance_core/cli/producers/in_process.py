"""`producers` in this process; needs no JVM."""

from collections.abc import Mapping

import pyarrow as pa

from rebalance_core.checks.conform import unknown_columns
from rebalance_core.cli.producers.finish import WRITTEN, finish, results_options, say_begin
from rebalance_core.cli.producers.options import ProducersOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running_here import check_free_here, running_here
from rebalance_core.cli.settings import Settings, bad_row_limits
from rebalance_core.cli.terminal import progress_of, warn
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.table_writer import ProducersWritten
from rebalance_core.process.producers import (
    read_results,
    replay_and_write,
    replay_forecast,
    simulate_and_write,
)
from rebalance_core.storage.place import place_of


def run(
    options: ProducersOptions, settings: Settings, inputs: Mapping[str, str]
) -> tuple[ProducersWritten, RunRecord]:
    """Write the tables and the record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: a local path for each table; empty for a model.
    """
    with running_here("producers", options, settings, WRITTEN) as running:
        records = [fingerprint(table, path) for table, path in inputs.items()]
        say_begin(options)
        output = place_of(options.output)
        if options.model is not None:
            with progress_of("producers") as progress:
                written = simulate_and_write(
                    options.model,
                    options.versions,
                    output,
                    before_writing=running.clear,
                    progress=progress,
                )
        else:
            written = replay_and_write(
                _read(options, inputs),
                results_options(options),
                bad_row_limits(settings),
                output,
                before_writing=running.clear,
            )
        return written, finish(running, options, records, written)


def forecast(
    options: ProducersOptions, settings: Settings, inputs: Mapping[str, str]
) -> RowForecast | None:
    """How `run` would end for the rows of its input; null for a model."""
    check_free_here(options)
    if options.model is not None:
        return None
    return replay_forecast(
        _read(options, inputs), results_options(options), bad_row_limits(settings)
    )


def _read(options: ProducersOptions, inputs: Mapping[str, str]) -> dict[str, pa.Table]:
    tables, unknown = read_results(inputs, options.input_format)
    for name, columns in unknown.items():
        warn(unknown_columns(name, columns))
    return tables
