"""The rebalance pass of a RocketMQ client: what it adds, what it drops and where it starts to read.

RocketMQ's rules in the order in which a client applies them, checked against vectors recorded from
its classes. May import `model`, `contracts`, `strategies` and `protocol`. Begin with
`rebalance_pass`.
"""
