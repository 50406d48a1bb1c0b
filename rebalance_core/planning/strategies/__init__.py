"""The strategies of plans: RocketMQ's own, and hypothetical ones, which RocketMQ lacks.

``planning_strategy`` is the interface, ``known_strategies`` finds a strategy by its text; every
hypothetical strategy has a file of its own. A new one is such a file and a line there.

May import: `model` and `rebalance_core.strategies`. Begin with
`planning_strategy`.
"""
