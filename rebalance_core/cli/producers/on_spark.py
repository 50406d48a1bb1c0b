"""`producers` on Spark."""

from collections.abc import Mapping

from rebalance_core.cli.producers.finish import WRITTEN, finish, results_options, say_begin
from rebalance_core.cli.producers.options import ProducersOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.settings import Settings, bad_row_limits
from rebalance_core.cli.terminal import warn
from rebalance_core.engine.options import RowForecast
from rebalance_core.engine.table_writer import ProducersWritten
from rebalance_core.spark import SparkSession
from rebalance_core.spark.producers import (
    read_results,
    replay_and_write,
    replay_forecast,
    simulate_and_write,
)
from rebalance_core.spark.tables.sources import GivenTables


def run(
    options: ProducersOptions, settings: Settings, inputs: Mapping[str, str]
) -> tuple[ProducersWritten, RunRecord]:
    """Write the tables and the record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: path or URI of each table; empty for a model.
    """
    with running("producers", options, settings, WRITTEN) as (its, session):
        records = [fingerprint(table, path, session) for table, path in inputs.items()]
        say_begin(options)
        output = its.folder.table_location("")
        if options.model is not None:
            written = simulate_and_write(
                session, options.model, options.versions, output, before_writing=its.clear
            )
        else:
            written = replay_and_write(
                session,
                _read(session, options, inputs),
                results_options(options),
                bad_row_limits(settings),
                output,
                before_writing=its.clear,
                warn=warn,
            )
        return written, finish(its, options, records, written)


def forecast(
    options: ProducersOptions, settings: Settings, inputs: Mapping[str, str]
) -> RowForecast | None:
    """How `run` would end for the rows of its input; null for a model."""
    check_free("producers", options, settings)
    if options.model is not None:
        return None
    session = open_for("producers", options, settings)
    tables = _read(session, options, inputs)
    limits = bad_row_limits(settings)
    return replay_forecast(session, tables, results_options(options), limits, warn)


def _read(
    session: SparkSession, options: ProducersOptions, inputs: Mapping[str, str]
) -> GivenTables:
    paths = {name: spark_location(path) for name, path in inputs.items()}
    return read_results(session, paths, options.input_format)
