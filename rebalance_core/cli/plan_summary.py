"""The summary of a plan, as text and as JSON."""

from collections.abc import Iterator, Mapping, Sequence
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypedDict

from rebalance_core.cli import terminal
from rebalance_core.cli.plan_expectations import NOTHING_EXPECTED, Judgement, expectation_lines
from rebalance_core.cli.planning_options import PlanOptions
from rebalance_core.cli.terminal import RowReport
from rebalance_core.model.nouns import counted
from rebalance_core.planning.movement import best_of, possible
from rebalance_core.planning.sweep.plan_options import ScenarioRow
from rebalance_core.planning.variants import History, is_popped
from rebalance_core.process.plan_losses import suffering
from rebalance_core.timing.options import ClockOptions

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import LossesRow, PlanLeagueRow

NOT_OURS = " (not RocketMQ's)"
BEST = "*"
HEADER = (
    "strategy",
    "moved",
    "minimum",
    "amplif.",
    "mean peak ratio",
    "idle",
    "orphaned",
    "skipped",
    "left unread",
)
LEAGUE_HEADER = (
    "strategy",
    "moved",
    "per step",
    "minimum",
    "amplif.",
    "sticky",
    "mean peak",
    "worst",
    "idle",
    "orphaned",
)


TIMED_HEADER = ("until changes settle", "orphan s", "double s", "read again", "settled after")
"""The headings for means over the simulated futures."""
SHARED_HEADER = (
    "shared queues",
    "queues",
    "clients per queue",
    "unreached",
    "idle",
    "again after a death",
    "cannot pop",
)

PROXY_HEADER = ("until proxies are back", "clients", "a message waits", "comes again within")


# The meaning of the headings, printed below the tables.
HEADINGS = (
    "moved: queues that received an owner, either from another owner or because they are new; "
    "minimum: the fewest moves that give a balanced result; amplif.: moved / minimum. mean peak "
    "ratio: queues of the busiest member / the mean, 1.00 is even. idle: members without a "
    "queue; orphaned: queues without an owner. skipped: messages never read because of the "
    "offsets at which owners start; left unread: messages in queues that are readable before the "
    "change but not after. orphan s, double s: queues x seconds without an owner and with two, "
    "while members act one by one; read again: messages that a second owner reads meanwhile; "
    "settled after: in 99 % of the simulated futures. `-`: unknown or not applicable."
)


def plan_facts(
    options: PlanOptions,
    rows: Sequence[ScenarioRow],
    league: "Sequence[PlanLeagueRow]",
    table_rows: Mapping[str, int],
    seconds: float,
    run_on: str,
    *,
    judgement: Judgement = NOTHING_EXPECTED,
    losses: "Sequence[LossesRow]" = (),
    clock: ClockOptions | None = None,
) -> dict[str, Any]:
    """Return the `--json` object of a plan, which `render_plan` also reads.

    Args:
        options: the run's options.
        rows: as returned by `process.plan_summary.scenario_rows`.
        league: rows of ``plan_league``.
        table_rows: rows per output table.
        seconds: duration of the run.
        run_on: `process` or `spark`.
        judgement: the judgement of the expectations.
        losses: rows of ``losses``.
        clock: the assumptions about time; None if nothing is simulated over time.
    """
    variants = options.variants
    order = [swept.text for swept in variants.strategies]
    ordered = sorted(rows, key=lambda row: order.index(row["strategy"]))
    scenarios = []
    for history in {h.name: h for h in variants.histories}.values():
        its_rows = [row for row in ordered if row["scenario"] == history.name]
        scenarios.append(_scenario(history, its_rows))
    results = {
        "variants": len(variants),
        "scenarios": scenarios,
        "league": sorted(league, key=lambda row: order.index(row["strategy"])),
        "start_up": _start_up(rows, clock),
        "losses": [row for row in losses if row["rank"] == 1],
        "expectations": judgement.facts(),
        "rows": dict(table_rows),
    }
    code = judgement.exit_code
    return terminal.result_facts("plan", options.output, results, seconds, run_on, code)


def _start_up(rows: Sequence[ScenarioRow], clock: ClockOptions | None) -> dict[str, object] | None:
    """Return the longest ``start()`` in a plan and its basis, or None if nothing is simulated over
    time.
    """
    timed = [row for row in rows if row["start_up_ms_p50"] is not None]
    if not timed or clock is None:
        return None
    from rebalance_core.timing.extent import basis_of

    row = max(timed, key=lambda row: row["start_up_ms_p50"] or 0)
    return {
        "brokers": row["start_up_brokers"],
        "median_ms": row["start_up_ms_p50"],
        "basis": basis_of(clock),
    }


def _scenario(history: History, rows: Sequence[ScenarioRow]) -> dict[str, object]:
    best = best_of(rows) if sum(not row["shared"] for row in rows) > 1 else None
    scenario = history.scenario
    return {
        "scenario": history.name,
        "description": "the unchanged history" if scenario is None else scenario.description,
        "one_of_each": scenario is not None and scenario.loss is not None,
        "strategies": rows,
        "best": None if best is None else best.strategy,
        "reason": None if best is None else best.reason,
        "possible": None if best is None else possible(rows, best),
    }


