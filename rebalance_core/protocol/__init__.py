"""RocketMQ's single decisions, one per file, for each version: pure functions of plain values.

Where a client starts to read, which queues a route offers, how long a change takes to reach all
members. Begin with `start_offset`. May import `model`, `contracts` and `strategies`.
"""
