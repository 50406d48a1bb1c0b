"""How a producer chooses the queue of each message, and the brokers that failures make it avoid.

`routes` turns a route into the publish list and walks it, `strategy` holds what differs between
versions and remembers slow and failed brokers, `sending` repeats what failed, `producer_run` runs
one of many producers. Begin with `strategy`. May import `model`, `contracts`, `strategies`,
`protocol` and `client`, and pyarrow and numpy.
"""
