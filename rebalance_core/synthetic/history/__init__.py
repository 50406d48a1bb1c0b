"""The events of a synthetic group: who joins, leaves, fails and restarts over the days.

``life`` simulates one group, ``days`` says when which of the ``incidents`` happens to it; ``seats``
gives its processes hosts and client ids, ``retry_queues`` its retry topic, ``event_rows`` the rows.

May import: other modules of `synthetic`, `model`; numpy. Begin with `life`.
"""
