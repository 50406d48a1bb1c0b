"""Plans beside each other: figures, front, budgets; and which one is left after fewer and fewer."""

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

# Members and pods while a deploy goes on.


@dataclass(frozen=True, slots=True)
class Staffing:
    """How many there are meanwhile.

    Attributes:
        peak: most members at once.
        fewest: fewest of one group at once.
        more_pod_ms: time x pods beyond the members there were.
    """

    peak: int
    fewest: int
    more_pod_ms: int


def staffing(groups: Sequence[Sequence[Turn]]) -> Staffing:
    """Count members of groups that are deployed together, each by the turns of its members.

    A member counts from its join to its stop; a pod from its start.
    """
    alone = [_members(turns) for turns in groups]
    both = _members([turn for turns in groups for turn in turns])
    # who joins first is a pod beyond the members from its start until the other one stops
    more = sum(t.stop_ms - t.begin_ms for turns in groups for t in turns if t.stays_ms is not None)
    return Staffing(max(both), min(map(min, alone)), more)


def _members(turns: Sequence[Turn]) -> list[int]:
    """How many members there are after the joins and after the stops of each moment."""
    changes = [(turn.join_ms, 1) for turn in turns] + [(turn.stop_ms, -1) for turn in turns]
    present, counts = len(turns), [len(turns)]
    for _, moment in groupby(sorted(changes, key=lambda c: (c[0], -c[1])), key=lambda c: c):
        present += sum(change for _, change in moment)
        counts.append(present)
    return counts


# A plan's row, of one group or of all.

P99 = 99


