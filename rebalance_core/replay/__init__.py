"""The plain oracle, kept for ever: slow, obvious Python that a reader can check against
docs/rocketmq.md.

One client's rebalance pass step by step (`rebalance_pass`), and a whole group's history.
"""
