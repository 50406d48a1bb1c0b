"""Which consumer of a RocketMQ group owns which queue, when, and where it starts to read.

Begin with docs/architecture.md, then `model`. tests/unit/test_layers.py says which package may
import which.
"""

from rebalance_core.model.queue import MessageQueue
from rebalance_core.protocol.broker_reply import broker_offset_reply
from rebalance_core.protocol.start_offset import compute_pull_from_where
from rebalance_core.strategies import allocate_group, make_strategy, parse_strategy
from rebalance_core.version import LIBRARY_VERSION

__version__ = LIBRARY_VERSION

__all__ = [
    "MessageQueue",
    "__version__",
    "allocate_group",
    "broker_offset_reply",
    "compute_pull_from_where",
    "make_strategy",
    "parse_strategy",
]
