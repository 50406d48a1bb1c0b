"""Comparison of plans: figures, front, budgets, and the choice of the best in rounds."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import groupby
from typing import TYPE_CHECKING, Any, Literal, NotRequired, cast

import numpy as np
import pyarrow as pa

from rebalance_core.contracts.planning import ROLLOUT_DECISIONS, ROLLOUT_PLANS
from rebalance_core.kernels.segments import Bools
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.times import HOUR_MS, SECOND_MS
from rebalance_core.planning.rollout.futures import Figures, Rollouts, Slice, chained, together
from rebalance_core.planning.rollout.robustness import Robustness, robustness
from rebalance_core.planning.rollout.search import (
    Budgets,
    Prices,
    Search,
    named_budgets,
    ready_text,
)
from rebalance_core.planning.scenario.pods import Turn
from rebalance_core.timing.message_facts import MILLI, Floats

if TYPE_CHECKING:
    from rebalance_core.contracts.rows import RolloutDecisionsRow, RolloutPlansBegun

    class PlanFigures(RolloutPlansBegun):
        """The figures of a plan, with its number, and that of the group if they are of one."""

        plan: int
        group: NotRequired[int]


Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Staffing:
    """Numbers of members and pods during a deploy.

    Attributes:
        peak: the maximum number of simultaneous members.
        peak_pods: the maximum number of simultaneous pods, counted from their creation.
        fewest: the minimum number of simultaneous members of a group.
        more_pod_ms: time x pods in excess of the original number of members.
    """

    peak: int
    peak_pods: int
    fewest: int
    more_pod_ms: int


def staffing(groups: Sequence[Sequence[Turn]]) -> Staffing:
    """Count the members of groups that are deployed together, each given by its members' turns.

    A member counts from its join to its stop; a pod from its start.
    """
    alone = [_members(turns) for turns in groups]
    every = [turn for turns in groups for turn in turns]
    both = _members(every)
    created = [replace(turn, join_ms=turn.begin_ms, stays_ms=_stays(turn)) for turn in every]
    pods = _members(created, first=-1)
    # a member that joins first is an extra pod from its start until its predecessor stops
    more = sum(t.stop_ms - t.begin_ms for turns in groups for t in turns)
    return Staffing(max(both), max(pods), min(map(min, alone)), more)


def _stays(turn: Turn) -> int | None:
    return None if turn.stays_ms is None else turn.stop_ms - turn.begin_ms


def drawn_staffing(rollouts: Rollouts, plan: int, groups: Sequence[int], futures: int) -> Staffing:
    """Return the maximum, the minimum, and the mean time x pods over the draws of a plan's
    futures.
    """
    counted = []
    for draw in range(rollouts.draws(plan, futures)):
        turns = rollouts.turns(plan, draw)
        counted.append(staffing([turns[group] for group in groups]))
    return Staffing(
        max(each.peak for each in counted),
        max(each.peak_pods for each in counted),
        min(each.fewest for each in counted),
        round(sum(each.more_pod_ms for each in counted) / len(counted)),
    )


def _members(turns: Sequence[Turn], first: int = 1) -> list[int]:
    """Return the numbers of members after the joins and after the stops at each moment.

    Args:
        turns: the turns of all members.
        first: 1: joins precede stops at the same moment; -1: stops precede joins.
    """
    changes = [(turn.join_ms, 1) for turn in turns] + [(turn.stop_ms, -1) for turn in turns]
    present, counts = len(turns), [len(turns)]
    for _, moment in groupby(sorted(changes, key=lambda c: (c[0], -first * c[1])), key=lambda c: c):
        present += sum(change for _, change in moment)
        counts.append(present)
    return counts


P99 = 99
BAR = (5, 95)
"""The percentiles between which pictures draw bars."""


def costs(figures: Figures, staff: Staffing, prices: Prices | None) -> Floats:
    """Return the cost of each future, in one unit.

    With prices, by these; otherwise, messages that arrive while no client reads their queue, plus
    messages read again; if a rate is unknown, the time for which no client reads a queue, in
    queue-seconds.
    """
    unread = figures.unread_ms / SECOND_MS
    if prices is not None:
        again = 0 if figures.read_again_milli is None else figures.read_again_milli / MILLI
        pods = prices.pod_hour * staff.more_pod_ms / HOUR_MS
        cost: Floats = prices.copy * again + prices.no_owner_s * unread + pods
        return cost
    if figures.read_again_milli is None or figures.late_milli is None:
        return unread
    disturbed: Floats = (figures.late_milli + figures.read_again_milli) / MILLI
    return disturbed


def row_of(figures: Figures, staff: Staffing, prices: Prices | None) -> Row:
    """Return the figures of ``rollout_plans``; quantiles are by nearest rank."""
    again = None if figures.read_again_milli is None else figures.read_again_milli / MILLI
    late = None if figures.late_milli is None else figures.late_milli / MILLI
    cost = costs(figures, staff, prices)
    orphan, double = figures.orphan_ms / SECOND_MS, figures.double_ms / SECOND_MS
    row: Row = {
        "finish_s_p50": _rank(figures.finish_ms, 50) / SECOND_MS,
        "finish_s_p99": _rank(figures.finish_ms, P99) / SECOND_MS,
        "read_again": None if again is None else float(again.mean()),
        "read_again_p99": None if again is None else _rank(again, P99),
        "late_messages": None if late is None else float(late.mean()),
        "late_messages_p99": None if late is None else _rank(late, P99),
        "no_owner_queue_seconds": float(orphan.mean()),
        "no_owner_queue_seconds_p99": _rank(orphan, P99),
        "double_queue_seconds": float(double.mean()),
        "double_queue_seconds_p99": _rank(double, P99),
        "moves": figures.moves / figures.futures,
        "peak_members": staff.peak,
        "peak_pods": staff.peak_pods,
        "fewest_members": staff.fewest,
        "futures": figures.futures,
        "cost": float(cost.mean()),
        "cost_p99": _rank(cost, P99),
    }
    for percent in BAR:
        row[f"finish_s_p{percent}"] = _rank(figures.finish_ms, percent) / SECOND_MS
        row[f"cost_p{percent}"] = _rank(cost, percent)
    return row


def _rank(values: Any, percent: int) -> float:
    ordered = np.sort(values)
    return float(ordered[max(1, -(-len(ordered) * percent // 100)) - 1])


Reached = Literal[
    "read_again_p99",
    "no_owner_queue_seconds_p99",
    "double_queue_seconds_p99",
    "finish_s_p99",
    "fewest_members",
]
REACHED: Mapping[str, Reached] = {
    "max_read_again": "read_again_p99",
    "max_no_owner_s": "no_owner_queue_seconds_p99",
    "max_double_s": "double_queue_seconds_p99",
    "finish_within": "finish_s_p99",
    "min_members": "fewest_members",
}
"""The column that each budget limits."""


def limit_of(budget: str, value: float) -> float:
    """Return the value of a budget in the unit of its column."""
    return value / SECOND_MS if budget == "finish_within" else value


def misses(row: Mapping[str, Any], budgets: Budgets) -> dict[str, float]:
    """Return the share by which a plan misses each budget, without the budgets that it keeps."""
    missed = {}
    for name, value in named_budgets(budgets):
        limit, reached = limit_of(name, value), row[REACHED[name]]
        over = limit - reached if name == "min_members" else reached - limit
        if over > 0:
            missed[name] = over / max(limit, 1.0)
    return missed


TOLERANCE = 0.05
"""The share by which figures must differ to matter: half of the allowed loss when choosing between
recorded rollouts (docs/fidelity.md).
"""
ERRORS = 2.0
"""The number of standard errors within which a difference is considered chance."""
ERRORS_TO_STOP = 4.0
"""The number of standard errors by which a plan must exceed the best to be dropped; more, as there
are many plans.
"""


def objective(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the figures to minimise, which also define the front: cost and duration."""
    return (row["cost"], row["finish_s_p50"])


