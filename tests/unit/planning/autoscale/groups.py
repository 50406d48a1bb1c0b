"""A group to scale: the bundled steady one, 32 queues of Checkout on two brokers."""

from functools import cache

import numpy as np

from rebalance_core.checks.input_tables import read_input_tables
from rebalance_core.planning.autoscale.arrivals import Rates
from rebalance_core.planning.autoscale.closed_loop import Reader
from rebalance_core.planning.rollout.futures import DeployedGroup, deployed_group
from rebalance_core.process.propagate import group_histories
from tests.tree import TREE

STEADY = str(TREE / "rebalance_core/bundled/demo/steady/tables")
QUEUES = 32


@cache
def steady(name: str = "checkout") -> DeployedGroup:
    (history,) = group_histories(read_input_tables(STEADY), name)
    return deployed_group(history)


def even(per_second: list[float], piece_s: int = 60) -> Rates:
    """Rates of all queues together, a value for each piece."""
    rate = np.outer(per_second, np.full(QUEUES, 1 / QUEUES))
    return Rates(
        1_800_000_000_000, np.linspace(0.0, len(per_second) * piece_s, len(per_second) + 1), rate
    )


MEMBER = Reader(capacity=200.0, of_queue=np.inf, work_s=0.1, cache=1_000)
"""20 threads, 100 ms for a message."""
