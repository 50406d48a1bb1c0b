"""The events of brokers, topics and members that all evidence together amounts to.

Begin with `member_timeline` for groups, `broker_timeline` and `topic_timeline` for the others.
May import `evidence`, `parse`, `contracts` and `model`.
"""
