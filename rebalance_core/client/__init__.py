"""One RocketMQ client's rebalance pass: what it adds, what it drops and where it starts to read.

The rules in the order in which the client applies them, checked against vectors from RocketMQ
itself. Imports `model`, `strategies` and `protocol` only. Begin with `rebalance_pass`.
"""
