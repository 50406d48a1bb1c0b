"""How a producer chooses the queue of each message, and what failures make it avoid.

`routes` turns a route into the publish list, `selection` walks it, `faults` remembers slow and
failed brokers, `sending` repeats what failed, `simulation` runs many producers at once. Begin with
`profile`, which says what differs between versions. May import `model`, `contracts`, `strategies`,
`protocol` and `client`; pyarrow and numpy in `simulation` only.
"""
