"""`plan` in this process; needs no JVM."""

from collections.abc import Mapping

import pyarrow as pa

from rebalance_core.checks.input_tables import InputTables, read_input_tables
from rebalance_core.cli.plan.finish import WRITTEN, finish, say_begin
from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.run_record import RunRecord
from rebalance_core.cli.run.running_here import check_free_here, running_here
from rebalance_core.cli.settings import Settings
from rebalance_core.cli.terminal import progress_of, warn
from rebalance_core.contracts.paths import local_path
from rebalance_core.engine.options import RowForecast
from rebalance_core.planning.sweep.plan_options import PlanConfig, PlanResult
from rebalance_core.process.plan import run as service
from rebalance_core.process.plan.run import read_queue_rates
from rebalance_core.storage.place import place_of


def plan(
    options: PlanOptions, settings: Settings, inputs: Mapping[str, str], config: PlanConfig
) -> tuple[PlanResult, RunRecord]:
    """Write the tables of the plan and its record.

    Args:
        options: of the run.
        settings: of the run.
        inputs: a local path for each table that is given.
        config: what to compute.
    """
    with running_here("plan", options, settings, WRITTEN) as run:
        records = [fingerprint(table, path) for table, path in inputs.items()]
        tables, rates = _read(options, inputs)

        def begin(rows: Mapping[str, int]) -> None:
            run.clear()
            say_begin(options, rows)

        with progress_of("groups, each in every history") as progress:
            result = service.run_plan(
                tables,
                options.variants,
                place_of(options.output),
                config,
                queue_rates=rates,
                before_writing=begin,
                warn=warn,
                progress=progress,
            )
        return result, finish(run, options, records, result)


def forecast(
    options: PlanOptions, settings: Settings, inputs: Mapping[str, str], config: PlanConfig
) -> tuple[RowForecast, tuple[str, ...]]:
    """How `plan` would end for the rows of its input, and its warnings; arguments as there."""
    check_free_here(options)
    tables, _ = _read(options, inputs)
    return service.plan_forecast(tables, options.variants, config, warn=warn)


def _read(options: PlanOptions, inputs: Mapping[str, str]) -> tuple[InputTables, pa.Table | None]:
    """The recorded history, and the rates of queues, which are checked here."""
    tables = read_input_tables(paths=inputs, input_format=options.input_format)
    if options.queue_rates is None:
        return tables, None
    path, name = str(local_path(options.queue_rates)), f"--queue-rates {options.queue_rates}"
    return tables, read_queue_rates(path, options.input_format, name=name)