def render_plan(facts: Mapping[str, Any]) -> str:
    """Return the summary as text: a table per scenario with the best strategy marked, then the
    league.
    """
    variants = counted(facts["variants"], "variant")
    lines = [f"Plan in {facts['output']}: {variants} ({terminal.took(facts)})"]
    for scenario in facts["scenarios"]:
        if not scenario["one_of_each"]:
            lines += ["", *_render_scenario(scenario)]
    lines += _worst_losses(facts["losses"])
    league = [row for row in facts["league"] if not is_popped(row["strategy"])]
    shared = [row for row in facts["league"] if is_popped(row["strategy"])]
    if len(facts["scenarios"]) > 1 and len(league) > 1:
        lines += ["", "League: all scenarios together", *_league(league)]
    for title, rows in (("Minimum and amplification", league), ("Groups that cannot pop", shared)):
        caveats = [(row["strategy"], row["caveat"]) for row in rows if row["caveat"]]
        if caveats:
            lines += ["", title, *(f"  {name}: {caveat}" for name, caveat in caveats)]
    lines += expectation_lines(facts["expectations"])
    if facts["start_up"] is not None:
        lines += ["", *wrap(terminal.start_up_text(facts["start_up"]), terminal.WIDTH)]
    if any(scenario["strategies"] for scenario in facts["scenarios"]):
        lines += ["", *wrap(HEADINGS, terminal.WIDTH, break_on_hyphens=False)]
    return terminal.joined(lines)


