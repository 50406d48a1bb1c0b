"""`plan`: what if, under which strategy. One application computes every variant."""

from collections.abc import Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.plan.input import plan_inputs
from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.plan.summary import (
    dry_run_facts,
    plan_facts,
    render_dry_run,
    render_plan,
)
from rebalance_core.cli.run.input_files import fingerprint
from rebalance_core.cli.run.output_folder import is_local, spark_location
from rebalance_core.cli.run.output_run import Outcome, OutputRun
from rebalance_core.cli.run.run_record import InputRecord, TableRecord
from rebalance_core.cli.run.running import check_free, running, say
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED

if TYPE_CHECKING:
    from rebalance_core.spark.plan.run import PlanConfig, PlanResult

WRITTEN = (*PLAN_OUTPUT_TABLES, REJECTED.name)


def run_plan(options: PlanOptions) -> JobReport:
    """Run the job; the report for stdout."""
    from rebalance_core.planning.variants import idle_switches

    settings = resolve_settings(options.config, options.set)
    inputs = plan_inputs(options)
    if options.dry_run:
        check_free(options)
        facts = dry_run_facts(options, inputs)
        return JobReport(render_dry_run(facts), facts)
    for warning in idle_switches(options.variants):
        say(f"warning: {warning}")
    with running("plan", options, settings, WRITTEN) as (run, session):
        records = [fingerprint(table, path, session) for table, path in inputs.items()]
        result = _write_plan(session, run, options, settings, inputs)
        record = run.finish(
            Outcome(
                outputs={n: TableRecord(t.rows, t.digest) for n, t in result.tables.items()},
                inputs=[_with_rows(item, result.input_rows) for item in records],
                rejected=result.rejected,
                versions=versions(session),
                seed=_only_seed(options),
            )
        )
    rows = {name: table.rows for name, table in result.tables.items()}
    facts = plan_facts(options, result.scenarios, result.league, rows, record.seconds)
    return JobReport(render_plan(facts), facts)


def _write_plan(
    session: Any,
    run: OutputRun,
    options: PlanOptions,
    settings: Settings,
    inputs: Mapping[str, str],
) -> "PlanResult":
    """Compute the plan and write its tables into the output folder; warnings go to stderr."""
    from rebalance_core.spark import InputTables
    from rebalance_core.spark.plan import run as service
    from rebalance_core.spark.plan.queue_rates import read_queue_rates

    folder = None if is_local(options.input) else options.input
    paths = {name: spark_location(path) for name, path in inputs.items()}
    tables = InputTables.read(session, folder, **paths, input_format=options.input_format)
    for table, columns in tables.unknown_columns().items():
        say(f"warning: {table} has unknown column(s), not read: {', '.join(columns)}")
    rates = None
    if options.queue_rates is not None:
        location, name = spark_location(options.queue_rates), f"--queue-rates {options.queue_rates}"
        rates = read_queue_rates(session, location, options.input_format, name=name)

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
    )
    for warning in result.warnings:
        say(f"warning: {warning}")
    return result


def _config(options: PlanOptions, settings: Settings) -> "PlanConfig":
    from rebalance_core.spark.plan.run import PlanConfig
    from rebalance_core.spark.tables.row_counts import BadRowLimits

    return PlanConfig(
        include_retry_topics=settings.include_retry_topics,
        group=options.group,
        ownership_groups=settings.plan.ownership_groups,
        max_queue_nums=settings.limits.max_queue_nums,
        bad_rows=BadRowLimits(settings.on_bad_rows, settings.max_bad_share),
    )


def _only_seed(options: PlanOptions) -> int | None:
    """The seed, if there is but one; several are in the arguments."""
    seeds = {history.seed for history in options.variants.histories}
    return seeds.pop() if len(seeds) == 1 else None


def _with_rows(record: InputRecord, rows: Mapping[str, int]) -> InputRecord:
    return replace(record, rows=rows[record.table]) if record.table in rows else record
