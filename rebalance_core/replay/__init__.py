"""The plain oracle: one client's rebalance pass, step by step as upstream runs it. Slow, obvious, kept for ever."""
