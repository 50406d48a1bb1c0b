"""The `plan` job, from its settings to the run and its summary; with `--search`, the search for a
rollout.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from textwrap import wrap
from typing import TYPE_CHECKING, Any

from rebalance_core import report
from rebalance_core.cli import terminal
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.pictures import picture
from rebalance_core.cli.plan_expectations import (
    expectation_lines,
    judgement_of,
    refuse_unwritable_junit,
)
from rebalance_core.cli.plan_summary import dry_run_facts, plan_facts, render_dry_run, render_plan
from rebalance_core.cli.planning_options import PlanOptions
from rebalance_core.cli.run.backend import backend_of
from rebalance_core.cli.run.fitted import read_fit
from rebalance_core.cli.run.in_process import Backend
from rebalance_core.cli.run.input_files import check_readable, tables_of
from rebalance_core.cli.run.output_run import BESIDE_TABLES
from rebalance_core.cli.run.run_record import outcome_of
from rebalance_core.cli.settings import Settings, bad_row_limits, settings_of
from rebalance_core.cli.terminal import ExitCode, RowReport, joined, say, warn
from rebalance_core.contracts import PLAN_OUTPUT_TABLES, REJECTED, SEARCH_TABLES
from rebalance_core.contracts.bundled_files import bundled
from rebalance_core.planning.rollout.choice import DEFAULT_PLAN, Searched
from rebalance_core.planning.rollout.expectations import expectations_of
from rebalance_core.planning.rollout.search import EACH_GROUP, duration
from rebalance_core.planning.rollout.words import (
    listed,
    recommendation,
    texts_of,
    texts_of_groups,
)
from rebalance_core.planning.scenario.file import read_scenarios
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.planning.variants import idle_switches
from rebalance_core.process.plan import plan_forecast, read_queue_rates, run_plan
from rebalance_core.process.rollouts import run_search
from rebalance_core.timing.fit import Fit

if TYPE_CHECKING:
    from rebalance_core.planning.rollout.choice import PlanFigures


WRITTEN = (*PLAN_OUTPUT_TABLES, REJECTED.name)
PEAK = "peak_messages_per_second"


def run(options: PlanOptions) -> JobReport:
    """Run the job and return the report for stdout."""
    if options.list_scenarios:
        return _bundled_scenarios()
    settings = settings_of(options)
    if options.queue_rates is not None:
        check_readable("--queue-rates", options.queue_rates, options.input_format)
    refuse_unwritable_junit(options)
    inputs = tables_of(options.input, options.input_format)
    places = [*(inputs.values() or [options.input]), options.queue_rates]
    backend = backend_of("plan", options, settings, places)
    config = _config(options, settings, read_fit(backend, options.fit))
    if options.searched is not None and not options.dry_run:
        return run_searched(options, backend, config, inputs)
    if options.dry_run:
        backend.check_free()
        tables, _ = _read(backend, options, inputs)
        forecast, warnings = backend.run(plan_forecast, tables, options.variants, config, warn=warn)
        for warning in warnings:
            warn(warning)
        report = RowReport(forecast)
        facts = dry_run_facts(options, inputs, report)
        return JobReport(render_dry_run(facts, report), facts, report.exit_code)
    for warning in idle_switches(options.variants):
        warn(warning)
    with backend.running(WRITTEN) as output:
        records = backend.records(inputs)
        tables, rates = _read(backend, options, inputs)

        def begin(rows: Mapping[str, int]) -> None:
            output.clear()
            variants, events = len(options.variants), rows["cluster_events"]
            say(f"planning {variants:,} variants of {events:,} events")

        result = backend.run(
            run_plan,
            tables,
            options.variants,
            backend.output(),
            config,
            of="groups, each in every history",
            queue_rates=rates,
            before_writing=begin,
            warn=warn,
        )
        for warning in result.warnings:
            warn(warning)
        options = replace(options, variants=result.variants)
        judgement = judgement_of(options, result.expectations)
        code = judgement.exit_code
        outcome = outcome_of(result, records, seed=_only_seed(options), exit_code=code)
        record = output.finish(outcome)
        judgement.write(options.junit)
    _warn_of_rates(options, result)
    rows = {name: table.rows for name, table in result.tables.items()}
    seconds = record.seconds
    facts = plan_facts(
        options,
        result.scenarios,
        result.league,
        rows,
        seconds,
        backend.name,
        judgement=judgement,
        losses=result.losses,
        clock=config.clock,
    )
    return JobReport(render_plan(facts), facts, code)


def _bundled_scenarios() -> JobReport:
    """Return the bundled scenarios that `--scenario` accepts, each with its question."""
    names = bundled("scenarios")
    texts = {scenario.name: scenario.description for scenario in read_scenarios(names)}
    wide = max(map(len, texts))
    lines = [f"{name:<{wide}}  {text}" for name, text in texts.items()]
    return JobReport(joined(lines), {"job": "plan", "scenarios": texts})


def _read(backend: Backend, options: PlanOptions, inputs: Mapping[str, str]) -> tuple[Any, Any]:
    """Return the recorded history and the queues' rates, after checking the rates."""
    tables = backend.input_tables(inputs)
    if options.queue_rates is None:
        return tables, None
    place, name = backend.location(options.queue_rates), f"--queue-rates {options.queue_rates}"
    return tables, backend.run(read_queue_rates, place, options.input_format, name=name)


