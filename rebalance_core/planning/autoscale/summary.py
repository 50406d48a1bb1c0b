"""Compares policies: rows of ``policy_summary``, the front, and the smallest maximum regret."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from rebalance_core.model.times import SECOND_MS
from rebalance_core.planning.autoscale.closed_loop import FIGURES, Question, Replayed
from rebalance_core.planning.autoscale.hpa import Floats
from rebalance_core.planning.autoscale.policy import RECORDED, Policy
from rebalance_core.planning.autoscale.scaled_group import ScaledGroup

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import PolicySummaryRow

Row = dict[str, Any]
_MOST = ("lag_max", "longest_wait_s")
_OF_A_GROUP = ("lag_p50", "lag_p99")
_SAME = 1e-9
P99 = 0.99


@dataclass(frozen=True, slots=True)
class Judgement:
    """How the policies of a group are compared.

    Attributes:
        pod_hour: the price of a pod hour.
        late: the price of a late message.
        max_late: the budget for late messages in 99 % of the futures, if any.
        max_pod_hours: the budget for pod hours in 99 % of the futures, if any.
    """

    pod_hour: float = 1.0
    late: float = 0.001
    max_late: float | None = None
    max_pod_hours: float | None = None


def summary_rows(
    groups: Sequence[ScaledGroup],
    results: Mapping[tuple[int, str], Replayed],
    policies: Sequence[Policy],
    question: Question,
    judgement: Judgement,
) -> list[PolicySummaryRow]:
    """Return the rows of ``policy_summary``: those for each group, then those for all groups
    together.

    Args:
        groups: all groups, including those that are not simulated.
        results: the results by group number and world.
        policies: the policies, in order.
        question: what was measured.
        judgement: prices and budgets.
    """
    rows = list[Row]()
    for number, scaled in enumerate(groups):
        of_group = list[Row]()
        names = [policy.name for policy in policies]
        if scaled.recorded is not None:
            names.append(RECORDED)
        for world in scaled.worlds:
            of_world = [
                _row(scaled, results.get((number, world)), place, policy, world, question)
                for place, policy in enumerate(names)
            ]
            if scaled.reason is None:
                _compare([row for row in of_world if row["reason"] is None], judgement)
            of_group += of_world
        _choose(of_group)
        rows += of_group
    known = [each for each in groups if each.reason is None]
    if len(known) > 1:
        rows += _together(groups, results, policies, question, judgement)
    return cast("list[PolicySummaryRow]", rows)


def _row(
    scaled: ScaledGroup,
    replayed: Replayed | None,
    place: int,
    policy: str,
    world: str,
    question: Question,
) -> Row:
    cluster, group = scaled.group.name
    row: Row = {
        "cluster": cluster,
        "consumer_group": group,
        "policy": policy,
        "world": world,
        "futures": len(question.seeds) if replayed is not None else 0,
        "chosen": False,
        "reason": scaled.reason,
    }
    if replayed is None:
        return row
    if policy == RECORDED and scaled.recorded is not None and scaled.recorded.reason is not None:
        return row | {"futures": 0, "reason": scaled.recorded.reason}
    rates = scaled.rates[world]
    row |= {"from_ms": rates.begin_ms, "to_ms": rates.begin_ms + rates.seconds * SECOND_MS}
    return row | _figures({name: values[place] for name, values in replayed.figures.items()})


def _figures(values: Mapping[str, Floats]) -> Row:
    """Return the means over the futures, and the values that 99 % of them do not exceed."""
    row: Row = {name: float(values[name].mean()) for name in FIGURES if name in values}
    for name in ("late_messages", "pod_hours"):
        row[f"{name}_p99"] = float(np.quantile(values[name], P99, method="higher"))
    return row


def _compare(rows: Sequence[Row], judgement: Judgement) -> None:
    """Add price, front, budget and regret to the rows for a world.

    The recorded replicas are compared with the policies, but never the reverse: they cannot be
    chosen, so the choice must not depend on them. Their regret is negative if they were cheaper
    than every policy.
    """
    for row in rows:
        row["price"] = judgement.pod_hour * row["pod_hours"] + judgement.late * row["late_messages"]
        row["within_budget"] = all(
            most is None or row[name] <= most
            for name, most in (
                ("late_messages_p99", judgement.max_late),
                ("pod_hours_p99", judgement.max_pod_hours),
            )
        )
    policies = [row for row in rows if row["policy"] != RECORDED]
    least = min(row["price"] for row in policies)
    for row in rows:
        row["regret"] = row["price"] - least
        row["on_front"] = not any(_is_better(other, row) for other in policies)


def _is_better(one: Row, other: Row) -> bool:
    pairs = [(one[name], other[name]) for name in ("pod_hours", "late_messages")]
    return all(a <= b + _SAME for a, b in pairs) and any(a < b - _SAME for a, b in pairs)


def _choose(rows: Sequence[Row]) -> None:
    """Mark the policy with the smallest maximum regret, within the budgets if any is; recorded
    replicas cannot be chosen.
    """
    by_policy: dict[str, list[Row]] = {}
    for row in rows:
        if row["reason"] is None and row["policy"] != RECORDED:
            by_policy.setdefault(row["policy"], []).append(row)
    within = {name: of for name, of in by_policy.items() if all(row["within_budget"] for row in of)}
    candidates = within or by_policy
    if not candidates:
        return

    def worst(name: str) -> tuple[float, float]:
        of = candidates[name]
        return max(row["regret"] for row in of), sum(row["pod_hours"] for row in of)

    for row in candidates[min(candidates, key=worst)]:
        row["chosen"] = True


def _together(
    groups: Sequence[ScaledGroup],
    results: Mapping[tuple[int, str], Replayed],
    policies: Sequence[Policy],
    question: Question,
    judgement: Judgement,
) -> Iterable[Row]:
    """Return the rows for all simulated groups together; for a world that a group lacks, use its
    likely one.
    """
    known = [number for number, each in enumerate(groups) if each.reason is None]
    worlds = max((groups[number].worlds for number in known), key=len)
    rows = list[Row]()
    names = [policy.name for policy in policies]
    recorded = [groups[number].recorded for number in known]
    if all(each is not None and each.reason is None for each in recorded):
        names.append(RECORDED)
    for world in worlds:
        of = [results.get((number, world)) or results[number, worlds[0]] for number in known]
        of_world = list[Row]()
        for place, policy in enumerate(names):
            values = {
                name: np.max([each.figures[name][place] for each in of], axis=0)
                if name in _MOST
                else np.sum([each.figures[name][place] for each in of], axis=0)
                for name in FIGURES
                if name not in _OF_A_GROUP
            }
            row: Row = {
                "cluster": None,
                "consumer_group": None,
                "policy": policy,
                "world": world,
                "futures": len(question.seeds),
                "chosen": False,
                "reason": None,
            }
            of_world.append(row | _figures(values))
        _compare(of_world, judgement)
        rows += of_world
    for row in rows:
        row["within_budget"] = None  # budgets apply to each group
    _mark_together(rows)
    return rows


def _mark_together(rows: Sequence[Row]) -> None:
    by_policy: dict[str, float] = {}
    for row in rows:
        if row["policy"] != RECORDED:
            by_policy[row["policy"]] = max(by_policy.get(row["policy"], 0.0), row["regret"])
    best = min(by_policy, key=lambda name: by_policy[name])
    for row in rows:
        row["chosen"] = row["policy"] == best