def fronts(rows: Sequence[Mapping[str, Any]]) -> Bools:
    """Mark the rows that no other row beats; to beat is to be as good in all figures and better in
    at least one, by more than `TOLERANCE`.
    """
    points = np.array([objective(row) for row in rows], np.float64)
    no_worse = (points[:, None] <= points[None, :] * (1 + TOLERANCE)).all(axis=2)
    better = (points[:, None] < points[None, :] * (1 - TOLERANCE)).any(axis=2)
    on_front: Bools = np.logical_not((no_worse & better).any(axis=0))
    return on_front


FEWEST_FUTURES, MOST_FUTURES = 20, 1_000
SHOWN_FUTURES = 80
"""Every figure is based on at least this many futures: dropped plans are played on at the end,
because 20 futures do not rank plans reliably.
"""
KEPT_PLANS = 3
"""The minimum number of plans that every round keeps, besides the default of Kubernetes."""
SLACK = 0.25
"""The share by which a plan may exceed a budget before the end, because the 99 % figure from few
futures is imprecise.
"""
DEFAULT_PLAN = 0
"""The number of the plan with Kubernetes' defaults (`Search.plans`)."""

Play = Callable[[Sequence[Slice]], Iterator[Figures]]
"""Plays pieces anywhere and returns their figures in order."""


