"""RocketMQ's allocation strategies: one literal port per file, created by name or from a string.

Begin with `spi`, then `averagely`; `registry` lists the names, `texts` parses strategy texts, and
`group_allocation` allocates for a whole group. Everything that depends on a strategy is in its
file. May import `model` and `contracts`; numpy only for the types of `vectorised`.
"""

from rebalance_core.strategies.group_allocation import allocate_group
from rebalance_core.strategies.registry import make_strategy, name_of_class
from rebalance_core.strategies.spi import AllocationStrategy, StrategyRefusedError
from rebalance_core.strategies.texts import as_strategy, parse_strategy

__all__ = [
    "AllocationStrategy",
    "StrategyRefusedError",
    "allocate_group",
    "as_strategy",
    "make_strategy",
    "name_of_class",
    "parse_strategy",
]
