"""The vocabulary of every other package: queues, orderings, versions, events, settings, errors.

Imports no other package and no third party. Begin with `queue`, then `events`.
"""