@dataclass(frozen=True, eq=False)
class Searched:
    """The result of a search.

    Attributes:
        rollouts: the plans and groups searched.
        rows: the rows of each plan over all groups, with its number in ``plan``.
        of_groups: the same for each group, with an additional ``group``; empty if there is only one
            group.
        chosen: the number of the recommended plan.
        kept: whether it keeps all budgets.
        figures: the figures of the recommended plan, by group.
        robustness: the best plans under other assumptions; None: none were compared.
    """

    rollouts: Rollouts
    rows: list[PlanFigures]
    of_groups: list[PlanFigures]
    chosen: int
    kept: bool
    figures: tuple[Figures, ...]
    robustness: Robustness | None = None

    @property
    def table(self) -> pa.Table:
        """The rows of ``rollout_plans``."""
        rows = []
        for row in (*self.rows, *self.of_groups):
            plan = self.rollouts.plans[row["plan"]]
            group = row.get("group")
            cluster, name = (None, None) if group is None else self.rollouts.groups[group].name
            rows.append(
                {**row}
                | {"plan_id": plan.plan_id, "cluster": cluster, "consumer_group": name}
                | {"surge": str(plan.surge), "unavailable": str(plan.unavailable)}
                | {"pause_ms": plan.pause_ms, "order": plan.order}
                | {"start_median_ms": plan.down_ms, "start_spread_ms": plan.start.stated_spread_ms}
                | {"ready": ready_text(plan.ready), "suspend_ms": plan.stop.suspended_ms}
            )
        return pa.Table.from_pylist(rows, ROLLOUT_PLANS.arrow_schema())

    def decisions(self) -> list[RolloutDecisionsRow]:
        """Return the rows of ``rollout_decisions``: the recommended plan for each group."""
        plan, made = self.rollouts.plans[self.chosen], []
        for number, group in enumerate(self.rollouts.groups):
            rows = [each for each in self.of_groups if each["group"] == number] or self.rows
            row, default = (
                next(each for each in rows if each["plan"] == wanted)
                for wanted in (self.chosen, DEFAULT_PLAN)
            )
            cluster, name = group.name
            made.append(
                {
                    name: value
                    for name, value in row.items()
                    if name in ROLLOUT_DECISIONS.column_names
                }
                | {"cluster": cluster, "consumer_group": name, "members": group.members}
                | {"plan_id": plan.plan_id, "surge": str(plan.surge)}
                | {"unavailable": str(plan.unavailable), "pause_ms": plan.pause_ms}
                | {"is_default": self.chosen == DEFAULT_PLAN, "within_budget": self.kept}
                | {"plans": len(self.rollouts.plans), "default_cost": default["cost"]}
            )
        return cast("list[RolloutDecisionsRow]", made)


def search_plans(rollouts: Rollouts, play: Play, seeds: range | None = None) -> Searched:
    """Play all plans in few futures, the better half in twice as many, and so on.

    From `SHOWN_FUTURES` on, a plan that costs more than the best and is no faster is dropped. All
    plans use the same random numbers. The default of Kubernetes is played to the end, and so are
    the chosen plan and the front. Cost: that of about 4 x plans x `FEWEST_FUTURES` futures, and
    that of the remaining plans and the front in `MOST_FUTURES` futures.

    Args:
        rollouts: the plans and the groups.
        play: plays pieces.
        seeds: the futures; None: the first `MOST_FUTURES`.

    Raises:
        InputRefused: a budget or price counts messages read again, and a rate is unknown.
    """
    search = _Search(rollouts, play, seeds or range(MOST_FUTURES))
    alive = list(range(len(rollouts.plans)))
    futures = min(FEWEST_FUTURES, len(search.seeds))
    while True:
        search.play_to(alive, futures)
        search.refuse_unknown()
        if futures == len(search.seeds):
            break
        above = search.above_the_best(alive) if futures >= SHOWN_FUTURES else set()
        alive = [plan for plan in search.better_half(alive) if plan not in above]
        futures = min(2 * futures, len(search.seeds))
    search.play_to(range(len(rollouts.plans)), min(SHOWN_FUTURES, futures))
    while True:
        chosen = search.chosen()
        lacking = search.with_fewer([chosen, *search.front()], futures)
        if not lacking:
            return search.result(chosen)
        search.play_to(lacking, futures)


