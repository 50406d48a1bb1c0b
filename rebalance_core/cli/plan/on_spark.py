"""`plan` on Spark."""

from collections.abc import Mapping

from rebalance_core.cli.plan.finish import WRITTEN, finish, say_begin
from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import warn
from rebalance_core.contracts.paths import is_local
from rebalance_core.engine.options import RowForecast
from rebalance_core.planning.sweep.plan_options import PlanConfig, PlanResult
from rebalance_core.spark import DataFrame, InputTables, SparkSession
from rebalance_core.spark import plan as service
from rebalance_core.spark.plan import read_queue_rates


def plan(
    options: PlanOptions, settings: Settings, inputs: Mapping[str, str], config: PlanConfig
) -> tuple[PlanResult, RunRecord]:
    """Write the tables of the plan and its record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: path of each table that is given; empty for a remote folder.
        config: what to compute.
    """
    with running("plan", options, settings, WRITTEN) as (run, session):
        records = [fingerprint(table, path, session) for table, path in inputs.items()]
        tables, rates = _read(session, options, inputs)

        def begin(rows: Mapping[str, int]) -> None:
            run.clear()
            say_begin(options, rows)

        result = service.run_plan(
            session,
            tables,
            options.variants,
            run.folder.table_location(""),
            config,
            queue_rates=rates,
            before_writing=begin,
            warn=warn,
        )
        return result, finish(run, options, records, result)


def forecast(
    options: PlanOptions, settings: Settings, inputs: Mapping[str, str], config: PlanConfig
) -> tuple[RowForecast, tuple[str, ...]]:
    """How `plan` would end for the rows of its input, and its warnings; arguments as there."""
    check_free("plan", options, settings)
    session = open_for("plan", options, settings)
    tables, _ = _read(session, options, inputs)
    return service.plan_forecast(session, tables, options.variants, config, warn=warn)


def _read(
    session: SparkSession, options: PlanOptions, inputs: Mapping[str, str]
) -> tuple[InputTables, DataFrame | None]:
    """The recorded history, and the rates of queues, which are checked here."""
    folder = None if is_local(options.input) else options.input
    paths = {name: spark_location(path) for name, path in inputs.items()}
    tables = InputTables.read(session, folder, **paths, input_format=options.input_format)
    if options.queue_rates is None:
        return tables, None
    location, name = spark_location(options.queue_rates), f"--queue-rates {options.queue_rates}"
    return tables, read_queue_rates(session, location, options.input_format, name=name)
