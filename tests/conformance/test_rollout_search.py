"""A search for a rollout against futures that it has not seen, of every plan.

Of half of the plans, with 200 such futures; of all of them with a thousand: slow.
"""

from functools import cache
from typing import Any

import numpy as np
import pytest

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.planning.rollout.choice import (
    MOST_FUTURES,
    Searched,
    costs,
    objective,
    row_of,
    search_plans,
    staffing,
)
from rebalance_core.planning.rollout.futures import (
    Figures,
    Rollouts,
    Slice,
    deployed_group,
    together,
)
from rebalance_core.planning.rollout.search import Search
from rebalance_core.planning.scenario.pods import Start
from rebalance_core.process.propagate import group_histories
from tests.recordings.rollouts.compared import rank_correlation
from tests.tree import TREE

pytestmark = [pytest.mark.conformance, pytest.mark.timeout(1_200)]

DEMO = TREE / "rebalance_core/bundled/demo/steady/tables"
SEARCH = Search(
    "restart", "*", surge=(0, 1, "25%", "50%"), unavailable=(0, 1, "25%", "50%"),
    pause=(0, 15_000), start=Start(15_000, 0),
)  # fmt: skip
PLANS = 24
FIRST_UNSEEN = 50_000
HALF, ALL = 2, 1
"""Every second plan, every plan."""
SEARCHES = [(HALF, 200), pytest.param(ALL, MOST_FUTURES, marks=pytest.mark.slow)]
FIGURES = ("cost", "read_again", "no_owner_queue_seconds", "finish_s_p50")


@cache
def searched(every: int) -> Searched:
    inputs = read_input_tables(str(DEMO))
    groups = tuple(map(deployed_group, group_histories(inputs)))
    plans = SEARCH.plans([group.members for group in groups])[:PLANS:every]
    rollouts = Rollouts(SEARCH, plans, groups)
    return search_plans(rollouts, lambda pieces: map(rollouts.play, pieces))


@cache
def unseen(every: int, futures: int) -> list[Figures]:
    """Of each plan."""
    seeds = range(FIRST_UNSEEN, FIRST_UNSEEN + futures)
    rollouts = searched(every).rollouts
    groups = range(len(rollouts.groups))
    return [
        together([rollouts.play(Slice(plan, group, seeds)) for group in groups])
        for plan in range(PLANS // every)
    ]


def rows(every: int, futures: int) -> list[dict[str, float]]:
    rollouts = searched(every).rollouts
    return [
        row_of(figures, staffing(rollouts.turns(plan, 0)), None)
        for plan, figures in enumerate(unseen(every, futures))
    ]


@pytest.mark.parametrize(("every", "futures"), SEARCHES)
@pytest.mark.parametrize("figure", FIGURES)
def test_the_order_of_the_plans_is_that_of_futures_it_has_not_seen(
    figure: str, every: int, futures: int
) -> None:
    found: list[dict[str, Any]] = [{**row} for row in searched(every).rows]
    pairs = [
        (mine[figure], other[figure])
        for mine, other in zip(found, rows(every, futures), strict=True)
    ]
    assert len(pairs) == PLANS // every
    assert rank_correlation(pairs) >= 0.95, pairs


@pytest.mark.parametrize(("every", "futures"), SEARCHES)
def test_the_chosen_plan_is_hardly_worse_than_the_best(every: int, futures: int) -> None:
    plan, found = searched(every).chosen, rows(every, futures)
    best = min(range(len(found)), key=lambda number: objective(found[number]))
    staff = staffing(searched(every).rollouts.turns(plan, 0))
    chosen, least = (costs(unseen(every, futures)[n], staff, None) for n in (plan, best))
    regret = (chosen - least).mean()
    error = (chosen - least).std() / np.sqrt(len(chosen))
    assert regret <= 0.05 * least.mean() + 2 * error, (plan, best, regret, error)
