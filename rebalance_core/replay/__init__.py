"""A whole group replayed in plain Python: the oracle with which the kernels are compared.

Deliberately slow and obvious: it can be checked against docs/rocketmq.md rule by rule. May import
`client`, `protocol`, `strategies`, `contracts` and `model`. Begin with `group_replay`, then read
`history` (events to epochs), `settle` (who holds what), `changes` (drops and adds) and
`pull_starts` (where new owners begin to read). `invariants` checks properties of every ledger.
"""
