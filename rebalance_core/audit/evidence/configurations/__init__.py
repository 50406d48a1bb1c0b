"""What brokers have configured, of groups and of topics.

May import: what `audit.evidence` may. Begin with `group_configs`, which is short.
"""
