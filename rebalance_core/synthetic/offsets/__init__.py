"""Offsets of a synthetic cluster: what its queues hold, and what its groups have committed.

``traffic`` counts the messages of a queue up to any instant, ``queue_table`` those of a topic's
queues; ``queue_offsets`` and ``commits`` are what is observed of them, as ``offset_rows``.

May import: other modules of `synthetic`, `model`; numpy. Begin with `traffic`.
"""