def _render_scenario(scenario: Mapping[str, Any]) -> Iterator[str]:
    yield f"{scenario['scenario']}: {scenario['description']}"
    rows: Sequence[ScenarioRow] = scenario["strategies"]
    if not rows:
        yield "  no group has an epoch"
        return
    seeds = f", {rows[0]['seeds']} seeds added up" if rows[0]["seeds"] > 1 else ""
    yield f"  {counted(rows[0]['groups'], 'group')}, before -> after{seeds}"
    divided = [row for row in rows if not row["shared"]]
    if divided:
        yield from terminal.table(HEADER, [_cells(row, scenario["best"]) for row in divided])
    if scenario["best"] is not None:
        yield f"  {BEST} best: {scenario['best']}: {scenario['reason']}"
    if scenario["possible"] is not None:
        yield f"  {scenario['possible']}"
    timed = [row for row in divided if row["orphan_queue_seconds"] is not None]
    if timed:
        simulated = max(row.get("timed", row["groups"]) // row["seeds"] for row in timed)
        if simulated < rows[0]["groups"]:
            yield (
                f"  times of {simulated:,} of {rows[0]['groups']:,} groups, the first by name; "
                "--group selects others"
            )
        yield from terminal.table(
            TIMED_HEADER, [_timed_cells(row, scenario["best"]) for row in timed]
        )
    popping = [row for row in rows if row["shared"] or row["pop_queues_after"]]
    if popping:
        yield from terminal.table(SHARED_HEADER, [_shared_cells(row) for row in popping])
    behind = [row for row in rows if row["proxy_clients"]]
    if behind:
        yield from terminal.table(PROXY_HEADER, [_proxy_cells(row) for row in behind])


LOSS_HEADER = (
    "group",
    "worst loss",
    "orphaned",
    "left unread",
    "no owner s",
    "read again",
    "moved",
    "peak queues",
    "idle",
)
SHOWN_LOSSES = 40


def _worst_losses(rows: "Sequence[LossesRow]") -> Iterator[str]:
    """Yield each group's worst loss, worst-affected group first."""
    if not rows:
        return
    ordered = sorted(rows, key=suffering)
    cells = [
        [
            f"{row['cluster']}/{row['consumer_group']}",
            f"{row['each']} {row['object']}",
            f"{row['orphaned_before']:,} -> {row['orphaned']:,}",
            terminal.whole(row["left_unread"]),
            "-" if row["no_owner_s"] is None else f"{row['no_owner_s']:,.1f}",
            "-" if row["read_again"] is None else f"{row['read_again']:,.0f}",
            terminal.whole(row["moved"]),
            terminal.whole(row["peak_queues"]),
            f"{row['idle']:,}",
        ]
        for row in ordered[:SHOWN_LOSSES]
    ]
    yield ""
    yield "Worst single loss of each group"
    yield from terminal.table(LOSS_HEADER, cells)
    timed = sum(row["no_owner_s"] is not None for row in rows)
    if timed < len(rows):
        yield f"  times of {timed:,} of {len(rows):,} groups; --group selects others"
    if len(rows) > SHOWN_LOSSES:
        yield f"  the table losses has {len(rows) - SHOWN_LOSSES:,} more"


def _shared_cells(row: ScenarioRow) -> list[str]:
    return [
        _name(row, None),
        f"{row['pop_queues_after']:,}",
        _range(row["min_clients_per_queue"], row["max_clients_per_queue"]),
        terminal.whole(row["unreached"]),
        f"{row['idle_before']:,} -> {row['idle_after']:,}",
        f"{_range(row['min_redelivery_s'], row['max_redelivery_s'])} s",
        f"{row['cannot_pop']:,} of {row['groups']:,} groups"
        if row["seeds"] == 1
        else f"{row['cannot_pop']:,}",
    ]


def _proxy_cells(row: ScenarioRow) -> list[str]:
    wait_s, repeat_s = (
        "-" if seconds is None else f"{seconds:g} s"
        for seconds in (row["proxy_wait_s"], row["proxy_repeat_s"])
    )
    return [_name(row, None), f"{row['proxy_clients']:,}", f"up to {wait_s}", repeat_s]


def _cells(row: ScenarioRow, best: str | None) -> list[str]:
    return [
        _name(row, best),
        terminal.whole(row["moved"]),
        terminal.whole(row["minimum_moves"]),
        _ratio(row["amplification"]),
        f"{_ratio(row['mean_peak_ratio_before'])} -> {_ratio(row['mean_peak_ratio'])}",
        f"{row['idle_before']:,} -> {row['idle_after']:,}",
        f"{row['orphaned_before']:,} -> {row['orphaned_after']:,}",
        terminal.whole(row["skipped_messages"]),
        terminal.whole(row["left_unread"]),
    ]


def _timed_cells(row: ScenarioRow, best: str | None) -> list[str]:
    messages, slowest = row["read_again"], row["convergence_ms_p99"]
    return [
        _name(row, best),
        f"{row['orphan_queue_seconds']:,.1f}",
        f"{row['double_queue_seconds']:,.1f}",
        "-" if messages is None else f"{messages:,.0f}",
        "-" if slowest is None else f"{slowest / 1000:,.1f} s",
    ]


def _league(rows: "Sequence[PlanLeagueRow]") -> Iterator[str]:
    cells = [
        [
            _name(row, None),
            terminal.whole(row["moved"]),
            _ratio(row["moved_per_rebalance"]),
            terminal.whole(row["minimum_moves"]),
            _ratio(row["amplification"]),
            _ratio(row["stickiness"]),
            _ratio(row["mean_peak_ratio"]),
            _ratio(row["worst_peak_ratio"]),
            f"{row['idle_members']:,}",
            f"{row['orphaned']:,}",
        ]
        for row in rows
    ]
    return terminal.table(LEAGUE_HEADER, cells)


def dry_run_facts(
    options: PlanOptions, inputs: Mapping[str, str], rows: RowReport
) -> dict[str, Any]:
    """Return the facts of a dry run: what a run would compute, and from which rows."""
    variants = options.variants
    return {
        "job": "plan",
        "dry_run": True,
        **rows.facts(),
        "search": None if options.searched is None else options.search,
        "variants": len(variants),
        "histories": [
            {"scenario": history.name, "seed": history.seed} for history in variants.histories
        ],
        "strategies": [
            {"strategy": swept.text, "of_rocketmq": swept.of_rocketmq}
            for swept in variants.strategies
        ],
        "inputs": dict(inputs),
        "output": options.output,
    }


def render_dry_run(facts: Mapping[str, Any], rows: RowReport) -> str:
    """Return the variants by scenario, and what is wrong with the rows."""
    histories, strategies = facts["histories"], facts["strategies"]
    lines = [*terminal.DRY_RUN]
    paths = facts["inputs"] or dict.fromkeys(rows.forecast.counts, "")
    lines += [*rows.input_lines(paths), ""]
    product = f"{counted(len(histories), 'history')} x {counted(len(strategies), 'strategy')}"
    if facts["search"] is not None:
        lines += [f"search  {facts['search']}: from 20 to 1,000 futures of every plan"]
        return terminal.joined([*lines, "", f"output  {facts['output']}", *rows.lines()])
    lines += [f"{facts['variants']:,} variants: {product}", "", "histories"]
    lines += [f"  {history['scenario']}, seed {history['seed']}" for history in histories]
    lines += ["", "strategies", *(f"  {_name(row, None)}" for row in strategies)]
    return terminal.joined([*lines, "", f"output  {facts['output']}", *rows.lines()])


class OfStrategy(TypedDict):
    """What names the strategy in any row."""

    strategy: str
    of_rocketmq: bool


def _name(row: OfStrategy, best: str | None) -> str:
    mark = f"{BEST} " if row["strategy"] == best else ""
    return f"{mark}{row['strategy']}{'' if row['of_rocketmq'] else NOT_OURS}"


def _range(least: float | None, most: float | None) -> str:
    if least is None or most is None:
        return "-"
    return f"{least:,g}" if least == most else f"{least:,g} to {most:,g}"


def _ratio(number: float | None) -> str:
    return "-" if number is None else f"{number:.2f}"
