"""The events of a synthetic group: who joins, leaves, fails and restarts over the days.

``life`` simulates one group, ``days`` schedules its ``incidents``; ``seats`` gives its processes
hosts and client ids, ``retry_topic`` its retry topic, ``numbered_rows`` the rows.

May import: other modules of `synthetic`, `model`; numpy. Begin with `life`.
"""
