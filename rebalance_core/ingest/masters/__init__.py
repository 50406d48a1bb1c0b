"""When the master of a broker goes or comes while its slaves live, and what they do meanwhile
(rocketmq.md §15).

May import the evidence and `model`. Begin with `master_turns`.
"""
