"""The results of a search, in words."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Final

from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.rollout import choice
from rebalance_core.planning.rollout.choice import Searched
from rebalance_core.planning.rollout.search import (
    NAME,
    RESTART,
    SWITCH_STRATEGY,
    Budgets,
    RolloutPlan,
    duration,
    named_budgets,
)
from rebalance_core.planning.scenario.deploys import STATEFUL_SET, warnings_of
from rebalance_core.planning.scenario.pods import at_once

if TYPE_CHECKING:
    from rebalance_core.planning.rollout.choice import PlanFigures


_UNITS = {
    "max_read_again": "messages read again",
    "max_no_owner_s": "queue-seconds without an owner",
    "max_double_s": "queue-seconds with two owners",
    "finish_within": "s",
    "min_members": "members",
}
P99: Final = "no_owner_queue_seconds_p99"
_NAMES = 4
"""Maximum number of groups named in a sentence; further groups are counted."""


def recommendation(searched: Searched) -> list[str]:
    """Return sentences: the recommendation, its cost, the cost of Kubernetes' default, caveats."""
    rollouts = searched.rollouts
    plan, row = rollouts.plans[searched.chosen], searched.rows[searched.chosen]
    head = "RECOMMENDATION" if searched.kept else "NO PLAN KEEPS THE BUDGETS; the nearest plan"
    priced = rollouts.search.prices is not None
    first = rollouts.plans[choice.DEFAULT_PLAN]
    numbers = "one pod at a time" if first.workload == STATEFUL_SET else "25 %/25 %"
    lines = [
        f"{head}: {_change(searched)} with {_pace(searched, plan)}.",
        f"It {_figures(row, priced)}.",
    ]
    if searched.chosen == choice.DEFAULT_PLAN:
        lines.append(f"Kubernetes does that by default ({numbers}).")
    else:
        default = searched.rows[choice.DEFAULT_PLAN]
        lines.append(
            f"Kubernetes' default ({numbers}) {_figures(default, priced)}.{_more(default, row)}"
        )
        if choice.leaves_more(row, default):
            lines.append(
                "In 99 % of the futures it leaves more time without an owner than the default: "
                f"{row[P99]:,.1f} queue-seconds instead of {default[P99]:,.1f}."
            )
    lines += _with_other_suspensions(searched)
    lines += _missed(searched)
    lines += _warnings(searched, plan)
    lines += basis(searched)
    rests = "" if rollouts.start_words is None else f" ({rollouts.start_words})"
    lines.append(f"Assumed: {'; '.join(plan.assumptions())}{rests}.")
    counts = [each["futures"] for each in searched.rows]
    lines.append(
        f"Of {len(searched.rows)} plans, each simulated in {min(counts):,} to {max(counts):,} "
        f"futures, the front has {sum(each['on_front'] for each in searched.rows)}."
    )
    return lines


def _with_other_suspensions(searched: Searched) -> Iterator[str]:
    """Yield the figures of the chosen plan with other suspension times."""
    plan = searched.rollouts.plans[searched.chosen]
    for row in searched.rows:
        other = searched.rollouts.plans[row["plan"]]
        suspended_ms = other.stop.suspended_ms
        unknown = None in (row["read_again"], row["late_messages"])
        if suspended_ms == plan.stop.suspended_ms or unknown:
            continue
        if _steps(searched, other) == _steps(searched, plan):
            how = (
                f"suspended for {duration(suspended_ms)} before the stop"
                if suspended_ms
                else "not suspended"
            )
            yield (
                f"The same with members {how}: {row['read_again']:,.0f} messages are read again "
                f"({row['read_again_p99']:,.0f}), at least {row['late_messages']:,.0f} arrive late "
                f"({row['late_messages_p99']:,.0f})."
            )


def _steps(searched: Searched, plan: RolloutPlan) -> tuple[object, ...]:
    """Return what determines a plan's steps, whether its numbers are stated as such or as shares,
    and whether pods are killed.
    """
    numbers = [
        at_once(plan.surge, plan.unavailable, group.members) for group in searched.rollouts.groups
    ]
    return *numbers, plan.pause_ms, plan.order, plan.stop.killed


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
    if plan.stop.suspended_ms:
        text += f", suspended for {duration(plan.stop.suspended_ms)} before the stop"
    return f"{text}, killed" if plan.stop.killed else text


def _figures(row: Mapping[str, Any], priced: bool) -> str:
    again = (
        "the number of messages read again is unknown"
        if row["read_again"] is None
        else f"{row['read_again']:,.0f} messages are read again ({row['read_again_p99']:,.0f})"
    )
    late = ""
    if row["late_messages"] is not None:
        mean, most = row["late_messages"], row["late_messages_p99"]
        late = f", at least {mean:,.0f} arrive late ({most:,.0f})"
    cost = f", at a cost of {row['cost']:,.2f} ({row['cost_p99']:,.2f})" if priced else ""
    return (
        f"takes {row['finish_s_p50']:,.0f} s (in 99 % of the futures "
        f"{row['finish_s_p99']:,.0f}); {again}{late}, {row['no_owner_queue_seconds']:,.1f} "
        f"queue-seconds have no owner ({row['no_owner_queue_seconds_p99']:,.1f}), "
        f"{row['moves']:,.0f} moves, at least {row['fewest_members']} members in a group, "
        f"at most {row['peak_members']} in all and {row['peak_pods']} pods{cost}"
    )


