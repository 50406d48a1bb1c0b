"""`plan`: settings, place, lock, run, record, summary, in this order. One run: every variant."""

from collections.abc import Mapping

from rebalance_core.cli.job import JobReport
from rebalance_core.cli.plan.input import plan_inputs
from rebalance_core.cli.plan.options import PlanOptions
from rebalance_core.cli.plan.summary import (
    dry_run_facts,
    plan_facts,
    render_dry_run,
    render_plan,
)
from rebalance_core.cli.run.row_report import RowReport
from rebalance_core.cli.run_on import SPARK, run_on_of
from rebalance_core.cli.settings import Settings, bad_row_limits, resolve_settings
from rebalance_core.cli.terminal import warn
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.variants import idle_switches

PEAK = "peak_messages_per_second"


def run_plan(options: PlanOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    inputs = plan_inputs(options)
    places = [*(inputs.values() or [options.input]), options.queue_rates]
    run_on = run_on_of(options, settings, places, [options.output])
    if run_on == SPARK:  # pyspark takes a second to import
        from rebalance_core.cli.plan import on_spark as carrier
    else:
        from rebalance_core.cli.plan import in_process as carrier  # type: ignore[no-redef]  # either has the same functions
    config = _config(options, settings)
    if options.dry_run:
        forecast, warnings = carrier.forecast(options, settings, inputs, config)
        for warning in warnings:
            warn(warning)
        return _dry_run(options, inputs, RowReport(forecast))
    for warning in idle_switches(options.variants):
        warn(warning)
    result, record = carrier.plan(options, settings, inputs, config)
    owned = [row for row in result.scenarios if not row["shared"]]
    if options.queue_rates and owned and not any(row[PEAK] is not None for row in owned):
        warn(
            f"--queue-rates {options.queue_rates}: no rate is of a queue that a member holds; do "
            "cluster, topic and broker names agree with the input's?"
        )
    rows = {name: table.rows for name, table in result.tables.items()}
    facts = plan_facts(options, result.scenarios, result.league, rows, record.seconds, run_on)
    return JobReport(render_plan(facts), facts)


def _dry_run(options: PlanOptions, inputs: Mapping[str, str], report: RowReport) -> JobReport:
    """What a run would compute, and how its rows, rates and edits would let it end."""
    facts = dry_run_facts(options, inputs, report)
    return JobReport(render_dry_run(facts, report), facts, report.exit_code)


def _config(options: PlanOptions, settings: Settings) -> PlanConfig:
    return PlanConfig(
        include_retry_topics=settings.include_retry_topics,
        group=options.group,
        ownership_groups=settings.plan.ownership_groups,
        futures=settings.plan.futures,
        max_queue_nums=settings.limits.max_queue_nums,
        bad_rows=bad_row_limits(settings),
    )
