"""Which consumer of a RocketMQ group owns which queue, when, and where it starts to read.

Begin with docs/architecture.md, then `model`. tests/unit/test_layers.py says which package may
import which.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from rebalance_core.client.one_pass import rebalance_pass
from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.start_offset import broker_offset_reply, compute_pull_from_where
from rebalance_core.strategies import allocate_group, make_strategy, parse_strategy
from rebalance_core.version import LIBRARY_VERSION

if TYPE_CHECKING:
    from rebalance_core.engine.options import SimulationOptions
    from rebalance_core.process.simulate import Ledger

__version__ = LIBRARY_VERSION

__all__ = [
    "MessageQueue",
    "__version__",
    "allocate_group",
    "broker_offset_reply",
    "compute_pull_from_where",
    "make_strategy",
    "parse_strategy",
    "rebalance_pass",
    "simulate",
]


def simulate(tables: Mapping[str, Any], options: SimulationOptions | None = None) -> Ledger:
    """Replay the groups of Arrow tables in this process, without Spark.

    See `rebalance_core.process.simulate.simulate`; for fleets, `rebalance_core.spark.simulate`.

    Args:
        tables: Arrow tables by name: ``cluster_events`` and, if known, ``consumer_groups``,
            ``queue_offsets`` and ``committed_offsets``, with the contract's columns.
        options: `rebalance_core.engine.options.SimulationOptions`.
    """
    from rebalance_core.process.simulate import simulate as simulated  # pyarrow takes a while

    return simulated(tables, options)
