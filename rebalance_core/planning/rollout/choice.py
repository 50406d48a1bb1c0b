"""Comparison of plans: figures, front, budgets, and the choice of the best in rounds."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import numpy as np
import pyarrow as pa

from rebalance_core.contracts.planning import ROLLOUT_PLANS
from rebalance_core.kernels.segments import Bools
from rebalance_core.model.errors import InputRefused
from rebalance_core.model.times import HOUR_MS, SECOND_MS
from rebalance_core.planning.rollout.futures import Figures, Rollouts, Slice, chained, together
from rebalance_core.planning.rollout.search import Budgets, Prices, Search, named_budgets
from rebalance_core.planning.scenario.deploys import Turn
from rebalance_core.timing.message_facts import MILLI

Row = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Staffing:
    """Numbers of members and pods during a deploy.

    Attributes:
        peak: most simultaneous members.
        fewest: fewest simultaneous members of a group.
        more_pod_ms: time x pods beyond the original number of members.
    """

    peak: int
    fewest: int
    more_pod_ms: int


def staffing(groups: Sequence[Sequence[Turn]]) -> Staffing:
    """Count members of groups that are deployed together, each by its members' turns.

    A member counts from its join to its stop; a pod from its start.
    """
    alone = [_members(turns) for turns in groups]
    both = _members([turn for turns in groups for turn in turns])
    # a member that joins first is an extra pod from its start until its predecessor stops
    more = sum(t.stop_ms - t.begin_ms for turns in groups for t in turns if t.stays_ms is not None)
    return Staffing(max(both), min(map(min, alone)), more)


def _members(turns: Sequence[Turn]) -> list[int]:
    """Return the numbers of members after the joins and after the stops of each moment."""
    changes = [(turn.join_ms, 1) for turn in turns] + [(turn.stop_ms, -1) for turn in turns]
    present, counts = len(turns), [len(turns)]
    for _, moment in groupby(sorted(changes, key=lambda c: (c[0], -c[1])), key=lambda c: c):
        present += sum(change for _, change in moment)
        counts.append(present)
    return counts


P99 = 99


def row_of(figures: Figures, staff: Staffing, prices: Prices | None) -> Row:
    """Return the figures of ``rollout_plans``; quantiles are by nearest rank."""
    again = None if figures.replayed_milli is None else figures.replayed_milli / MILLI
    orphan, double = figures.orphan_ms / SECOND_MS, figures.double_ms / SECOND_MS
    row: Row = {
        "finish_s_p50": _rank(figures.finish_ms, 50) / SECOND_MS,
        "finish_s_p99": _rank(figures.finish_ms, P99) / SECOND_MS,
        "read_again": None if again is None else float(again.mean()),
        "read_again_p99": None if again is None else _rank(again, P99),
        "no_owner_queue_seconds": float(orphan.mean()),
        "no_owner_queue_seconds_p99": _rank(orphan, P99),
        "double_queue_seconds": float(double.mean()),
        "double_queue_seconds_p99": _rank(double, P99),
        "moves": figures.moves / figures.futures,
        "peak_members": staff.peak,
        "fewest_members": staff.fewest,
        "futures": figures.futures,
        "cost": None,
    }
    if prices is not None:
        row["cost"] = (
            prices.copy * (row["read_again"] or 0.0)
            + prices.no_owner_s * row["no_owner_queue_seconds"]
            + prices.pod_hour * staff.more_pod_ms / HOUR_MS
        )
    return row


def _rank(values: Any, percent: int) -> float:
    ordered = np.sort(values)
    return float(ordered[max(1, -(-len(ordered) * percent // 100)) - 1])


REACHED = {
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
    """Return the share by which a plan misses each budget, without the budgets it keeps."""
    missed = {}
    for name, value in named_budgets(budgets):
        limit, reached = limit_of(name, value), row[REACHED[name]]
        over = limit - reached if name == "min_members" else reached - limit
        if over > 0:
            missed[name] = over / max(limit, 1.0)
    return missed


def objective(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Return the figures to minimise, which also define the front.

    They are the cost, or else the messages read again and the time without an owner, and the
    duration.
    """
    if row["cost"] is not None:
        return (row["cost"], row["finish_s_p50"])
    again = () if row["read_again"] is None else (row["read_again"],)
    return (*again, row["no_owner_queue_seconds"], row["finish_s_p50"])


def fronts(rows: Sequence[Mapping[str, Any]]) -> Bools:
    """Mark the rows that no other row beats: as good in all figures and better in at least one."""
    points = np.array([objective(row) for row in rows], np.float64)
    no_worse = (points[:, None] <= points[None, :]).all(axis=2)
    better = (points[:, None] < points[None, :]).any(axis=2)
    on_front: Bools = np.logical_not((no_worse & better).any(axis=0))
    return on_front


FEWEST_FUTURES, MOST_FUTURES = 20, 1_000
SHOWN_FUTURES = 80
"""Every figure rests on at least so many futures: plans dropped early are played further in the
end.
"""
KEPT_PLANS = 3
"""Plans that every round keeps at least, beside the default of Kubernetes."""
SLACK = 0.25
"""The share by which a plan may miss a budget before the end, because 99 % of few futures is
rough.
"""
DEFAULT_PLAN = 0
"""The number of Kubernetes' default (`Search.plans`)."""

