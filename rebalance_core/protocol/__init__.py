"""RocketMQ's individual decisions for each version, one per file, as pure functions of plain
values.

They include where a client starts to read, which queues a route offers, and how long a change takes
to reach all members. Begin with `start_offset`. May import `model`, `contracts` and `strategies`.
"""
