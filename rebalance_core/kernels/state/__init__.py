"""What owners depend on, event by event: members, topics, routes, and the epochs they make.

May import `codes`, `cells` and `segments`. Begin with `epochs`, then `roster`
(members of each epoch) and `grid` (its readable queues).
"""