@dataclass
class _Search:
    """The figures so far, by plan and group."""

    rollouts: Rollouts
    play: Play
    seeds: range
    figures: dict[int, list[Figures]] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)

    def play_to(self, plans: Sequence[int], futures: int) -> None:
        """Play the futures that the plans lack; some plans may already have more."""
        groups = range(len(self.rollouts.groups))
        pieces = []
        for plan in plans:
            done = self.figures[plan][0].futures if plan in self.figures else 0
            seeds = self.seeds[done:futures]
            pieces += [Slice(plan, group, seeds) for group in groups if seeds]
        for piece, made in zip(pieces, self.play(pieces), strict=True):
            figures = self.figures.setdefault(piece.plan, [])
            if piece.group < len(figures):
                figures[piece.group] = chained([figures[piece.group], made])
            else:
                figures.append(made)
        for plan in plans:
            done = self.figures[plan][0].futures
            staff = drawn_staffing(self.rollouts, plan, groups, done)
            row = row_of(together(self.figures[plan]), staff, self.rollouts.search.prices)
            self.rows[plan] = {"plan": plan} | row

    def front(self) -> list[int]:
        """Return the plans on the front, by the figures so far."""
        plans = sorted(self.rows)
        on_front = fronts([self.rows[plan] for plan in plans]).tolist()
        return [plan for plan, on in zip(plans, on_front, strict=True) if on]

    def with_fewer(self, plans: Sequence[int], futures: int) -> list[int]:
        """Return the distinct plans that have been played in fewer futures."""
        return sorted({plan for plan in plans if self.figures[plan][0].futures < futures})

    def refuse_unknown(self) -> None:
        """Refuse a search that counts messages read again while a rate is unknown."""
        asked, prices = self.rollouts.search.budgets.max_read_again, self.rollouts.search.prices
        if asked is None and (prices is None or not prices.copy):
            return
        for group, figures in zip(self.rollouts.groups, self.figures[DEFAULT_PLAN], strict=True):
            if figures.read_again_milli is None:
                what = "max_read_again" if asked is not None else "the price of a copy"
                raise InputRefused(
                    f"{'/'.join(group.name)}: {what} needs the rate of every queue; supply "
                    "queue_offsets with two observations of each queue, or omit the key"
                )

    def ranked(self, plans: Sequence[int] | range, slack: float) -> list[int]:
        """Return the plans, best first: those that (nearly) keep the budgets, by objective; then
        those that come nearest.
        """
        budgets = self.rollouts.search.budgets

        def place(plan: int) -> tuple[Any, ...]:
            row = self.rows[plan]
            most = max(misses(row, budgets).values(), default=0.0)
            return (0.0 if most <= slack else most, *objective(row), plan)

        return sorted(plans, key=place)

    def chosen(self) -> int:
        """Return the best plan: the default, or the fastest of those whose extra cost may be
        chance.

        Among plans of equal cost, those that leave no more time without an owner than the default,
        in 99 % of the futures, come first.
        """
        ranked = self.ranked(range(len(self.rollouts.plans)), 0.0)
        best = ranked[0]
        missed = misses(self.rows[best], self.rollouts.search.budgets)
        if missed:
            return best
        alike = [plan for plan in ranked if self._alike(plan, best)]
        if DEFAULT_PLAN in alike:
            return DEFAULT_PLAN
        return min(alike, key=lambda plan: (self._leaves_more(plan), *self._by_time(plan)))

    def _by_time(self, plan: int) -> tuple[float, int]:
        return self.rows[plan]["finish_s_p50"], plan

    def _leaves_more(self, plan: int) -> bool:
        return leaves_more(self.rows[plan], self.rows[DEFAULT_PLAN])

    def _alike(self, plan: int, best: int) -> bool:
        """Return whether a plan keeps the budgets and, except for chance, costs as much as the
        best.
        """
        if misses(self.rows[plan], self.rollouts.search.budgets):
            return False
        mine, least = (self._costs(each) for each in (plan, best))
        common = min(len(mine), len(least))
        more = mine[:common] - least[:common]
        error = float(more.std()) / np.sqrt(common)
        return bool(more.mean() <= max(TOLERANCE * least[:common].mean(), ERRORS * error))

    def _costs(self, plan: int) -> Floats:
        figures, groups = self.figures[plan], range(len(self.rollouts.groups))
        staff = drawn_staffing(self.rollouts, plan, groups, figures[0].futures)
        return costs(together(figures), staff, self.rollouts.search.prices)

    def above_the_best(self, plans: Sequence[int]) -> set[int]:
        """Return the plans that certainly cost more than the best and take at least as long.

        Return none if the best misses a budget, and never the default.
        """
        best = self.ranked(plans, 0.0)[0]
        if misses(self.rows[best], self.rollouts.search.budgets):
            return set()
        least, row = self._costs(best), self.rows[best]
        above = set()
        for plan in set(plans) - {best, DEFAULT_PLAN}:
            more = self._costs(plan) - least
            surely = ERRORS_TO_STOP * float(more.std()) / np.sqrt(len(more))
            if more.mean() > max(TOLERANCE * least.mean(), surely):
                slower = self.rows[plan]["finish_s_p50"] >= row["finish_s_p50"]
                above |= {plan} if slower else set()
        return above

    def better_half(self, plans: Sequence[int]) -> list[int]:
        """Return half of the plans: the best few, the front, the next best, and the default."""
        ranked = self.ranked(plans, SLACK)
        size = max(KEPT_PLANS, -(-len(ranked) // 2))
        front = fronts([self.rows[plan] for plan in ranked]).tolist()
        on_front = [plan for plan, on in zip(ranked, front, strict=True) if on]
        kept = list(dict.fromkeys([*ranked[:KEPT_PLANS], *on_front, *ranked]))[:size]
        return sorted({DEFAULT_PLAN, *kept})

    def result(self, chosen: int) -> Searched:
        """Return the figures of every plan."""
        search = self.rollouts.search
        rows = [self.rows[plan] for plan in sorted(self.rows)]
        of_groups: list[PlanFigures] = []
        if len(self.rollouts.groups) > 1:
            for group in range(len(self.rollouts.groups)):
                group_rows = [
                    {"plan": plan, "group": group}
                    | row_of(
                        self.figures[plan][group],
                        drawn_staffing(
                            self.rollouts, plan, [group], self.figures[plan][group].futures
                        ),
                        search.prices,
                    )
                    for plan in sorted(self.figures)
                ]
                of_groups += _judged(group_rows, search)
        kept = not misses(self.rows[chosen], search.budgets)
        figures = tuple(self.figures[chosen])
        robust = None if self.rollouts.start_words is None else self._robustness(chosen)
        judged = _judged(rows, search)
        return Searched(
            rollouts=self.rollouts,
            rows=judged,
            of_groups=of_groups,
            chosen=chosen,
            kept=kept,
            figures=figures,
            robustness=robust,
        )

    def _robustness(self, chosen: int) -> Robustness:
        """Compare the chosen plan and the next best under other assumptions."""
        ranked = self.ranked(range(len(self.rollouts.plans)), 0.0)
        groups = range(len(self.rollouts.groups))

        def best_of(found: dict[int, Figures]) -> int:
            mean = {}
            for plan, figures in found.items():
                staff = drawn_staffing(self.rollouts, plan, groups, figures.futures)
                mean[plan] = float(costs(figures, staff, self.rollouts.search.prices).mean())
            least = min(mean.values())
            # the chosen plan comes first, and remains the best if the difference does not count
            return next(plan for plan in found if mean[plan] <= least * (1 + TOLERANCE))

        return robustness(self.rollouts, [chosen, *ranked], self.play, best_of)


def _judged(rows: Sequence[Row], search: Search) -> list[PlanFigures]:
    """Return the rows, compared with each other and with the budgets."""
    judged = [
        row | {"on_front": bool(on), "within_budget": not misses(row, search.budgets)}
        for row, on in zip(rows, fronts(rows), strict=True)
    ]
    return cast("list[PlanFigures]", judged)


def leaves_more(row: Mapping[str, Any], default: Mapping[str, Any]) -> bool:
    """Return whether a plan leaves more time without an owner than the default, in 99 % of the
    futures.
    """
    column = "no_owner_queue_seconds_p99"
    return bool(row[column] > default[column] * (1 + TOLERANCE))


def nearest(rows: Sequence[PlanFigures], budget: str) -> PlanFigures:
    """Return the row that comes nearest to a single budget."""
    column = REACHED[budget]
    pick = max if budget == "min_members" else min
    # a budget of what is unknown was refused
    return pick(rows, key=lambda row: cast("float", row[column]))
