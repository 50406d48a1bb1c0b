"""A whole group replayed in plain Python: the oracle that the kernels are compared with.

Slow and obvious on purpose: a reader can check it against docs/rocketmq.md rule by rule. May import
`client`, `protocol`, `strategies`, `contracts` and `model`. Begin with `group_replay`, then
`history` (events to epochs), `settle` (who holds what), `changes` (drops and adds) and `starts`
(where new owners begin to read). `invariants` says what holds of every ledger.
"""
