"""Events of brokers, topics and members, derived from all evidence together.

Begin with `member_timeline` for groups, `broker_timeline` and `topic_timeline` for the others.
May import `evidence`, `parse`, `contracts` and `model`.
"""
