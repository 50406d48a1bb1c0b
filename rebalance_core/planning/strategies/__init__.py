"""The strategies of plans: RocketMQ's own, and hypothetical ones, which RocketMQ lacks.

``spi`` is the interface, ``registry`` reads strategy texts; every hypothetical strategy has a file
of its own. A new one is such a file and a line in the registry.

May import: `model` and `rebalance_core.strategies`. Begin with `spi`.
"""
