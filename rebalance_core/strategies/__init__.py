"""RocketMQ's allocation strategies: one literal port per file, made by name or from a text.

Begin with `spi`, then `averagely`; `registry` lists the names,
`group_allocation` allocates for a whole group.
May import `model` and `contracts`; no third party.
"""

from rebalance_core.strategies.group_allocation import allocate_group
from rebalance_core.strategies.registry import (
    as_strategy,
    make_strategy,
    name_of_class,
    parse_strategy,
)
from rebalance_core.strategies.spi import AllocationStrategy, StrategyRefusedError

__all__ = [
    "AllocationStrategy",
    "StrategyRefusedError",
    "allocate_group",
    "as_strategy",
    "make_strategy",
    "name_of_class",
    "parse_strategy",
]
