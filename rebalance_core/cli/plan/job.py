"""`plan`: what if, under which strategy. One application computes every variant."""

from collections.abc import Mapping
from dataclasses import replace

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.plan.input import plan_inputs
from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.plan.summary import (
    dry_run_facts,
    plan_facts,
    render_dry_run,
    render_plan,
)
from rebalance_core.cli.run.engine_settings import bad_row_limits
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import spark_location
from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run.run_record import InputRecord, table_records
from rebalance_core.cli.run.running import check_free, open_for, running
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.terminal import say, warn
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED
from rebalance_core.contracts.locations import is_local
from rebalance_core.planning.variants import idle_switches
from rebalance_core.spark import DataFrame, InputTables, SparkSession
from rebalance_core.spark.plan import run as service
from rebalance_core.spark.plan.queue_rates import read_queue_rates

WRITTEN = (*PLAN_OUTPUT_TABLES, REJECTED.name)


def run_plan(options: PlanOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    inputs = plan_inputs(options)
    if options.dry_run:
        return _dry_run(options, settings, inputs)
    for warning in idle_switches(options.variants):
        warn(warning)
    with running("plan", options, settings, WRITTEN) as (run, session):
        records = [fingerprint(table, path, session) for table, path in inputs.items()]
        result = _write_plan(session, run, options, settings, inputs)
        record = run.finish(
            Outcome(
                outputs=table_records(result.tables),
                inputs=[_with_rows(item, result.input_rows) for item in records],
                rejected=result.rejected,
                versions=versions(session),
                seed=_only_seed(options),
            )
        )
    rows = {name: table.rows for name, table in result.tables.items()}
    facts = plan_facts(options, result.scenarios, result.league, rows, record.seconds)
    return JobReport(render_plan(facts), facts)


def _dry_run(options: PlanOptions, settings: Settings, inputs: Mapping[str, str]) -> JobReport:
    """What a run would compute, and how its rows, rates and edits would let it end."""
    check_free("plan", options, settings)
    session = open_for("plan", options, settings)
    tables, _ = _read_input(session, options, inputs)
    forecast, warnings = service.plan_forecast(
        session, tables, options.variants, _config(options, settings), warn=warn
    )
    for warning in warnings:
        warn(warning)
    report = RowReport(forecast)
    facts = dry_run_facts(options, inputs, report)
    return JobReport(render_dry_run(facts, report), facts, report.exit_code)


def _write_plan(
    session: SparkSession,
    run: OutputRun,
    options: PlanOptions,
    settings: Settings,
    inputs: Mapping[str, str],
) -> service.PlanResult:
    """Compute the plan and write its tables into the output folder; warnings go to stderr."""
    tables, rates = _read_input(session, options, inputs)

    def begin(rows: Mapping[str, int]) -> None:
        run.clear()
        variants, events = len(options.variants), rows["cluster_events"]
        say(f"planning {variants:,} variants of {events:,} events")

    result = service.run_plan(
        session,
        tables,
        options.variants,
        run.folder.table_location(""),
        _config(options, settings),
        queue_rates=rates,
        before_writing=begin,
        warn=warn,
    )
    for warning in result.warnings:
        warn(warning)
    return result


def _read_input(
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


def _config(options: PlanOptions, settings: Settings) -> service.PlanConfig:
    return service.PlanConfig(
        include_retry_topics=settings.include_retry_topics,
        group=options.group,
        ownership_groups=settings.plan.ownership_groups,
        max_queue_nums=settings.limits.max_queue_nums,
        bad_rows=bad_row_limits(settings),
    )


def _only_seed(options: PlanOptions) -> int | None:
    """The seed, if there is but one; several are in the arguments."""
    seeds = {history.seed for history in options.variants.histories}
    return seeds.pop() if len(seeds) == 1 else None


def _with_rows(record: InputRecord, rows: Mapping[str, int]) -> InputRecord:
    return replace(record, rows=rows[record.table]) if record.table in rows else record
