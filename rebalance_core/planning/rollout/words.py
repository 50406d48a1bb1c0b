"""Results of a search, in words."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rebalance_core.planning.rollout import choice
from rebalance_core.planning.rollout.choice import Row, Searched
from rebalance_core.planning.rollout.search import (
    ASSUMPTIONS,
    RESTART,
    SWITCH_STRATEGY,
    Budgets,
    RolloutPlan,
    duration,
    named_budgets,
)
from rebalance_core.planning.scenario.deploys import at_once, warnings_of

_UNITS = {
    "max_read_again": "messages read again",
    "max_no_owner_s": "queue-seconds without an owner",
    "max_double_s": "queue-seconds with two owners",
    "finish_within": "s",
    "min_members": "members",
}
_NAMES = 4
"""Groups that a sentence names; further groups are counted."""


def recommendation(searched: Searched) -> list[str]:
    """Return sentences: what to do, its cost, the cost of Kubernetes' default, what to consider."""
    rollouts = searched.rollouts
    plan, row = rollouts.plans[searched.chosen], searched.rows[searched.chosen]
    head = "RECOMMENDATION" if searched.kept else "NO PLAN KEEPS THE BUDGETS; the nearest plan"
    lines = [f"{head}: {_change(searched)} with {_pace(searched, plan)}.", f"It {_figures(row)}."]
    if searched.chosen == choice.DEFAULT_PLAN:
        lines.append("Kubernetes does that by default (25 %/25 %).")
    else:
        default = searched.rows[choice.DEFAULT_PLAN]
        lines.append(f"Kubernetes' default (25 %/25 %) {_figures(default)}.{_more(default, row)}")
    lines += _missed(searched)
    lines += _warnings(searched, plan)
    lines.append(f"Assumed: {'; '.join(ASSUMPTIONS)}.")
    counts = [each["futures"] for each in searched.rows]
    lines.append(
        f"Of {len(searched.rows)} plans, each in {min(counts):,} to {max(counts):,} futures, "
        f"{sum(each['on_front'] for each in searched.rows)} are on the front."
    )
    return lines


def _change(searched: Searched) -> str:
    search, groups = searched.rollouts.search, searched.rollouts.groups
    members = sum(group.members for group in groups)
    names = [group.name[1] for group in groups]
    more = f" and {len(names) - _NAMES} more groups" if len(names) > _NAMES else ""
    listed = ", ".join(names[:_NAMES]) + more
    what, _, value = search.change.partition("=")
    verb = {RESTART: "restart", SWITCH_STRATEGY: f"switch to {value}"}.get(what)
    return f"{verb or f'upgrade to {value}'} {listed} ({members} members)"


def _pace(searched: Searched, plan: RolloutPlan) -> str:
    resolved = [
        at_once(plan.surge, plan.unavailable, group.members) for group in searched.rollouts.groups
    ]
    numbers = "; ".join(dict.fromkeys(f"{more} and {fewer}" for more, fewer in resolved))
    text = f"maxSurge {plan.surge} and maxUnavailable {plan.unavailable} ({numbers})"
    text += f", {duration(plan.pause_ms)} between steps" if plan.pause_ms else ", no pause"
    return text if plan.graceful else f"{text}, killed"


def _figures(row: Mapping[str, Any]) -> str:
    again = (
        "the number of messages read again is unknown"
        if row["read_again"] is None
        else f"{row['read_again']:,.0f} messages are read again ({row['read_again_p99']:,.0f})"
    )
    cost = "" if row["cost"] is None else f", at a cost of {row['cost']:,.2f}"
    return (
        f"takes {row['finish_s_p50']:,.0f} s (in 99 % of the futures "
        f"{row['finish_s_p99']:,.0f}); {again}, {row['no_owner_queue_seconds']:,.1f} "
        f"queue-seconds have no owner ({row['no_owner_queue_seconds_p99']:,.1f}), "
        f"{row['moves']:,.0f} moves, at least {row['fewest_members']} members in a group, "
        f"at most {row['peak_members']} in all{cost}"
    )


def _more(default: Row, row: Row) -> str:
    column, what = ("cost", "the cost") if row["cost"] is not None else (
        "read_again", "the messages read again")  # fmt: skip
    if not row[column] or default[column] is None:
        return ""
    return f" {default[column] / row[column]:.2f} times {what}."


def _missed(searched: Searched) -> Iterator[str]:
    """Yield, for each missed budget, whether any plan keeps it and what the nearest plan reaches.

    Where some plan keeps each budget alone, they conflict.
    """
    budgets, row = searched.rollouts.search.budgets, searched.rows[searched.chosen]
    missed = choice.misses(row, budgets)
    if not missed:
        return
    impossible = False
    for name, value in named_budgets(budgets):
        best = choice.nearest(searched.rows, name)
        if choice.misses(best, Budgets(**{name: value})):  # type: ignore[arg-type]  # as it was given
            impossible = True
            reached, plan = best[choice.REACHED[name]], searched.rollouts.plans[best["plan"]]
            yield (
                f"{name} = {_value(name, value)}: no plan keeps it; the nearest "
                f"({plan.plan_id}) reaches {reached:,.10g} {_UNITS[name]}."
            )
    if not impossible:
        listed = ", ".join(
            f"{name} = {_value(name, value)} ({row[choice.REACHED[name]]:,.10g} {_UNITS[name]})"
            for name, value in named_budgets(budgets)
            if name in missed
        )
        yield (
            "Some plan keeps each budget alone, but none keeps all together; the chosen plan "
            f"misses {listed}."
        )


def _value(name: str, value: float) -> str:
    return f"{choice.limit_of(name, value):,.10g}{' s' if name == 'finish_within' else ''}"


def _warnings(searched: Searched, plan: RolloutPlan) -> Iterator[str]:
    rollouts = searched.rollouts
    for group, turns in zip(rollouts.groups, rollouts.turns(searched.chosen), strict=True):
        ordered = group.ordered and plan.graceful
        for text in warnings_of(turns, group.queues, ordered=ordered):
            yield f"{group.name[1]}: {text}."


def texts_of(searched: Searched) -> dict[str, str]:
    """Return names and texts of the files beside the tables: the chosen scenario and strategy."""
    search, plan = searched.rollouts.search, searched.rollouts.plans[searched.chosen]
    return {
        SCENARIO_FILE: plan.as_toml(search.change, search.groups),
        STRATEGY_FILE: plan.as_strategy(),
    }


SCENARIO_FILE, STRATEGY_FILE = ("rollout.toml", "strategy.yaml")


def listed(searched: Searched, most: int) -> Sequence[Row]:
    """Return the rows of a summary: the chosen plan, the default, then the front, fastest first."""
    front = sorted(
        (row for row in searched.rows if row["on_front"]), key=lambda row: row["finish_s_p50"]
    )
    first = [searched.rows[searched.chosen], searched.rows[choice.DEFAULT_PLAN]]
    by_plan = {row["plan"]: row for row in (*first, *front)}
    return list(by_plan.values())[:most]
