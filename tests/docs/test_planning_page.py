"""docs/planning.md: the figures that no block and no notebook prints."""

from dataclasses import replace

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.planning.rollout.choice import MOST_FUTURES
from rebalance_core.planning.rollout.futures import Rollouts, Slice, deployed_group
from rebalance_core.planning.rollout.search import read_search
from rebalance_core.planning.sweep.transitions import CLOCK
from rebalance_core.process.propagate import group_histories
from rebalance_core.timing.message_facts import MILLI
from tests.tree import TREE

STEADY = TREE / "rebalance_core/bundled/demo/steady/tables"


def test_what_a_suspension_saves_and_costs_the_demo() -> None:
    """The plan that the page recommends, in as many futures with a suspension as without."""
    (checkout,) = (
        deployed_group(its)
        for its in group_histories(read_input_tables(str(STEADY)))
        if its.consumer_group == "checkout"
    )
    search = replace(read_search("restart"), groups="checkout", suspend=(0, 2_000))
    plan = replace(search.default(), surge="100%", unavailable=0)
    plans = (plan, replace(plan, suspend_ms=2_000))
    rollouts = Rollouts(search, plans, (checkout,), replace(CLOCK, handler_ms=100))
    again, late = [], []
    for number in range(len(plans)):
        figures = rollouts.play(Slice(number, 0, range(MOST_FUTURES)))
        assert figures.read_again_milli is not None
        assert figures.late_milli is not None
        again.append(f"{figures.read_again_milli.mean() / MILLI:,.0f}")
        late.append(f"{figures.late_milli.mean() / MILLI:,.0f}")
    stated = (
        f"checkout reads {again[1]} messages again instead of {again[0]}, but {late[1]} instead of "
        f"{late[0]} are late."
    )
    assert stated in (TREE / "docs/planning.md").read_text("utf-8")
