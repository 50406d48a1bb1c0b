"""The summary of a synthetic fleet, for a person and for a program: one dict, two forms."""

from collections.abc import Mapping
from typing import Any

from rebalance_core.cli.printed import duration, place, utc
from rebalance_core.synthetic.fleet import FleetPlan


def generate_facts(
    output: str,
    plan: FleetPlan,
    rows: Mapping[str, int],
    events_by_type: Mapping[str, int],
    seconds: float,
    run_on: str,
) -> dict[str, Any]:
    """The `--json` object of `generate`; `render_generate` reads the same.

    Args:
        output: where the tables are.
        plan: what was made.
        rows: rows per table.
        events_by_type: rows of cluster_events per event_type.
        seconds: how long the run took.
        run_on: where it took place, `process` or `spark`.
    """
    by_count = sorted(events_by_type.items(), key=lambda item: (-item[1], item[0]))
    return {
        "job": "generate",
        "status": "OK",
        "exit_code": 0,
        "output": output,
        **plan.facts(),
        "rows": dict(rows),
        "events_by_type": dict(by_count),
        "seconds": seconds,
        "run_on": run_on,
    }


def render_generate(facts: Mapping[str, Any]) -> str:
    """What a person reads: how much of what there is, and what happens in it."""
    lines = [
        f"Fleet in {facts['output']} ({duration(facts['seconds'])} {place(facts['run_on'])})",
        _span(facts),
        "",
        *_numbers({name: facts[name] for name in ("groups", "clusters", "topics")}),
        "",
        "Rows",
        *_numbers(facts["rows"]),
        "",
        "Events",
    ]
    events, total = facts["events_by_type"], sum(facts["events_by_type"].values())
    width = len(f"{max(events.values(), default=0):,}")
    lines += [
        f"  {name:<20} {count:>{width},}  {count / total:6.2%}" for name, count in events.items()
    ]
    return "\n".join(lines)


def render_plan(facts: Mapping[str, Any]) -> str:
    """What a dry run prints: the plan and about how many rows it gives."""
    plan = facts["plan"]
    names = ("groups", "clusters", "topics", "groups_per_cluster", "offset_hours", "offset_looks")
    return "\n".join(
        [
            "Dry run: nothing is written.",
            "",
            _span(plan),
            "",
            *_numbers({name: plan[name] for name in names}),
            "",
            "Rows, about",
            *_numbers(facts["expected_rows"]),
            "",
            f"output  {facts['output']}",
            f"  {', '.join(facts['tables'])}",
        ]
    )


def _span(plan: Mapping[str, Any]) -> str:
    days = f"{plan['days']:,} day" + "s" * (plan["days"] != 1)
    return f"{utc(plan['start_ms'])} to {utc(plan['end_ms'])}, {days}, seed {plan['seed']}"


def _numbers(values: Mapping[str, int]) -> list[str]:
    width = len(f"{max(values.values(), default=0):,}")
    return [f"  {name:<20} {count:>{width},}" for name, count in values.items()]
