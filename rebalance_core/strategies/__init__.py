"""RocketMQ's allocation strategies: one literal port per file, made by name or from a text."""

from rebalance_core.strategies.group import allocate_group
from rebalance_core.strategies.registry import make_strategy
from rebalance_core.strategies.spi import AllocationStrategy, StrategyRefusedError
from rebalance_core.strategies.text_form.text import parse_strategy

__all__ = [
    "AllocationStrategy",
    "StrategyRefusedError",
    "allocate_group",
    "make_strategy",
    "parse_strategy",
]
