"""How a producer chooses the queue for each message, and which brokers failures make it avoid.

`routes` turns a route into the publish list, `strategy` chooses queues and remembers slow and
failed brokers, `sending` retries failed sends, and `producer_run` runs one of many producers. Begin
with `strategy`. May import `model`, `contracts`, `strategies`, `protocol` and `client`, and pyarrow
and numpy.
"""
