"""The rebalance pass of a RocketMQ client: what it adds and drops, and where it starts to read.

RocketMQ's rules in the order in which a client applies them, checked against test vectors recorded
from its classes. May import `model`, `contracts`, `strategies` and `protocol`. Begin with
`rebalance_pass`.
"""
