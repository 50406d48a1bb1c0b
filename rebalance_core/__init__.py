"""Who owns which queue, when, and where it starts to read."""

from rebalance_core.cli.version import LIBRARY_VERSION
from rebalance_core.model.queue import MessageQueue
from rebalance_core.rules.broker_reply import broker_offset_reply
from rebalance_core.rules.start_offset import compute_pull_from_where
from rebalance_core.strategies import allocate_group, make_strategy, parse_strategy

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
