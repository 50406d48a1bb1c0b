"""Where owners are worked out, cell by cell: one queue in one epoch, in pieces that fit the cache.

A *segment* is one queue over all epochs of its group. May import `segments`. Begin with `queues`,
then `cells`; `pieces` are cells with whoever holds them.
"""