def row_of(figures: Figures, staff: Staffing, prices: Prices | None) -> Row:
    """The figures of ``rollout_plans``. Quantiles are by nearest rank."""
    again = None if figures.replayed_milli is None else figures.replayed_milli / MILLI
    orphan, double = figures.orphan_ms / SECOND_MS, figures.double_ms / SECOND_MS
    found: Row = {
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
        found["cost"] = (
            prices.copy * (found["read_again"] or 0.0)
            + prices.no_owner_s * found["no_owner_queue_seconds"]
            + prices.pod_hour * staff.more_pod_ms / HOUR_MS
        )
    return found


def _rank(values: Any, percent: int) -> float:
    ordered = np.sort(values)
    return float(ordered[max(1, -(-len(ordered) * percent // 100)) - 1])


# What is better.

REACHED = {
    "max_read_again": "read_again_p99",
    "max_no_owner_s": "no_owner_queue_seconds_p99",
    "max_double_s": "double_queue_seconds_p99",
    "finish_within": "finish_s_p99",
    "min_members": "fewest_members",
}
"""The column that a budget is held against."""


def limit_of(budget: str, value: float) -> float:
    """The value of a budget in the unit of its column."""
    return value / SECOND_MS if budget == "finish_within" else value


def misses(row: Mapping[str, Any], budgets: Budgets) -> dict[str, float]:
    """By how much a plan misses each budget, as a share of it; those that it keeps are left out."""
    found = {}
    for name, value in named_budgets(budgets):
        limit, reached = limit_of(name, value), row[REACHED[name]]
        over = limit - reached if name == "min_members" else reached - limit
        if over > 0:
            found[name] = over / max(limit, 1.0)
    return found


def objective(row: Mapping[str, Any]) -> tuple[float, ...]:
    """Return what is minimised, and the front is of: the cost, else messages read again, then
    time without an owner; and how long it takes.
    """
    if row["cost"] is not None:
        return (row["cost"], row["finish_s_p50"])
    again = () if row["read_again"] is None else (row["read_again"],)
    return (*again, row["no_owner_queue_seconds"], row["finish_s_p50"])


def fronts(rows: Sequence[Mapping[str, Any]]) -> Bools:
    """Mark the rows that no other one beats: as good in all that counts and better in one."""
    points = np.array([objective(row) for row in rows], np.float64)
    no_worse = (points[:, None] <= points[None, :]).all(axis=2)
    better = (points[:, None] < points[None, :]).any(axis=2)
    found: Bools = np.logical_not((no_worse & better).any(axis=0))
    return found


# From many plans and few futures to few plans and many.

FEWEST_FUTURES, MOST_FUTURES = 20, 1_000
SHOWN_FUTURES = 80
"""No figure rests on fewer: of plans that were given up early the rest is played in the end."""
KEPT_PLANS = 3
"""No fewer are left in any round, beside the default of Kubernetes."""
SLACK = 0.25
"""By so much a plan may miss a budget before the end: 99 % of few futures is a rough figure."""
DEFAULT_PLAN = 0
"""The number of Kubernetes' default (`Search.plans`)."""

Play = Callable[[Sequence[Slice]], Iterator[Figures]]
"""Plays pieces, wherever; what each comes to, in their order."""


@dataclass(frozen=True, eq=False)
class Searched:
    """The result of a search.

    Attributes:
        rollouts: what was searched.
        rows: of each plan, of all groups together; with its number, ``plan``.
        of_groups: the same of each group, with ``group`` too; none where there is but one.
        chosen: number of the plan that is recommended.
        kept: it keeps all budgets.
    """

    rollouts: Rollouts
    rows: list[Row]
    of_groups: list[Row]
    chosen: int
    kept: bool

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

    All plans see the same random numbers. The default of Kubernetes is played to the end, and so
    are the plan that is chosen and the front. Cost: that of some 4 x plans x `FEWEST_FUTURES`
    futures, and of the plans that are left, and the front, in `MOST_FUTURES`.

    Args:
        rollouts: the plans and the groups.
        play: plays pieces.
        seeds: which futures; None: the first `MOST_FUTURES`.

    Raises:
        InputRefused: a budget or price is of messages read again, and a rate is not known.
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
    """The figures so far: by plan, of each group."""

    rollouts: Rollouts
    play: Play
    seeds: range
    figures: dict[int, list[Figures]] = field(default_factory=dict)
    rows: dict[int, Row] = field(default_factory=dict)

    def play_to(self, plans: Sequence[int], futures: int) -> None:
        """Play the futures that the plans lack; of some there may be more already."""
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
        """The plans on the front, as far as the figures tell so far."""
        plans = sorted(self.rows)
        on_front = fronts([self.rows[plan] for plan in plans]).tolist()
        return [plan for plan, on in zip(plans, on_front, strict=True) if on]

    def with_fewer(self, plans: Sequence[int], futures: int) -> list[int]:
        """Return the plans that were played in fewer futures, each once."""
        return sorted({plan for plan in plans if self.figures[plan][0].futures < futures})

    def refuse_unknown(self) -> None:
        """Refuse what would be judged by messages of which nobody knows how many come."""
        asked, prices = self.rollouts.search.budgets.max_read_again, self.rollouts.search.prices
        if asked is None and (prices is None or not prices.copy):
            return
        for group, figures in zip(self.rollouts.groups, self.figures[DEFAULT_PLAN], strict=True):
            if figures.replayed_milli is None:
                what = "max_read_again" if asked is not None else "a price of a copy"
                raise InputRefused(
                    f"{'/'.join(group.name)}: {what} needs the rate of every queue; give "
                    "queue_offsets with two observations of each, or leave it out"
                )

    def ranked(self, plans: Sequence[int] | range, slack: float) -> list[int]:
        """The best first: what keeps the budgets, or nearly, by its objective; then the nearest."""
        budgets = self.rollouts.search.budgets

        def place(plan: int) -> tuple[Any, ...]:
            row = self.rows[plan]
            most = max(misses(row, budgets).values(), default=0.0)
            return (0.0 if most <= slack else most, *objective(row), plan)

        return sorted(plans, key=place)

    def better_half(self, plans: Sequence[int]) -> list[int]:
        """Half of the plans: the best few, then the front, then the next best; and the default."""
        ranked = self.ranked(plans, SLACK)
        size = max(KEPT_PLANS, -(-len(ranked) // 2))
        front = fronts([self.rows[plan] for plan in ranked]).tolist()
        on_front = [plan for plan, on in zip(ranked, front, strict=True) if on]
        kept = list(dict.fromkeys([*ranked[:KEPT_PLANS], *on_front, *ranked]))[:size]
        return sorted({DEFAULT_PLAN, *kept})

    def result(self, chosen: int) -> Searched:
        """Everything told of every plan."""
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
        return Searched(self.rollouts, _judged(rows, search), of_groups, chosen, kept)


def _judged(rows: Sequence[Row], search: Search) -> list[Row]:
    """The rows with what they are beside each other and the budgets."""
    return [
        row | {"on_front": bool(on), "within_budget": not misses(row, search.budgets)}
        for row, on in zip(rows, fronts(rows), strict=True)
    ]


def nearest(rows: Sequence[Row], budget: str) -> Row:
    """The row that comes nearest to a budget, alone."""
    column = REACHED[budget]
    pick = max if budget == "min_members" else min
    return pick(rows, key=lambda row: row[column])
