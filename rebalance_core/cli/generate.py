"""The `generate` job, which writes a synthetic fleet."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from rebalance_core.checks.digest import TableWritten
from rebalance_core.cli.job_options import GenerateOptions
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.run_record import Origin, RunOutcome
from rebalance_core.cli.settings import settings_of
from rebalance_core.cli.terminal import DRY_RUN, numbers, output_lines, result_facts, say, took, utc
from rebalance_core.contracts import INPUT_TABLES
from rebalance_core.model.nouns import counted
from rebalance_core.process.generate import generate_and_write
from rebalance_core.synthetic.fleet import FleetPlan
from rebalance_core.synthetic.names import cluster_name

ROWS_IN_PROCESS = 5_000_000
"""Fleets with more rows than this (about a minute of CPU time) are generated on Spark."""


def run(options: GenerateOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    settings = settings_of(options)
    plan = FleetPlan(
        groups=options.groups, days=options.days, seed=options.seed, **asdict(settings.generate)
    )
    large = sum(plan.expected_rows().values()) > ROWS_IN_PROCESS
    backend = backend_of("generate", options, settings, large=large)
    if options.dry_run:
        backend.check_free()
        return _dry_run(options, plan)
    with backend.running(INPUT_TABLES) as output:
        say(f"generating {plan.groups:,} groups x {plan.days:,} days, seed {plan.seed}")
        written = backend.run(
            generate_and_write, plan, backend.output(), before_writing=output.clear
        )
        record = output.finish(
            RunOutcome(written.tables, _origin(plan, written.tables), seed=plan.seed)
        )
    rows = {name: table.rows for name, table in written.tables.items()}
    facts = _facts(options.output, plan, rows, written.facts, record.seconds, backend.name)
    return JobReport(_render(facts), facts)


def _origin(plan: FleetPlan, outputs: Mapping[str, TableWritten]) -> Origin:
    digests = {name: table.digest for name, table in outputs.items()}
    clusters = [cluster_name(number) for number in range(plan.clusters)]
    return Origin(digests, clusters, plan.start_ms, plan.end_ms)


def _dry_run(options: GenerateOptions, plan: FleetPlan) -> JobReport:
    """Return the plan, and its approximate number of rows."""
    facts: dict[str, Any] = {
        "job": "generate",
        "dry_run": True,
        "exit_code": 0,
        "plan": plan.facts(),
        "expected_rows": plan.expected_rows(),
        "output": options.output,
        "tables": list(INPUT_TABLES),
    }
    shown = facts["plan"]
    names = ("groups", "clusters", "topics", "groups_per_cluster", "offset_hours", "offset_looks")
    lines = [*DRY_RUN, _span(shown), "", *numbers({name: shown[name] for name in names})]
    lines += ["", "Rows, about", *numbers(facts["expected_rows"])]
    lines += output_lines(facts["output"], facts["tables"])
    return JobReport("\n".join(lines), facts)


def _facts(
    output: str,
    plan: FleetPlan,
    rows: Mapping[str, int],
    events_by_type: Mapping[str, int],
    seconds: float,
    run_on: str,
) -> dict[str, Any]:
    by_count = sorted(events_by_type.items(), key=lambda item: (-item[1], item[0]))
    results = {**plan.facts(), "rows": dict(rows), "events_by_type": dict(by_count)}
    return result_facts("generate", output, results, seconds, run_on)


def _render(facts: Mapping[str, Any]) -> str:
    """Return the number of entities of each kind, and the events by type."""
    lines = [
        f"Fleet in {facts['output']} ({took(facts)})",
        _span(facts),
        "",
        *numbers({name: facts[name] for name in ("groups", "clusters", "topics")}),
        "",
        "Rows",
        *numbers(facts["rows"]),
        "",
        "Events",
    ]
    events = facts["events_by_type"]
    total = sum(events.values())
    return "\n".join(
        [*lines, *numbers(events, {name: f"{n / total:6.2%}" for name, n in events.items()})]
    )


def _span(plan: Mapping[str, Any]) -> str:
    days = counted(plan["days"], "day")
    return f"{utc(plan['start_ms'])} to {utc(plan['end_ms'])}, {days}, seed {plan['seed']}"
