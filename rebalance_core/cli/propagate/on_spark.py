"""`propagate` on Spark."""

from collections.abc import Mapping

from rebalance_core.cli.propagate.finish import finish, propagation_options, say_begin
from rebalance_core.cli.propagate.options import PropagateOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.settings import Settings, bad_row_limits
from rebalance_core.cli.terminal import warn
from rebalance_core.contracts import REJECTED
from rebalance_core.contracts.propagation import PROPAGATION_TABLES
from rebalance_core.engine.table_writer import PropagationForecast, PropagationWritten
from rebalance_core.spark import InputTables, SparkSession
from rebalance_core.spark.propagate import propagate_and_write, propagation_forecast

WRITTEN = (*PROPAGATION_TABLES, REJECTED.name)


def run(
    options: PropagateOptions, settings: Settings, inputs: Mapping[str, str]
) -> tuple[PropagationWritten, RunRecord]:
    """Write the tables and the record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: path of each table that is given; empty for a remote folder.
    """
    with running("propagate", options, settings, WRITTEN) as (its, session):
        tables = _read(session, options, inputs)
        records = [fingerprint(t, p, session) for t, p in (inputs or tables.paths).items()]
        say_begin(options, records)
        written = propagate_and_write(
            session,
            tables,
            its.folder.table_location(""),
            propagation_options(options, settings),
            bad_row_limits(settings),
            before_writing=its.clear,
            warn=warn,
        )
        return written, finish(its, options, records, written)


def forecast(
    options: PropagateOptions, settings: Settings, inputs: Mapping[str, str]
) -> PropagationForecast:
    """How `run` would end for the rows of its input, and how much it would do."""
    check_free("propagate", options, settings)
    session = open_for("propagate", options, settings)
    return propagation_forecast(
        session,
        _read(session, options, inputs),
        propagation_options(options, settings),
        bad_row_limits(settings),
        warn,
    )


def _read(
    session: SparkSession, options: PropagateOptions, inputs: Mapping[str, str]
) -> InputTables:
    """The input tables, lazy. Local ones were found by name already; a remote folder is listed."""
    remote = options.input if not inputs else None
    paths = {name: spark_location(path) for name, path in inputs.items()}
    return InputTables.read(session, remote, **paths, input_format=options.input_format)
