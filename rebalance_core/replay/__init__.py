"""One group followed event by event: slow, plain Python to be read beside docs/rocketmq.md.

It is the oracle that `kernels` is compared with, and computes the groups that the kernels do not
take. Begin with `group_replay.replay_group`; `history` makes the epochs, `settle` says who holds
what in one, and the other files make the rows of one table each.

May import `model`, `contracts`, `strategies`, `protocol` and `client`; no third party.
"""
