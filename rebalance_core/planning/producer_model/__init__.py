"""Models of brokers and producers, read from TOML: the input of ``rebalance producers --model``.

May import: `model`, `producers`, `planning.scenario`. Begin with `file`.
"""
