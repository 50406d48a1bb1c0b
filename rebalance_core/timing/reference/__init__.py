"""Plays one future of a group event by event; the oracle of the vectorized engine.

Deliberately plain and slow, so that it can be compared with docs/rocketmq.md §3.1, §6, §7 and §8.
Every client runs the real pass (`client.rebalance_pass`) on its own view. Begin with `play`, which
walks through the windows of a timeline. `world` is the state at a moment; its `EventQueue` holds
the coming events.
"""