def _more(default: PlanFigures, row: PlanFigures) -> str:
    return f" {default['cost'] / row['cost']:.2f} times the cost." if row["cost"] else ""


def _missed(searched: Searched) -> Iterator[str]:
    """Yield, for each missed budget, whether any plan keeps it, and the figure of the nearest plan.

    If each budget on its own is kept by some plan, the budgets conflict.
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
            "Some plan meets each single budget, but no plan meets all of them; the chosen plan "
            f"misses {listed}."
        )


def basis(searched: Searched) -> Iterator[str]:
    """Yield the basis of a recommendation: its criteria, its robustness to spreads, its probe."""
    rollouts = searched.rollouts
    if (
        rollouts.search.prices is None
        and searched.rows[searched.chosen]["late_messages"] is not None
    ):
        suspends = any(plan.stop.suspended_ms for plan in rollouts.plans)
        why = "no client reads their queue" if suspends else "their queue has no owner"
        yield (
            f"Plans are compared by messages that are late because {why} and "
            f"by messages read again; differences below {choice.TOLERANCE:.0%} or within chance "
            "do not count."
        )
    if any(named_budgets(rollouts.search.budgets)):
        yield (
            "Budgets are judged by the figure in parentheses, which 99 % of the futures do not "
            "exceed."
        )
    if searched.robustness is None:
        return
    stretches = list(searched.robustness.stretches())
    if len(stretches) == 1:
        yield (
            f"It is the best plan at every start spread tried, {duration(stretches[0][0])} to "
            f"{duration(stretches[0][1])}."
        )
    else:
        parts = [
            f"{f'up to {duration(last)}' if last else 'without any'} "
            f"{_numbers(rollouts.plans[plan])}"
            for _, last, plan in stretches[:-1]
        ]
        first, _, plan = stretches[-1]
        parts.append(f"from {duration(first)} {_numbers(rollouts.plans[plan])}")
        yield f"Best plan by start spread: {'; '.join(parts)}."
    if searched.robustness.unprobed is None:
        yield "Pods count as Ready without a probe; a probe that waits for the join is safer."
        return
    figures, best = searched.robustness.unprobed
    other = (
        ""
        if best == searched.chosen
        else (f"; {_numbers(rollouts.plans[best])} is better in that case")
    )
    yield (
        "It needs a readinessProbe that waits for the consumer's start(): without one "
        f"{figures.orphan_ms.mean() / SECOND_MS:,.1f} queue-seconds have no owner{other}."
    )


def _numbers(plan: RolloutPlan) -> str:
    pause = f" with {duration(plan.pause_ms)} between" if plan.pause_ms else ""
    asleep_ms = plan.stop.suspended_ms
    asleep = f", suspended for {duration(asleep_ms)}" if asleep_ms else ""
    return f"maxSurge {plan.surge}, maxUnavailable {plan.unavailable}{pause}{asleep}"


def _value(name: str, value: float) -> str:
    return f"{choice.limit_of(name, value):,.10g}{' s' if name == 'finish_within' else ''}"


def _warnings(searched: Searched, plan: RolloutPlan) -> Iterator[str]:
    rollouts = searched.rollouts
    for group, turns in zip(rollouts.groups, rollouts.turns(searched.chosen, 0), strict=True):
        ordered = group.ordered and not plan.stop.killed
        for text in warnings_of(turns, group.queues, ordered=ordered):
            yield f"{group.name[1]}: {text}."
    if plan.stop.killed_in_hook:
        yield f"{plan.stop.killed_in_hook}."


def texts_of(searched: Searched) -> dict[str, str]:
    """Return the names and contents of the additional files: the chosen scenario and strategy."""
    search, plan = searched.rollouts.search, searched.rollouts.plans[searched.chosen]
    return {
        SCENARIO_FILE: plan.as_toml(search.change, search.groups),
        STRATEGY_FILE: plan.as_strategy(basis(searched)),
    }


def texts_of_groups(decisions: Sequence[Searched]) -> dict[str, str]:
    """Return `texts_of` for searches of one group each: a scenario with one edit per group, and one
    YAML document per group.
    """
    edits, documents = [], []
    for searched in decisions:
        search, plan = searched.rollouts.search, searched.rollouts.plans[searched.chosen]
        edits.append(plan.edit_toml(search.change, search.groups))
        name = json.dumps("/".join(searched.rollouts.groups[0].name))
        documents.append(f"# the group {name}\n{plan.as_strategy(basis(searched))}")
    head = f'name = "{NAME}"\ndescription = "The plan chosen for each group"\n'
    return {SCENARIO_FILE: head + "".join(edits), STRATEGY_FILE: "---\n".join(documents)}


SCENARIO_FILE, STRATEGY_FILE = ("rollout.toml", "strategy.yaml")


def listed(searched: Searched, most: int) -> Sequence[PlanFigures]:
    """Return the rows of a summary: the chosen plan, the default, then the front, fastest first."""
    front = sorted(
        (row for row in searched.rows if row["on_front"]), key=lambda row: row["finish_s_p50"]
    )
    first = [searched.rows[searched.chosen], searched.rows[choice.DEFAULT_PLAN]]
    by_plan = {row["plan"]: row for row in (*first, *front)}
    return list(by_plan.values())[:most]
