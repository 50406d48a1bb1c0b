"""`generate`: settings, plan, lock, tables, record, summary, in this order."""

from dataclasses import asdict
from typing import Any

from rebalance_core.cli.generate.options import GenerateOptions
from rebalance_core.cli.generate.summary import generate_facts, render_generate, render_plan
from rebalance_core.cli.job import JobReport
from rebalance_core.cli.run.output_run import Outcome
from rebalance_core.cli.run.run_record import table_records
from rebalance_core.cli.run.running import check_free, running
from rebalance_core.cli.run.session import versions
from rebalance_core.cli.settings.settings import Settings, resolve_settings
from rebalance_core.cli.terminal import say
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.spark.generate import generate_and_write
from rebalance_core.synthetic.fleet import FleetPlan


def run_generate(options: GenerateOptions) -> JobReport:
    """Run the job; the report for stdout."""
    settings = resolve_settings(options.config, options.set)
    plan = FleetPlan(
        groups=options.groups, days=options.days, seed=options.seed, **asdict(settings.generate)
    )
    if options.dry_run:
        return _dry_run(options, settings, plan)
    with running("generate", options, settings, INPUT_TABLES) as (run, session):
        say(f"generating {plan.groups:,} groups x {plan.days:,} days, seed {plan.seed}")
        written = generate_and_write(
            session, plan, run.folder.table_location(""), before_writing=run.clear
        )
        outputs = table_records(written.tables)
        record = run.finish(Outcome(outputs=outputs, versions=versions(session), seed=plan.seed))
    rows = {name: table.rows for name, table in outputs.items()}
    facts = generate_facts(options.output, plan, rows, written.events, record.seconds)
    return JobReport(render_generate(facts), facts)


def _dry_run(options: GenerateOptions, settings: Settings, plan: FleetPlan) -> JobReport:
    """The plan, and whether the output could be written; no Spark."""
    check_free("generate", options, settings)
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
