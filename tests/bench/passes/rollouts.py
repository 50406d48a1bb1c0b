"""`python -m tests.bench.passes.rollouts`: a search over a hundred plans of two groups."""

from __future__ import annotations

import time

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.planning.rollout.choice import DEFAULT_PLAN, MOST_FUTURES, search_plans
from rebalance_core.planning.rollout.futures import Rollouts, Slice, deployed_group
from rebalance_core.planning.rollout.search import Search
from rebalance_core.process.propagate import group_histories
from tests.bench.report import Figure, Report, Table, bench_main, tidy
from tests.tree import TREE

ABOUT = """\
`plan --search` compares 100 paces for a restart of both groups in the demo (12 members and 32
queues each; one group is orderly). The last column is for 1,000 futures of Kubernetes' default
alone."""
STEADY = TREE / "rebalance_core/bundled/demo/steady/tables"
PLANS = 100
SEARCH = Search(
    "restart", "*", pause=(0, 5_000, 15_000, 30_000, 60_000), down=15_000,
    order=("random", "first_first"),
)  # fmt: skip


def rollouts() -> Report:
    """Run it."""
    inputs = read_input_tables(str(STEADY))
    groups = tuple(map(deployed_group, group_histories(inputs)))
    plans = SEARCH.plans([group.members for group in groups])[:PLANS]
    assert len(plans) == PLANS
    whole = Rollouts(SEARCH, plans, groups)
    begun = time.process_time()
    searched = search_plans(whole, lambda pieces: map(whole.play, pieces))
    seconds = time.process_time() - begun
    assert searched.rows[searched.chosen]["futures"] == MOST_FUTURES
    alone = Rollouts(SEARCH, plans[:1], groups)
    begun = time.process_time()
    for group in range(len(groups)):
        alone.play(Slice(DEFAULT_PLAN, group, range(MOST_FUTURES)))
    default = time.process_time() - begun
    futures = sum(row["futures"] for row in searched.rows)
    return Report(
        "A search for a rollout",
        ABOUT,
        (
            Figure(f"search of {PLANS} plans of two groups", tidy(seconds), "s", target=60.0),
            Figure(f"search of {PLANS} plans / 25 %/25 % alone", tidy(seconds / default)),
        ),
        (
            Table(
                ("plans", "futures of all", "processor s", "25 %/25 % alone, processor s"),
                ((PLANS, futures, tidy(seconds), tidy(default)),),
            ),
        ),
    )


if __name__ == "__main__":
    bench_main(rollouts, __doc__)
