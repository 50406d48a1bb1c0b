"""`plan --search`: the rollout that hurts least, told, drawn, and as files to deploy with."""

from collections.abc import Mapping
from functools import partial
from textwrap import wrap
from typing import Any

from rebalance_core.cli import terminal
from rebalance_core.cli.jobs import JobReport
from rebalance_core.cli.planning_options import PlanOptions
from rebalance_core.cli.run.in_process import Carrier
from rebalance_core.cli.run.run_record import BESIDE_TABLES, outcome_of
from rebalance_core.cli.terminal import ExitCode, missing_package, say, warn
from rebalance_core.contracts import REJECTED, SEARCH_TABLES
from rebalance_core.planning.rollout.choice import DEFAULT_PLAN, Row, Searched
from rebalance_core.planning.rollout.words import listed, recommendation, texts_of
from rebalance_core.planning.sweep.plan_options import PlanConfig
from rebalance_core.process.rollouts import SEARCHED, WARNINGS

WRITTEN = (*SEARCH_TABLES, REJECTED.name, *BESIDE_TABLES["plan"])
PICTURE = "front.svg"
LISTED = 12
HEADER = (
    "plan", "over after", "99 %", "read again", "no owner s", "double s", "moves", "members",
    "cost",
)  # fmt: skip


def run_searched(
    options: PlanOptions, carrier: Carrier, config: PlanConfig, inputs: Mapping[str, str]
) -> JobReport:
    """Search, write what was found, and say it; exit 3 where a budget is missed and that fails."""
    services = carrier.services("rollouts")
    with carrier.running(WRITTEN) as output:
        records = carrier.records(inputs)

        def begin(rows: Mapping[str, int]) -> None:
            output.clear()
            say(f"searching a rollout after {rows['cluster_events']:,} events")

        result = carrier.call(
            services.run_search,
            carrier.input_tables(inputs),
            options.searched,
            carrier.output(),
            config,
            of="plays of a round",
            before_writing=begin,
            warn=warn,
        )
        for warning in result.facts[WARNINGS]:
            warn(warning)
        searched: Searched = result.facts[SEARCHED]
        for name, text in (texts_of(searched) | _picture(searched)).items():
            (output.folder / name).write_text(text)
        record = output.finish(outcome_of(result, records))
    missed = options.fail_on is not None and not searched.kept
    code = ExitCode.DIFFERENCES if missed else ExitCode.OK
    rows = {name: table.rows for name, table in result.tables.items()}
    found = _found(searched, rows)
    facts = terminal.result_facts(
        "plan", options.output, found, record.seconds, carrier.name, exit_code=code
    )
    return JobReport(render(facts), facts, code)


def _picture(searched: Searched) -> dict[str, str]:
    """The front as SVG; without matplotlib none."""
    try:
        from rebalance_core.report import draw_rollouts, svg_text

        plans = searched.rollouts.plans
        ids = plans[searched.chosen].plan_id, plans[DEFAULT_PLAN].plan_id
        return {PICTURE: svg_text(draw_rollouts(searched.table.to_pylist(), *ids))}
    except ModuleNotFoundError as error:
        reason = missing_package(error)
        if reason is None:
            raise
        warn(f"no {PICTURE}: {reason}")
        return {}


def _found(searched: Searched, rows: Mapping[str, int]) -> dict[str, Any]:
    figures = partial(_told, searched)
    return {
        "plans": len(searched.rows),
        "groups": ["/".join(group.name) for group in searched.rollouts.groups],
        "chosen": figures(searched.rows[searched.chosen]),
        "default": figures(searched.rows[DEFAULT_PLAN]),
        "within_budget": searched.kept,
        "recommendation": recommendation(searched),
        "front": [figures(row) for row in searched.rows if row["on_front"]],
        "listed": [figures(row) for row in listed(searched, LISTED)],
        "files": list(texts_of(searched)),
        "rows": dict(rows),
    }


def _told(searched: Searched, row: Row) -> Row:
    figures = {name: value for name, value in row.items() if name != "plan"}
    return {"plan_id": searched.rollouts.plans[row["plan"]].plan_id} | figures


def render(facts: Mapping[str, Any]) -> str:
    """Write the summary for a person: the recommendation, then the plans it was chosen from."""
    lines = [f"Rollout in {facts['output']}: {facts['plans']:,} plans ({terminal.took(facts)})", ""]
    for sentence in facts["recommendation"]:
        lines += wrap(sentence, terminal.WIDTH, break_on_hyphens=False)
    chosen = facts["chosen"]["plan_id"]
    cells = [_cells(row, row["plan_id"] == chosen) for row in facts["listed"]]
    header, width = HEADER, len(HEADER) - (facts["chosen"]["cost"] is None)
    lines += ["", "The chosen plan (*), the default of Kubernetes, the front"]
    lines += terminal.table(header[:width], [row[:width] for row in cells])
    lines += terminal.output_lines(facts["output"], [*facts["rows"], *facts["files"]])
    return terminal.joined(lines)


def _cells(row: Mapping[str, Any], is_chosen: bool) -> list[str]:
    again, cost = row["read_again"], row["cost"]
    return [
        f"{'* ' if is_chosen else ''}{row['plan_id']}",
        f"{row['finish_s_p50']:,.0f} s",
        f"{row['finish_s_p99']:,.0f} s",
        "-" if again is None else f"{again:,.0f}",
        f"{row['no_owner_queue_seconds']:,.1f}",
        f"{row['double_queue_seconds']:,.1f}",
        f"{row['moves']:,.0f}",
        f"{row['peak_members']:,}",
        "-" if cost is None else f"{cost:,.2f}",
    ]