Play = Callable[[Sequence[Slice]], Iterator[Figures]]
"""Plays pieces anywhere and returns their figures in order."""


@dataclass(frozen=True, eq=False)
class Searched:
    """Result of a search.

    Attributes:
        rollouts: the plans and groups searched.
        rows: of each plan, over all groups; with its number, ``plan``.
        of_groups: the same of each group, with ``group``, too; empty if there is only one group.
        chosen: number of the recommended plan.
        kept: whether it keeps all budgets.
        figures: of the recommended plan, by group.
    """

    rollouts: Rollouts
    rows: list[Row]
    of_groups: list[Row]
    chosen: int
    kept: bool
    figures: tuple[Figures, ...]

    @property
    def table(self) -> pa.Table:
        """Rows of ``rollout_plans``."""
        rows = []
        for row in (*self.rows, *self.of_groups):
            plan = self.rollouts.plans[row["plan"]]
            group = row.get("group")
            cluster, name = (None, None) if group is None else self.rollouts.groups[group].name
            rows.append(
                row
                | {"plan_id": plan.plan_id, "cluster": cluster, "consumer_group": name}
                | {"surge": str(plan.surge), "unavailable": str(plan.unavailable)}
                | {"pause_ms": plan.pause_ms, "order": plan.order}
            )
        return pa.Table.from_pylist(rows, ROLLOUT_PLANS.arrow_schema())


def search_plans(rollouts: Rollouts, play: Play, seeds: range | None = None) -> Searched:
    """Play all plans in few futures, the better half in twice as many, and so on.

    All plans use the same random numbers. The default of Kubernetes is played to the end, and so
    are the chosen plan and the front. Cost: that of some 4 x plans x `FEWEST_FUTURES` futures, and
    of the remaining plans and the front, in `MOST_FUTURES`.

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
        alive = search.better_half(alive)
        futures = min(2 * futures, len(search.seeds))
    search.play_to(range(len(rollouts.plans)), min(SHOWN_FUTURES, futures))
    while True:
        chosen = search.ranked(range(len(rollouts.plans)), 0.0)[0]
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
            staff = staffing(self.rollouts.turns(plan))
            row = row_of(together(self.figures[plan]), staff, self.rollouts.search.prices)
            self.rows[plan] = {"plan": plan} | row

    def front(self) -> list[int]:
        """Return the plans on the front, by the figures so far."""
        plans = sorted(self.rows)
        on_front = fronts([self.rows[plan] for plan in plans]).tolist()
        return [plan for plan, on in zip(plans, on_front, strict=True) if on]

    def with_fewer(self, plans: Sequence[int], futures: int) -> list[int]:
        """Return the distinct plans that were played in fewer futures."""
        return sorted({plan for plan in plans if self.figures[plan][0].futures < futures})

    def refuse_unknown(self) -> None:
        """Refuse a search that counts messages read again while a rate is unknown."""
        asked, prices = self.rollouts.search.budgets.max_read_again, self.rollouts.search.prices
        if asked is None and (prices is None or not prices.copy):
            return
        for group, figures in zip(self.rollouts.groups, self.figures[DEFAULT_PLAN], strict=True):
            if figures.replayed_milli is None:
                what = "max_read_again" if asked is not None else "the price of a copy"
                raise InputRefused(
                    f"{'/'.join(group.name)}: {what} needs the rate of every queue; supply "
                    "queue_offsets with two observations of each, or omit it"
                )

    def ranked(self, plans: Sequence[int] | range, slack: float) -> list[int]:
        """Return plans best first: those that (nearly) keep the budgets, by objective; then the
        nearest.
        """
        budgets = self.rollouts.search.budgets

        def place(plan: int) -> tuple[Any, ...]:
            row = self.rows[plan]
            most = max(misses(row, budgets).values(), default=0.0)
            return (0.0 if most <= slack else most, *objective(row), plan)

        return sorted(plans, key=place)

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
        of_groups: list[Row] = []
        if len(self.rollouts.groups) > 1:
            for group in range(len(self.rollouts.groups)):
                group_rows = [
                    {"plan": plan, "group": group}
                    | row_of(
                        self.figures[plan][group],
                        staffing(self.rollouts.turns(plan)[group : group + 1]),
                        search.prices,
                    )
                    for plan in sorted(self.figures)
                ]
                of_groups += _judged(group_rows, search)
        kept = not misses(self.rows[chosen], search.budgets)
        figures = tuple(self.figures[chosen])
        return Searched(self.rollouts, _judged(rows, search), of_groups, chosen, kept, figures)


def _judged(rows: Sequence[Row], search: Search) -> list[Row]:
    """Return the rows with their comparison to each other and to the budgets."""
    return [
        row | {"on_front": bool(on), "within_budget": not misses(row, search.budgets)}
        for row, on in zip(rows, fronts(rows), strict=True)
    ]


def nearest(rows: Sequence[Row], budget: str) -> Row:
    """Return the row that comes nearest to a single budget."""
    column = REACHED[budget]
    pick = max if budget == "min_members" else min
    return pick(rows, key=lambda row: row[column])
