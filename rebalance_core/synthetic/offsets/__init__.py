"""Offsets of a synthetic cluster: of its queues, and those its groups have committed.

``traffic`` counts the messages of a queue up to any instant, ``queue_table`` those of a topic's
queues; ``queue_offsets`` and ``committed_offsets`` are what is observed of them, written as
``offset_columns``.

May import: other modules of `synthetic`, `model`; numpy. Begin with `traffic`.
"""