def _config(options: PlanOptions, settings: Settings, fit: Fit | None) -> PlanConfig:
    return PlanConfig(
        include_retry_topics=settings.include_retry_topics,
        group=options.group if options.searched is None else options.searched.groups,
        ownership_groups=settings.plan.ownership_groups,
        futures=settings.plan.futures,
        holder_futures=options.holder_seeds,
        handler_ms=options.handler_time,
        start_up_ms=options.start_up_time,
        rtt_us=options.rtt,
        fit=fit,
        max_queue_nums=settings.limits.max_queue_nums,
        bad_rows=bad_row_limits(settings),
    )


def _only_seed(options: PlanOptions) -> int | None:
    """Return the seed if there is only one; several seeds are in the arguments."""
    seeds = {history.seed for history in options.variants.histories}
    return seeds.pop() if len(seeds) == 1 else None


def _warn_of_rates(options: PlanOptions, result: Any) -> None:
    owned = [row for row in result.scenarios if not row["shared"]]
    if options.queue_rates and owned and not any(row[PEAK] is not None for row in owned):
        warn(
            f"--queue-rates {options.queue_rates}: no rate matches a queue that a member holds; "
            "check cluster, topic and broker names against the input"
        )


SEARCH_WRITTEN = (*SEARCH_TABLES, REJECTED.name, *BESIDE_TABLES["plan"])
PICTURE = "front.svg"
SHOWN_STRATEGIES = 12
HEADER = (
    "plan",
    "over after",
    "99 %",
    "read again",
    "99 %",
    "late >=",
    "99 %",
    "no owner s",
    "99 %",
    "double s",
    "99 %",
    "moves",
    "pods",
    "cost",
    "99 %",
)


def run_searched(
    options: PlanOptions, backend: Backend, config: PlanConfig, inputs: Mapping[str, str]
) -> JobReport:
    """Search, write and report the result; the exit code is 3 if a missed budget should fail the
    run.
    """
    with backend.running(SEARCH_WRITTEN) as output:
        records = backend.records(inputs)

        def begin(rows: Mapping[str, int]) -> None:
            output.clear()
            say(f"searching a rollout after {rows['cluster_events']:,} events")

        result = backend.run(
            run_search,
            backend.input_tables(inputs),
            options.searched,
            backend.output(),
            config,
            of="plays of a round",
            before_writing=begin,
            warn=warn,
        )
        for warning in result.facts["warnings"]:
            warn(warning)
        decided = result.facts["decided"]
        alone = decided[0].rollouts.search.decide == EACH_GROUP
        texts = texts_of_groups(decided) if alone else texts_of(decided[0]) | _picture(decided[0])
        for name, text in texts.items():
            (output.folder / name).write_text(text)
        missed = options.fail_on is not None and not all(searched.kept for searched in decided)
        expected = [row for searched in decided for row in expectations_of(searched).to_pylist()]
        judgement = judgement_of(options, expected)
        code = ExitCode.DIFFERENCES if missed else judgement.exit_code
        record = output.finish(outcome_of(result, records, exit_code=code))
        judgement.write(options.junit)
    rows = {name: table.rows for name, table in result.tables.items()}
    results = _results_of_groups(decided, rows) if alone else _results(decided[0], rows)
    results["decisions"] = [row for searched in decided for row in searched.decisions()]
    results["expectations"] = judgement.facts()
    facts = terminal.result_facts(
        "plan", options.output, results, record.seconds, backend.name, exit_code=code
    )
    return JobReport(render_decisions(facts) if alone else render(facts), facts, code)


def _results_of_groups(decided: Sequence[Searched], rows: Mapping[str, int]) -> dict[str, Any]:
    return {
        "plans": sum(len(searched.rows) for searched in decided),
        "groups": ["/".join(group.name) for each in decided for group in each.rollouts.groups],
        "within_budget": all(searched.kept for searched in decided),
        "files": list(texts_of_groups(decided)),
        "rows": dict(rows),
    }


DECISIONS_HEADER = (
    "group",
    "members",
    "plan",
    "budgets",
    "over after",
    "99 %",
    "read again",
    "late >=",
    "no owner s",
    "99 %",
    "cost",
    "default's",
)
SHOWN_DECISIONS = 100


