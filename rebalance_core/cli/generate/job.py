"""`generate`: settings, plan, place, tables, record, summary, in this order."""

from dataclasses import asdict
from types import ModuleType
from typing import Any

from rebalance_core.cli.generate.options import GenerateOptions
from rebalance_core.cli.generate.summary import generate_facts, render_generate, render_plan
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run_on import AUTO, SPARK, run_on_of
from rebalance_core.cli.settings import Settings, resolve_settings
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.synthetic.fleet import FleetPlan

ROWS_IN_PROCESS = 5_000_000
"""A fleet of more rows, about a minute's work of one processor, is made on Spark."""


def run_generate(options: GenerateOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    plan = FleetPlan(
        groups=options.groups, days=options.days, seed=options.seed, **asdict(settings.generate)
    )
    run_on = _run_on(options, settings, plan)
    carrier = _carrier(run_on)
    if options.dry_run:
        carrier.check(options, settings)
        return _dry_run(options, plan)
    written, record = carrier.generate(options, settings, plan)
    rows = {name: table.rows for name, table in written.tables.items()}
    facts = generate_facts(options.output, plan, rows, written.events, record.seconds, run_on)
    return JobReport(render_generate(facts), facts)


def _run_on(options: GenerateOptions, settings: Settings, plan: FleetPlan) -> str:
    """Where the run takes place: by what is to be written, as nothing is read."""
    rows = sum(plan.expected_rows().values())
    if options.run_on == AUTO and rows > ROWS_IN_PROCESS:
        return SPARK
    return run_on_of(options, settings, [], [options.output])


def _carrier(run_on: str) -> ModuleType:
    """What runs the job there; pyspark takes a second to import."""
    if run_on == SPARK:
        from rebalance_core.cli.generate import on_spark

        return on_spark
    from rebalance_core.cli.generate import in_process

    return in_process


def _dry_run(options: GenerateOptions, plan: FleetPlan) -> JobReport:
    """The plan."""
    facts: dict[str, Any] = {
        "job": "generate",
        "dry_run": True,
        "exit_code": 0,
        "plan": plan.facts(),
        "expected_rows": plan.expected_rows(),
        "output": options.output,
        "tables": list(INPUT_TABLES),
    }
    return JobReport(render_plan(facts), facts)