def render_decisions(facts: Mapping[str, Any]) -> str:
    """Return the summary as text: the plan for each group, those that miss a budget first."""
    decisions = facts["decisions"]
    lines = [
        f"Rollouts in {facts['output']}: {len(decisions):,} groups, {facts['plans']:,} plans "
        f"({terminal.took(facts)})",
        "",
        "The plan chosen for each group; * the default of Kubernetes",
    ]
    ordered = sorted(decisions, key=lambda row: row["within_budget"])
    cells = [_decision_cells(row) for row in ordered[:SHOWN_DECISIONS]]
    lines += terminal.table(DECISIONS_HEADER, cells)
    if len(decisions) > SHOWN_DECISIONS:
        lines.append(f"  rollout_decisions has {len(decisions) - SHOWN_DECISIONS:,} more")
    lines += expectation_lines(facts["expectations"])
    lines += terminal.output_lines(facts["output"], [*facts["rows"], *facts["files"]])
    return terminal.joined(lines)


def _decision_cells(row: Mapping[str, Any]) -> list[str]:
    pause = f", pause {duration(row['pause_ms'])}" if row["pause_ms"] else ""
    return [
        f"{row['cluster']}/{row['consumer_group']}",
        f"{row['members']:,}",
        f"{'* ' if row['is_default'] else ''}surge {row['surge']}, unavailable "
        f"{row['unavailable']}{pause}",
        "kept" if row["within_budget"] else "MISSED",
        f"{row['finish_s_p50']:,.0f} s",
        f"{row['finish_s_p99']:,.0f} s",
        _known(row["read_again"], 0),
        _known(row["late_messages"], 0),
        _known(row["no_owner_queue_seconds"], 1),
        _known(row["no_owner_queue_seconds_p99"], 1),
        f"{row['cost']:,.2f}",
        f"{row['default_cost']:,.2f}",
    ]


def _picture(searched: Searched) -> dict[str, str]:
    """Return the figure of the front as SVG, keyed by its file name."""
    plans = searched.rollouts.plans
    ids = plans[searched.chosen].plan_id, plans[DEFAULT_PLAN].plan_id
    return picture(
        PICTURE, lambda: report.svg_text(report.draw_rollouts(searched.table.to_pylist(), *ids))
    )


def _results(searched: Searched, rows: Mapping[str, int]) -> dict[str, Any]:
    figures = partial(_figures_of_row, searched)
    return {
        "plans": len(searched.rows),
        "groups": ["/".join(group.name) for group in searched.rollouts.groups],
        "chosen": figures(searched.rows[searched.chosen]),
        "default": figures(searched.rows[DEFAULT_PLAN]),
        "within_budget": searched.kept,
        "priced": searched.rollouts.search.prices is not None,
        "recommendation": recommendation(searched),
        "front": [figures(row) for row in searched.rows if row["on_front"]],
        "listed": [figures(row) for row in listed(searched, SHOWN_STRATEGIES)],
        "files": list(texts_of(searched)),
        "rows": dict(rows),
    }


def _figures_of_row(searched: Searched, row: PlanFigures) -> dict[str, object]:
    figures = {name: value for name, value in row.items() if name != "plan"}
    return {"plan_id": searched.rollouts.plans[row["plan"]].plan_id} | figures


def render(facts: Mapping[str, Any]) -> str:
    """Return the summary as text: the recommendation, then the plans considered."""
    lines = [f"Rollout in {facts['output']}: {facts['plans']:,} plans ({terminal.took(facts)})", ""]
    for sentence in facts["recommendation"]:
        lines += wrap(sentence, terminal.WIDTH, break_on_hyphens=False)
    chosen = facts["chosen"]["plan_id"]
    cells = [_cells(row, row["plan_id"] == chosen) for row in facts["listed"]]
    header, width = HEADER, len(HEADER) - (0 if facts["priced"] else 2)
    lines += ["", "The chosen plan (*), the default of Kubernetes, the front"]
    lines += terminal.table(header[:width], [row[:width] for row in cells])
    lines += expectation_lines(facts["expectations"])
    lines += terminal.output_lines(facts["output"], [*facts["rows"], *facts["files"]])
    return terminal.joined(lines)


def _cells(row: Mapping[str, Any], is_chosen: bool) -> list[str]:
    pairs = [
        _known(row[f"{name}{percent}"], digits)
        for name, digits in (
            ("read_again", 0),
            ("late_messages", 0),
            ("no_owner_queue_seconds", 1),
            ("double_queue_seconds", 1),
        )
        for percent in ("", "_p99")
    ]
    return [
        f"{'* ' if is_chosen else ''}{row['plan_id']}",
        f"{row['finish_s_p50']:,.0f} s",
        f"{row['finish_s_p99']:,.0f} s",
        *pairs,
        f"{row['moves']:,.0f}",
        f"{row['peak_pods']:,}",
        f"{row['cost']:,.2f}",
        f"{row['cost_p99']:,.2f}",
    ]


def _known(value: float | None, digits: int) -> str:
    return "-" if value is None else f"{value:,.{digits}f}"
